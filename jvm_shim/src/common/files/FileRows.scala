package org.apache.spark.sql.pyjoinopt

import org.apache.hadoop.fs.FileStatus

import org.apache.spark.paths.SparkPath
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.datasources.{FileFormat, HadoopFsRelation, PartitionedFile}
import org.apache.spark.sql.types.StructType

/**
 * Reads rows of some columns of a table's files in the driver, by the reader of Spark's own scan, with its settings,
 * casts and defaults of missing columns. The partition columns come last.
 */
private[pyjoinopt] final class FileRows(session: Compat.Session, files: HadoopFsRelation, columns: StructType) {
  private val open = files.fileFormat.buildReaderWithPartitionValues(
    session,
    files.dataSchema,
    files.partitionSchema,
    columns,
    Nil,
    files.options + (FileFormat.OPTION_RETURNING_BATCH -> "false"),
    session.sessionState.newHadoopConfWithOptions(files.options)
  )

  /** The rows of a range of bytes of a file; `partition` has the values of the partition columns. */
  def apply(file: FileStatus, partition: InternalRow, start: Long, length: Long): Iterator[InternalRow] =
    open(PartitionedFile(
      partition,
      SparkPath.fromFileStatus(file),
      start,
      length,
      Array.empty[String],
      file.getModificationTime,
      file.getLen,
      Map.empty))
}
