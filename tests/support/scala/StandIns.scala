package org.apache.spark.sql.delta.standin

import java.util.{Collections, HashMap, OptionalLong, Set => JavaSet}

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.{classic, Row}
import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.connector.catalog._
import org.apache.spark.sql.connector.catalog.constraints.Constraint
import org.apache.spark.sql.connector.expressions.{FieldReference, NamedReference, Transform}
import org.apache.spark.sql.connector.read._
import org.apache.spark.sql.connector.read.colstats.ColumnStatistics
import org.apache.spark.sql.delta.files.{TahoeBatchFileIndex, TahoeLogFileIndex}
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** A DSv2 source that reports its row count, the statistics of one column, and this column as its key. */
class Reporting extends TableProvider {
  override def inferSchema(options: CaseInsensitiveStringMap): StructType = StructType.fromDDL("id BIGINT, name STRING")
  override def getTable(schema: StructType, partitions: Array[Transform], properties: java.util.Map[String, String]) =
    new ReportingTable
}

class ReportingTable extends Table with SupportsRead {
  override def name: String = "reporting"
  override def schema: StructType = StructType.fromDDL("id BIGINT, name STRING")
  override def capabilities: JavaSet[TableCapability] = Collections.singleton(TableCapability.BATCH_READ)
  override def constraints: Array[Constraint] = Array(Constraint.primaryKey("pk", Array(FieldReference("name"))).build())
  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = () => new Scan with SupportsReportStatistics {
    override def readSchema: StructType = schema
    override def estimateStatistics: Statistics = new Statistics {
      override def sizeInBytes: OptionalLong = OptionalLong.of(64000)
      override def numRows: OptionalLong = OptionalLong.of(1000)
      override def columnStats: HashMap[NamedReference, ColumnStatistics] = {
        val known = new HashMap[NamedReference, ColumnStatistics]
        known.put(FieldReference("id"), new ColumnStatistics {
          override def distinctCount: OptionalLong = OptionalLong.of(70)
          override def nullCount: OptionalLong = OptionalLong.of(10)
        })
        known
      }
    }
  }
}

object StandIns {
  /** `reads`: "latest", "version" (time travel), "partition" (of a table), "changes". */
  def delta(
      session: classic.SparkSession,
      path: String,
      version: Long,
      reads: String,
      schema: String,
      partitions: String): classic.Dataset[Row] = {
    val (all, parts) = (StructType.fromDDL(schema), StructType.fromDDL(partitions))
    val filters = if (reads == "partition") Seq(Literal(true)) else Nil
    val index =
      if (reads == "changes") new TahoeBatchFileIndex(new Path(path), version, parts)
      else new TahoeLogFileIndex(new Path(path), version, reads != "latest", filters, parts)
    val files = HadoopFsRelation(index, parts, all, None, new ParquetFileFormat, Map.empty)(session)
    classic.Dataset.ofRows(session, LogicalRelation(files))
  }
}
