package org.apache.spark.sql.pyjoinopt

import org.apache.hadoop.fs.FileStatus

import org.apache.spark.paths.SparkPath
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.datasources.{FileFormat, HadoopFsRelation, PartitionedFile}
import org.apache.spark.sql.types.StructType

/**
 * Rows of some columns of a table's files, read in the driver by the reader that Spark's own scan would use, so that its
 * settings, casts and missing columns hold. Not before the partition columns, in whose order they come last.
 */
private[pyjoinopt] final class FileRows(session: Compat.Session, files: HadoopFsRelation, columns: StructType) {
  private val open = files.fileFormat.buildReaderWithPartitionValues(
    session, files.dataSchema, files.partitionSchema, columns, Nil,
    files.options + (FileFormat.OPTION_RETURNING_BATCH -> "false"),
    session.sessionState.newHadoopConfWithOptions(files.options))

  /** Those of some bytes of a file; `partition` are the values that its path says. */
  def apply(file: FileStatus, partition: InternalRow, start: Long, length: Long): Iterator[InternalRow] =
    open(PartitionedFile(
      partition, SparkPath.fromFileStatus(file), start, length, Array.empty[String], file.getModificationTime,
      file.getLen, Map.empty))
}
