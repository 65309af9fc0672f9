package org.apache.spark.sql.pyjoinopt

import java.lang.reflect.Method

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation

/**
 * The statistics of an Iceberg table, from its metadata: rows from the summary and the manifest list of the snapshot
 * that the relation reads, distinct counts from the properties of its statistics files, which are not opened.
 *
 * Iceberg's own scan reports columns only under settings of the user's session, and may start a job to plan files.
 *
 * Laws: no Spark job and no scan; the manifest list is the only file that is read. A count is exact only if the list
 * and the summary agree and there are no delete files. A relation that reads anything but one snapshot of a table
 * (metadata, changes, a part), or with an unknown option, has no statistics. Classes and methods are found by
 * reflection, since the shim is compiled without Iceberg.
 */
private[pyjoinopt] object IcebergStatistics {
  val Source = "iceberg snapshot"
  private val Package = "org.apache.iceberg."
  private val Relation = s"${Package}spark.source.SparkTable"
  private val Tables = Set(s"${Package}BaseTable", s"${Package}rest.RESTTable")
  private val NewestFormat = 3

  /** Options of a reader that change how a table is read, not which rows. */
  private val Harmless =
    Set("split-size", "lookback", "file-open-cost", "vectorization-enabled", "batch-size", "locality",
      "aggregate-push-down-enabled", "path")
  private val Snapshot = "snapshot-id"
  private val Sketch = "apache-datasketches-theta-v1"

  def applies(relation: DataSourceV2Relation): Boolean = relation.table.getClass.getName.startsWith(Package)

  def read(session: Compat.Session, relation: DataSourceV2Relation, wanted: Attribute => Boolean): NodeFacts =
    Support.attempt(unknown("its metadata cannot be read")) {
      refusal(session, relation).fold {
        val table = call(relation.table, "table")
        snapshot(relation, table) match {
          case None => NodeFacts(Some(0), Some(0), Source, exact = true)
          case Some(null) => unknown("its snapshot is not there")
          case Some(snapshot) => facts(relation, table, snapshot, wanted)
        }
      }(unknown)
    }

  private def unknown(reason: String): NodeFacts = NodeFacts(None, None, "size", note = Some(reason))

  /** The reason why the relation has no statistics; None if it has. */
  private def refusal(session: Compat.Session, relation: DataSourceV2Relation): Option[String] = {
    val options = relation.options.keySet.toArray(Array.empty[String]).toList
    val read = relation.table.getClass.getName
    if (read != Relation) Some(s"nobody knows what rows ${Support.className(relation.table)} has")
    else {
      val table = call(relation.table, "table")
      if (!Tables(table.getClass.getName)) Some(s"nobody knows what rows ${Support.className(table)} has")
      else if (session.conf.getOption("spark.wap.id").orElse(session.conf.getOption("spark.wap.branch")).isDefined)
        Some("the session reads what was written for an audit")
      else options.find(option => !Harmless(option) && option != Snapshot).map(o => s"its reader has the option $o")
    }
  }

  private def number(relation: DataSourceV2Relation): Option[AnyRef] =
    Option(call(relation.table, "snapshotId"))
      .orElse(Option(relation.options.get(Snapshot)).map(text => java.lang.Long.valueOf(text)))

  /** The snapshot that is read; None if the table has no snapshot yet, Some(null) if the snapshot does not exist. */
  private def snapshot(relation: DataSourceV2Relation, table: AnyRef): Option[AnyRef] = {
    val branch = call(relation.table, "branch")
    number(relation) match {
      case Some(id) => Some(call(table, "snapshot", classOf[Long] -> id))
      case None if branch != null => Some(call(table, "snapshot", classOf[String] -> branch))
      case None => Option(call(table, "currentSnapshot"))
    }
  }

  private def facts(
      relation: DataSourceV2Relation,
      table: AnyRef,
      snapshot: AnyRef,
      wanted: Attribute => Boolean): NodeFacts = {
    val summary = call(snapshot, "summary").asInstanceOf[java.util.Map[String, String]]
    def total(name: String): Option[Double] =
      Option(summary).flatMap(s => Option(s.get(s"total-$name"))).flatMap(n =>
        Support.attempt(Option.empty[Double])(Some(n.toDouble)))
    val (rows, doubts) = counted(table, snapshot, total)
    rows match {
      case None => unknown("its snapshot does not tell how many rows it has").copy(bytes = total("files-size"))
      case Some(n) =>
        val different = distinct(table, snapshot, number(relation).isDefined)
        val columns = relation.output.filter(wanted).flatMap { attribute =>
          different.get(attribute.name).map(ndv => attribute -> ColumnFacts(Some(math.min(ndv, n))))
        }
        NodeFacts(Some(n), total("files-size"), Source, doubts.isEmpty, columns, note = doubts.headOption)
    }
  }

  /** The number of rows, and the reasons why it may be wrong. */
  private def counted(
      table: AnyRef,
      snapshot: AnyRef,
      total: String => Option[Double]): (Option[Double], Seq[String]) = {
    val summed = total("records")
    val listed = Support.attempt(Option.empty[(Double, Int)])(Some(manifests(table, snapshot)))
    val format = Support.attempt(Int.MaxValue) {
      call(call(call(table, "operations"), "current"), "formatVersion").asInstanceOf[Integer].intValue
    }
    val empty = listed.exists(_._1 == 0)
    val deleted = Seq("position-deletes", "equality-deletes", "delete-files").flatMap(total(_).toList).sum
    val doubts = Seq(
      (format > NewestFormat) -> s"its format has version $format, which is not known",
      listed.isEmpty -> "its list of manifests cannot be read",
      (listed.isDefined && !listed.map(_._1).exists(summed.contains)) -> "its summary and its manifests do not agree",
      (!empty && (deleted > 0 || listed.exists(_._2 > 0))) -> "rows are deleted in files beside the data"
    )
    val all = listed.map(_._1).orElse(summed)
    (
      all.map(n => math.max(0.0, n - total("position-deletes").getOrElse(0.0))),
      doubts.collect { case (true, why) => why })
  }

  /** The rows of the data files by the manifest list, and the number of manifests of delete files. */
  private def manifests(table: AnyRef, snapshot: AnyRef): (Double, Int) = {
    val files = call(table, "io")
    val io = Class.forName(s"${Package}io.FileIO", false, files.getClass.getClassLoader)
    def each(method: String): List[AnyRef] =
      elements(call(snapshot, method, io.asInstanceOf[Class[AnyRef]] -> files))
    val rows = each("dataManifests").map { manifest =>
      Seq("addedRowsCount", "existingRowsCount").map(call(manifest, _).asInstanceOf[java.lang.Long].doubleValue).sum
    }
    (rows.sum, each("deleteManifests").length)
  }

  /**
   * Distinct counts by column, from the statistics of this snapshot, or else of its nearest ancestor with statistics.
   */
  private def distinct(table: AnyRef, snapshot: AnyRef, pinned: Boolean): Map[String, Double] =
    Support.attempt(Map.empty[String, Double]) {
      val files = elements(call(table, "statisticsFiles")).map(file => call(file, "snapshotId") -> file).toMap
      val line = new mutable.ListBuffer[AnyRef]
      var at = snapshot
      while (at != null && line.length < MaxAncestors) {
        line += call(at, "snapshotId")
        val parent = call(at, "parentId")
        at = if (parent == null) null else call(table, "snapshot", classOf[Long] -> parent)
      }
      val schema = if (pinned) schemaOf(table, snapshot) else call(table, "schema")
      line.flatMap(files.get(_).toList).headOption.toList.flatMap(file =>
        elements(call(file, "blobMetadata"))).flatMap { blob =>
        val fields = elements(call(blob, "fields"))
        val counted = Option(call(blob, "properties").asInstanceOf[java.util.Map[String, String]].get("ndv"))
        if (call(blob, "type") != Sketch || fields.length != 1) None
        else for (n <- counted; name <- Option(call(schema, "findColumnName", classOf[Int] -> fields.head)))
          yield name.toString -> n.toDouble
      }.toMap
    }

  private val MaxAncestors = 100

  /** The schema of a snapshot: a query that names a snapshot uses the names of columns of that time. */
  private def schemaOf(table: AnyRef, snapshot: AnyRef): AnyRef =
    Option(call(snapshot, "schemaId")).map(call(table, "schemas").asInstanceOf[java.util.Map[AnyRef, AnyRef]].get(_))
      .filter(_ != null).getOrElse(call(table, "schema"))

  private def elements(list: AnyRef): List[AnyRef] = {
    val found = new mutable.ListBuffer[AnyRef]
    list.asInstanceOf[java.lang.Iterable[AnyRef]].forEach(found += _)
    found.toList
  }

  /** Calls a public method by name; its class need not be public. */
  private def call(target: AnyRef, method: String, arguments: (Class[_], AnyRef)*): AnyRef = {
    val types = arguments.map(_._1)
    val found: Method = target.getClass.getMethod(method, types: _*)
    found.setAccessible(true)
    found.invoke(target, arguments.map(_._2): _*)
  }
}
