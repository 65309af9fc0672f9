package org.apache.spark.sql.pyjoinopt

import com.fasterxml.jackson.databind.JsonNode
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.expressions.{Attribute, Cast, Literal}
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/**
 * The statistics of a Delta table, from its log: rows, bounds and NULL counts that the writers of its files recorded.
 *
 * Laws: they are those of the version that the relation reads, and the version is part of their identity. Only a
 * relation that reads a whole table, at a fixed version or at the newest one, has statistics: Delta has other file
 * indexes, over some files of a table or over changes. A count is exact only if the log has no doubts.
 */
private[pyjoinopt] object DeltaStatistics {
  private val WholeTable = "org.apache.spark.sql.delta.files.TahoeLogFileIndex"

  /** The table's folder, the version if the query fixes one, and the newest version that Delta has read. */
  private final case class Source(table: Path, at: Option[Long], least: Long)

  def applies(files: HadoopFsRelation): Boolean =
    files.location.getClass.getName == WholeTable && source(files).isDefined

  /** The bytes of the table, if a checksum file has them: Delta would start a job to compute them. */
  def size(files: HadoopFsRelation): Option[Double] = Support.attempt(Option.empty[Double]) {
    source(files).flatMap { from =>
      val snapshot =
        if (from.at.isDefined) call(files.location, "snapshotAtAnalysis")
        else call(call(files.location, "deltaLog"), "unsafeVolatileSnapshot")
      call(snapshot, "checksumOpt").asInstanceOf[Option[AnyRef]].map(
        call(_, "tableSizeBytes").asInstanceOf[Long].toDouble)
    }
  }

  private def call(target: AnyRef, method: String): AnyRef = target.getClass.getMethod(method).invoke(target)

  def read(session: Compat.Session, relation: LogicalRelation, wanted: Attribute => Boolean): Option[NodeFacts] =
    found(session, relation).map { case (files, source, log) =>
      val doubts = log.doubts ++ stale(session, source)
      facts(relation, files, log, doubts, wanted).copy(files = Some(identity(relation, files, source, log)))
    }

  def identify(session: Compat.Session, relation: LogicalRelation, files: HadoopFsRelation): Option[FileIdentity] =
    found(session, relation).map { case (_, source, log) => identity(relation, files, source, log) }

  private def found(
      session: Compat.Session,
      relation: LogicalRelation): Option[(HadoopFsRelation, Source, DeltaSnapshot)] =
    relation.relation match {
      case files: HadoopFsRelation if files.location.getClass.getName == WholeTable =>
        for (from <- source(files); log <- DeltaLog.read(from.table, from.at, from.least, conf(session, files)))
          yield (files, from, log)
      case _ => None
    }

  /** A query without a version reads the newest one when it runs. */
  private def source(files: HadoopFsRelation): Option[Source] = Support.attempt(Option.empty[Source]) {
    val index = files.location
    val version = call(index, "version").asInstanceOf[java.lang.Long].longValue
    val fixed = call(index, "isTimeTravelQuery").asInstanceOf[java.lang.Boolean].booleanValue
    val whole = call(index, "partitionFilters").asInstanceOf[scala.collection.Seq[_]].isEmpty
    if (whole) index.rootPaths.headOption.map(Source(_, if (fixed) Some(version) else None, version)) else None
  }

  private val Staleness = "spark.databricks.delta.stalenessLimit"

  private def stale(session: Compat.Session, source: Source): Option[String] =
    if (source.at.isDefined || session.conf.get(Staleness, "0").trim.startsWith("0")) None
    else Some(s"by $Staleness an older version may be read")

  private def conf(session: Compat.Session, files: HadoopFsRelation) =
    session.sessionState.newHadoopConfWithOptions(files.options)

  /** A table that was created again in the same folder may have the same version, but it has other commits. */
  private def identity(relation: LogicalRelation, files: HadoopFsRelation, source: Source, log: DeltaSnapshot) = {
    val bytes = log.files.map(_.bytes).sum
    val name = s"${source.table}@${log.version} ${log.newest} $bytes ${log.files.length}"
    FileIdentity.named(relation, files, name, log.files.length, bytes, log.newest)
  }

  private def facts(
      relation: LogicalRelation,
      files: HadoopFsRelation,
      log: DeltaSnapshot,
      doubts: Seq[String],
      wanted: Attribute => Boolean): NodeFacts = {
    val (bytes, counted) = (log.files.map(_.bytes.toDouble).sum, log.files.filter(_.rows.isDefined))
    val note = doubts.headOption
    if (counted.isEmpty && (log.files.nonEmpty || note.isDefined)) {
      val reason = note.orElse(Some("its log holds no statistics"))
      NodeFacts(None, if (log.files.isEmpty) None else Some(bytes), "size", read = log.read, note = reason)
    } else {
      val complete = counted.length == log.files.length
      val scale = if (complete) 1.0 else bytes / math.max(1.0, counted.map(_.bytes.toDouble).sum)
      val partitioned = files.partitionSchema.fieldNames.toSet
      val columns = relation.output.filter(wanted).flatMap { attribute =>
        log.physical.flatMap(_.get(attribute.name)).map { name =>
          attribute ->
            (if (partitioned(attribute.name)) partition(attribute, name, log.files)
             else column(attribute, name, counted, scale))
        }
      }
      val rows = counted.flatMap(_.rows).sum * scale
      NodeFacts(Some(rows), Some(bytes), "delta log", complete && note.isEmpty, columns, note = note, read = log.read)
    }
  }

  /** With a deletion vector, bounds may be too wide, and the NULL count is that of an earlier version. */
  private def column(attribute: Attribute, name: String, counted: Seq[DeltaFile], scale: Double): ColumnFacts = {
    val parts = counted.filter(_.rows.exists(_ > 0)).flatMap(_.statistics).map { statistics =>
      val nulls = statistics.path("nullCount").path(name)
      val all = statistics.path("numRecords").asLong
      val allNull = nulls.isNumber && nulls.asLong >= all
      def end(field: String) = bound(statistics.path(field).path(name), attribute.dataType, field == "maxValues")
      val sure = statistics.path("tightBounds").asBoolean(true) || nulls.asLong == 0 || allNull
      val known = if (nulls.isNumber && sure) Some(nulls.asDouble) else None
      FooterColumn(end("minValues"), end("maxValues"), known, allNull)
    }
    if (parts.isEmpty) ColumnFacts()
    else {
      val merged = parts.reduce(FileFooter.merge)
      ColumnFacts(None, merged.min, merged.max, merged.nulls.map(_ * scale))
    }
  }

  /** The log truncates timestamps to milliseconds. */
  private def bound(value: JsonNode, dataType: DataType, upper: Boolean): Option[Any] = dataType match {
    case _: IntegralType if value.isIntegralNumber => Some(value.asLong)
    case _: FractionalType if value.isNumber => Some(value.asDouble)
    case DateType if value.isTextual => cast(value.asText, dataType)
    case TimestampType | TimestampNTZType if value.isTextual =>
      cast(value.asText, dataType).map { case n: Long => n + (if (upper) 999L else 0L); case other => other }
    case _ => None
  }

  private def partition(attribute: Attribute, name: String, files: Seq[DeltaFile]): ColumnFacts = {
    val values = files.map(_.partition.getOrElse(name, null)).map(text => if (text == "") null else text)
    val different = values.filter(_ != null).distinct
    // The time zone of written timestamps is that of the writing session, which is unknown.
    val bounds = if (attribute.dataType == TimestampType) Nil else different.map(cast(_, attribute.dataType))
    def extreme(upper: Boolean) = if (bounds.isEmpty) None else bounds.reduce(NodeFacts.extreme(_, _, upper))
    val nulls = if (values.contains(null)) None else Some(0.0)
    ColumnFacts(Some(different.length.toDouble), extreme(upper = false), extreme(upper = true), nulls)
  }

  private def cast(text: String, dataType: DataType): Option[Any] = Support.attempt(Option.empty[Any]) {
    NodeFacts.bound(Cast(Literal(UTF8String.fromString(text), StringType), dataType, Some("UTC")).eval())
  }
}
