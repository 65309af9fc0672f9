package org.apache.spark.sql.pyjoinopt

import com.fasterxml.jackson.databind.JsonNode
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.expressions.{Attribute, Cast, Literal}
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/**
 * The statistics of a Delta table, from its log: rows, bounds and NULLs that whoever wrote a file left there.
 *
 * Law: they are of the version that the relation reads, and known again by that version.
 */
private[pyjoinopt] object DeltaStatistics {

  def applies(files: HadoopFsRelation): Boolean = files.location.getClass.getName.startsWith("org.apache.spark.sql.delta.")

  def read(session: Compat.Session, relation: LogicalRelation, wanted: Attribute => Boolean): Option[NodeFacts] =
    relation.relation match {
      case files: HadoopFsRelation if applies(files) =>
        for (table <- table(files); log <- DeltaLog.read(table, version(files), conf(session, files)))
          yield facts(relation, files, log, wanted).copy(files = Some(identity(relation, files, table, log)))
      case _ => None
    }

  def identify(session: Compat.Session, relation: LogicalRelation, files: HadoopFsRelation): Option[FileIdentity] =
    for (table <- table(files); log <- DeltaLog.read(table, version(files), conf(session, files)))
      yield identity(relation, files, table, log)

  private def table(files: HadoopFsRelation): Option[Path] = files.location.rootPaths.headOption

  private def conf(session: Compat.Session, files: HadoopFsRelation) =
    session.sessionState.newHadoopConfWithOptions(files.options)

  /** The version that the relation is bound to, if it says so. */
  private def version(files: HadoopFsRelation): Option[Long] = Support.attempt(Option.empty[Long]) {
    Some(files.location.getClass.getMethod("tableVersion").invoke(files.location)).collect {
      case version: java.lang.Long => version.longValue
    }
  }

  private def identity(relation: LogicalRelation, files: HadoopFsRelation, table: Path, log: DeltaSnapshot) =
    FileIdentity.named(
      relation, files, s"$table@${log.version}", log.files.length, log.files.map(_.bytes).sum, log.newest)

  private def facts(
      relation: LogicalRelation,
      files: HadoopFsRelation,
      log: DeltaSnapshot,
      wanted: Attribute => Boolean): NodeFacts = {
    val (bytes, told) = (log.files.map(_.bytes.toDouble).sum, log.files.filter(_.rows.isDefined))
    val unknown = NodeFacts(None, Some(bytes), "size", read = log.read)
    if (told.isEmpty && log.files.nonEmpty) unknown.copy(note = Some("its log holds no statistics"))
    else {
      val complete = told.length == log.files.length
      val scale = if (complete) 1.0 else bytes / math.max(1.0, told.map(_.bytes.toDouble).sum)
      val partitioned = files.partitionSchema.fieldNames.toSet
      val columns = relation.output.filter(wanted).map { attribute =>
        attribute -> (if (partitioned(attribute.name)) partition(attribute, log.files) else column(attribute, told, scale))
      }
      val rows = told.flatMap(_.rows).sum * scale
      NodeFacts(Some(rows), Some(bytes), "delta log", complete, columns, read = log.read)
    }
  }

  private def column(attribute: Attribute, told: Seq[DeltaFile], scale: Double): ColumnFacts = {
    val parts = told.filter(_.rows.exists(_ > 0)).flatMap(_.statistics).map { statistics =>
      val nulls = statistics.path("nullCount").path(attribute.name)
      val allNull = nulls.isNumber && nulls.asLong >= statistics.path("numRecords").asLong
      def end(field: String) = bound(statistics.path(field).path(attribute.name), attribute.dataType, field == "maxValues")
      val known = if (nulls.isNumber) Some(nulls.asDouble) else None
      FooterColumn(end("minValues"), end("maxValues"), known, allNull)
    }
    if (parts.isEmpty) ColumnFacts()
    else {
      val merged = parts.reduce(FileFooter.merge)
      ColumnFacts(None, merged.min, merged.max, merged.nulls.map(_ * scale))
    }
  }

  /** Timestamps are cut to milliseconds there. */
  private def bound(value: JsonNode, dataType: DataType, upper: Boolean): Option[Any] = dataType match {
    case _: IntegralType if value.isIntegralNumber => Some(value.asLong)
    case _: FractionalType if value.isNumber => Some(value.asDouble)
    case DateType if value.isTextual => cast(value.asText, dataType)
    case TimestampType | TimestampNTZType if value.isTextual =>
      cast(value.asText, dataType).map { case n: Long => n + (if (upper) 999L else 0L); case other => other }
    case _ => None
  }

  private def partition(attribute: Attribute, files: Seq[DeltaFile]): ColumnFacts = {
    val values = files.map(_.partition.getOrElse(attribute.name, null))
    val different = values.filter(_ != null).distinct
    val bounds = different.map(cast(_, attribute.dataType))
    def extreme(upper: Boolean) = if (bounds.isEmpty) None else bounds.reduce(NodeFacts.extreme(_, _, upper))
    val nulls = if (values.contains(null)) None else Some(0.0)
    ColumnFacts(Some(different.length.toDouble), extreme(upper = false), extreme(upper = true), nulls)
  }

  private def cast(text: String, dataType: DataType): Option[Any] = Support.attempt(Option.empty[Any]) {
    NodeFacts.bound(Cast(Literal(UTF8String.fromString(text), StringType), dataType, Some("UTC")).eval())
  }
}
