package org.apache.spark.sql.pyjoinopt

import com.fasterxml.jackson.core.JsonGenerator
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.analysis.NamedRelation
import org.apache.spark.sql.catalyst.catalog.HiveTableRelation
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.LogicalRDD
import org.apache.spark.sql.execution.columnar.InMemoryRelation
import org.apache.spark.sql.execution.datasources.{FileFormat, HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.execution.datasources.jdbc.JDBCRelation
import org.apache.spark.sql.sources.DataSourceRegister

/**
 * Exports what a leaf of a plan reads: kind, format, name, size.
 *
 * Law: without I/O. No file is listed that Spark has not listed already, no catalog is queried, no statistics are
 * computed.
 */
private[pyjoinopt] final class LeafDetails(attributes: AttributeTable, out: JsonGenerator) {

  def write(leaf: LogicalPlan): Unit = leaf match {
    case range: Range =>
      out.writeNumberField("rows", range.numElements.bigInteger.doubleValue)
      range.numSlices.foreach(out.writeNumberField("slices", _: Int))
    case local: LocalRelation => out.writeNumberField("rows", local.data.length)
    case _: OneRowRelation | _: CTERelationRef =>
    case relation: LogicalRelation =>
      relation.relation match {
        case files: HadoopFsRelation => writeFiles(relation, files)
        case jdbc: JDBCRelation =>
          val name = Support.attempt(Support.className(jdbc))(JdbcName.of(jdbc))
          writeKind("jdbc", tableName(relation).getOrElse(name))
        case other =>
          val source = Support.className(other)
          writeKind(if (source.toUpperCase.contains("JDBC")) "jdbc" else "other", tableName(relation).getOrElse(source))
      }
    case hive: HiveTableRelation =>
      writeKind("hive", hive.tableMeta.identifier.unquotedString)
    case memory: InMemoryRelation =>
      writeKind("memory", memory.cacheBuilder.tableName.getOrElse("cached"), LeafDetails.materializedRows(memory))
    case named: NamedRelation => writeKind("v2", Support.attempt("?")(named.name))
    case _: LogicalRDD => writeKind("rdd", "rdd")
    case other =>
      val name = Support.className(other)
      writeKind(if (name.startsWith("DataSourceV2")) "v2" else "other", name)
  }

  private def writeKind(kind: String, name: String, rows: Option[BigInt] = None): Unit = {
    out.writeObjectFieldStart("rel")
    out.writeStringField("kind", kind)
    out.writeStringField("name", name)
    rows.foreach(n => out.writeNumberField("rows", n.toDouble))
    out.writeEndObject()
  }

  private def writeFiles(relation: LogicalRelation, files: HadoopFsRelation): Unit = {
    val output = relation.output
    val partitionColumns = files.partitionSchema.fieldNames.flatMap(name => output.find(_.name == name))
    out.writeObjectFieldStart("rel")
    out.writeStringField("kind", "file")
    out.writeStringField("format", LeafDetails.format(files.fileFormat))
    out.writeStringField("name", LeafDetails.fileName(relation, files))
    // Of a catalog table whose partitions were pruned, it would be a partition's.
    if (relation.catalogTable.isEmpty) {
      LeafDetails.firstPath(files).foreach(path => out.writeStringField("path", path.toString))
      writeFurtherPaths(files)
    }
    FileListing.size(files).foreach(out.writeNumberField("bytes", _: Double))
    out.writeBooleanField("catalog", relation.catalogTable.exists(_.stats.isDefined))
    out.writeArrayFieldStart("partitionCols")
    partitionColumns.foreach(a => out.writeNumber(attributes.number(a)))
    out.writeEndArray()
    writeBuckets(relation, files)
    out.writeEndObject()
  }

  /** All paths of a relation that has several. */
  private def writeFurtherPaths(files: HadoopFsRelation): Unit = {
    val paths = Support.attempt(Seq.empty[String])(files.location.rootPaths.map(_.toString))
    if (paths.size > 1) {
      out.writeArrayFieldStart("paths")
      paths.foreach(out.writeString)
      out.writeEndArray()
    }
  }

  /** The columns by which the table is partitioned already, if Spark will read it by buckets. */
  private def writeBuckets(relation: LogicalRelation, files: HadoopFsRelation): Unit =
    for (buckets <- files.bucketSpec if files.sparkSession.sessionState.conf.bucketingEnabled) {
      val columns = buckets.bucketColumnNames.flatMap(name => relation.output.find(_.name.equalsIgnoreCase(name)))
      // With fewer buckets than shuffle partitions, Spark may shuffle both sides instead.
      val enough = buckets.numBuckets >= files.sparkSession.sessionState.conf.numShufflePartitions
      if (enough && columns.size == buckets.bucketColumnNames.size) {
        out.writeArrayFieldStart("buckets")
        columns.foreach(a => out.writeNumber(attributes.number(a)))
        out.writeEndArray()
      }
    }

  private def tableName(relation: LogicalRelation): Option[String] =
    relation.catalogTable.map(_.identifier.unquotedString)
}

private[pyjoinopt] object LeafDetails {

  def format(format: FileFormat): String = format match {
    case registered: DataSourceRegister => Support.attempt(Support.className(format))(registered.shortName())
    case other => Support.className(other).stripSuffix("FileFormat").toLowerCase
  }

  private def fileName(relation: LogicalRelation, files: HadoopFsRelation): String =
    relation.catalogTable
      .map(_.identifier.unquotedString)
      .orElse(firstPath(files).map(_.getName))
      .getOrElse("files")

  private def firstPath(files: HadoopFsRelation): Option[Path] =
    Support.attempt(Option.empty[Path])(files.location.rootPaths.headOption)

  /** The number of rows of cached data, if the data has been computed. */
  def materializedRows(memory: InMemoryRelation): Option[BigInt] =
    Support.attempt(Option.empty[BigInt]) {
      if (memory.cacheBuilder.isCachedColumnBuffersLoaded) memory.computeStats().rowCount else None
    }
}
