package org.apache.spark.sql.delta.files

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.types.StructType

/** A class with the name of Delta Lake's file index, with a version, and a listing that would start a job. */
class TahoeLogFileIndex(
    root: Path,
    val version: Long,
    val isTimeTravelQuery: Boolean,
    val partitionFilters: Seq[Expression],
    partitions: StructType) extends FileIndex {
  override def rootPaths: Seq[Path] = Seq(root)
  override def listFiles(partitionFilters: Seq[Expression], dataFilters: Seq[Expression]): Seq[PartitionDirectory] =
    throw new IllegalStateException("a job")
  override def inputFiles: Array[String] = Array.empty
  override def refresh(): Unit = ()
  override def sizeInBytes: Long = 1L << 40
  override def partitionSchema: StructType = partitions
}

/** Another file index of Delta Lake: over some files, or over changes. */
class TahoeBatchFileIndex(root: Path, version: Long, partitions: StructType)
    extends TahoeLogFileIndex(root, version, true, Nil, partitions)
