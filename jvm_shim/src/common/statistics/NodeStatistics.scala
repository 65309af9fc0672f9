package org.apache.spark.sql.pyjoinopt

import java.util.concurrent.TimeUnit

import scala.util.Try

import com.fasterxml.jackson.core.JsonGenerator
import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.catalyst.analysis.{EliminateSubqueryAliases, EliminateView}
import org.apache.spark.sql.catalyst.catalog.{CatalogTable, HiveTableRelation}
import org.apache.spark.sql.catalyst.expressions.{Attribute, ExprId, Expression}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.columnar.InMemoryRelation
import org.apache.spark.sql.execution.datasources.{CatalogFileIndex, HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.internal.SQLConf

/**
 * The statistics of nodes of an export that are available without a query: rows, bytes, columns.
 *
 * For a leaf the first available source counts: the catalog (ANALYZE), that of a database, file footers or the width of
 * a text line, cached data in memory, the size. The request names the sources, by "source" or as a list by "sources". With the source
 * "catalyst" the result is Catalyst's own estimate, for any node.
 *
 * Laws: no Spark job is started. A node that cannot be read is answered by its error and does not affect the others.
 * The plan is not changed: estimates are computed on clones, because nodes cache their statistics for the settings of
 * the first call.
 */
private[pyjoinopt] final class NodeStatistics(handle: Handle, request: JsonNode) {
  private val source = request.path("source").asText("auto")

  /** Lazy: copying the settings of a session takes longer than reading a table's counts, and few requests need it. */
  private lazy val withCounts = SessionConf.changed(handle.session, Map(SQLConf.CBO_ENABLED.key -> "true"))
  private val numbers: Map[ExprId, Int] = handle.attributes.zipWithIndex.map { case (a, i) => a.exprId -> i }.toMap

  def run(): String = Support.json { out =>
    out.writeStartObject()
    out.writeObjectFieldStart("nodes")
    // All reads start before the first wait.
    val begun = ExpressionBuilder.elements(request.get("nodes")).map(_.asInt).map { n =>
      n -> Try(facts(handle.nodes.applyOrElse(n, (_: Int) => Support.fail(s"There is no node $n.")), n))
    }
    begun.foreach { case (n, known) =>
      out.writeFieldName(n.toString)
      writeOne(out, columnsOf("columns", n))(known.get())
    }
    out.writeEndObject()
    out.writeEndObject()
  }

  /** The columns of a node that a field of the request lists; all if it lists none. */
  private def columnsOf(field: String, node: Int): Attribute => Boolean = {
    val listed = request.path(field).get(node.toString)
    if (listed == null) _ => true
    else {
      val wanted = ExpressionBuilder.elements(listed).map(_.asInt).toSet
      a => numbers.get(a.exprId).exists(wanted)
    }
  }

  private def writeOne(out: JsonGenerator, wanted: Attribute => Boolean)(facts: => NodeFacts): Unit = {
    var problem = "not readable"
    val found = Support.attempt(Option.empty[NodeFacts]) {
      try Some(facts)
      catch { case error: Throwable => problem = String.valueOf(error.getMessage); throw error }
    }
    found match {
      case Some(known) => known.write(out, (a: Attribute) => numbers.get(a.exprId).filter(_ => wanted(a)))
      case None =>
        out.writeStartObject()
        out.writeStringField("error", Support.cut(problem))
        out.writeEndObject()
    }
  }

  private def facts(node: LogicalPlan, number: Int): () => NodeFacts =
    if (source == "catalyst") now(refused(node).getOrElse(catalyst(node)))
    else
      cached(node).map(now(_)).getOrElse {
        val partitions = partitionFilters(node, number)
        val known = read(node, number, partitions)
        () => identified(node, known(), partitions)
      }

  private def now(facts: NodeFacts): () => NodeFacts = () => facts

  private def cached(node: LogicalPlan): Option[NodeFacts] =
    if (!wants("memory") || handle.session.sharedState.cacheManager.isEmpty) None
    else Compat.cachedData(handle.session, node).filter(LeafDetails.materializedRows(_).isDefined).map(memory)

  private def read(node: LogicalPlan, number: Int, partitions: Seq[Expression]): () => NodeFacts = node match {
    case relation: LogicalRelation if isCounted(relation.catalogTable) => now(catalog(relation, relation.catalogTable))
    case hive: HiveTableRelation if isCounted(Some(hive.tableMeta)) => now(catalog(hive, Some(hive.tableMeta)))
    case relation if wants("database") && PostgresStatistics.optionsOf(relation).isDefined =>
      val wait = request.path("databaseMs").asLong(DatabaseMs)
      PostgresStatistics.begin(relation, PostgresStatistics.optionsOf(relation).get, wait)
    case relation: LogicalRelation if wants("footers") || wants("text") =>
      val wanted = FileStatistics.Wanted(
        columnsOf("columns", number),
        columnsOf("distinct", number),
        wants,
        partitions)
      FileStatistics.begin(handle.session, relation, limits, wanted).getOrElse(now(size(relation)))
    case local: LocalRelation => now(LocalStatistics.of(local))
    case _: OneRowRelation => now(NodeFacts(Some(1), Some(1), "local", exact = true))
    case result: CommandResult => now(NodeFacts(Some(result.rows.length.toDouble), None, "local", exact = true))
    case range: Range => now(NodeFacts.of(range.computeStats(), "local", exact = true))
    case relation: InMemoryRelation if LeafDetails.materializedRows(relation).isDefined => now(memory(relation))
    case other => now(size(other))
  }

  /** The filters on partition columns in the request. */
  private def partitionFilters(node: LogicalPlan, number: Int): Seq[Expression] = node match {
    case relation: LogicalRelation => expressions.partitions(relation, request.path("partitions").get(number.toString))
    case _ => Nil
  }

  private lazy val expressions = new RequestExpressions(handle, request)

  /**
   * Adds the identity of the files, if it is requested. With it, outdated counts of the catalog are noticed; but for
   * that alone the catalog is not queried for all partitions.
   */
  private def identified(node: LogicalPlan, known: NodeFacts, partitions: Seq[Expression]): NodeFacts = node match {
    case relation: LogicalRelation if known.source == "catalog" && inCatalog(relation) => known
    case relation: LogicalRelation if request.path("identity").asBoolean && known.files.isEmpty =>
      def identify(only: Seq[Expression]) = Support.attempt(Option.empty[FileIdentity])(
        FileStatistics.identify(handle.session, relation, limits, only))
      if (known.source == "catalog") identify(Nil).fold(known)(f => known.copy(files = Some(f), note = f.note))
      else if (partitions.isEmpty) {
        val files = identify(Nil)
        known.copy(
          files = files,
          note = if (files.isEmpty && inCatalog(relation)) Some(NodeStatistics.NotListed) else known.note)
      } else {
        val whole = if (inCatalog(relation)) None else identify(Nil)
        identify(partitions) match {
          case None => known.copy(files = whole)
          case some => known.copy(files = some, pruned = true, whole = whole)
        }
      }
    case _ => known
  }

  private def inCatalog(relation: LogicalRelation): Boolean = relation.relation match {
    case files: HadoopFsRelation => files.location.isInstanceOf[CatalogFileIndex]
    case _ => false
  }

  private def wants(what: String): Boolean =
    if (request.has("sources")) requested(what) else what != "text" && (source == "auto" || source == what)

  private val DatabaseMs = 500L

  private lazy val requested: Set[String] = ExpressionBuilder.elements(request.get("sources")).map(_.asText).toSet

  private val started = System.nanoTime

  /** For the next node; all nodes together have `totalMs`. */
  private def limits = {
    def nanos(field: String, default: Long) = TimeUnit.MILLISECONDS.toNanos(request.path(field).asLong(default))
    FileStatistics.Limits(
      request.path("maxFiles").asInt(64),
      request.path("maxBytes").asLong(64L << 20),
      until = math.min(System.nanoTime + nanos("deadlineMs", 2000), started + nanos("totalMs", 10000))
    )
  }

  private def isCounted(table: Option[CatalogTable]): Boolean =
    wants("catalog") && table.flatMap(_.stats).exists(_.rowCount.isDefined)

  /** The catalog's statistics, with the stored size instead of Spark's rows times width. */
  private def catalog(leaf: LeafNode, table: Option[CatalogTable]): NodeFacts = {
    val counted = table.flatMap(_.stats)
    val facts = counted.fold(size(leaf))(counts => NodeFacts.of(counts.toPlanStats(leaf.output, true), "catalog"))
    facts.copy(bytes = counted.map(_.sizeInBytes.toDouble))
  }

  private def memory(relation: InMemoryRelation): NodeFacts = {
    val statistics = relation.computeStats()
    NodeFacts.of(statistics, "memory", exact = true).copy(columns = Nil)
  }

  private def size(node: LogicalPlan): NodeFacts = node match {
    case relation: LogicalRelation => refused(relation).orElse(delta(relation)).getOrElse(
        NodeFacts.of(relation.computeStats(), "size"))
    case v2: DataSourceV2Relation if IcebergStatistics.applies(v2) =>
      IcebergStatistics.read(handle.session, v2, _ => true)
    case v2: DataSourceV2Relation => counted(v2).copy(keys = DeclaredKeys.of(v2.table))
    case leaf: LeafNode => counted(leaf)
    case other => catalyst(other)
  }

  private def counted(leaf: LeafNode): NodeFacts =
    SQLConf.withExistingConf(withCounts)(NodeFacts.of(leaf.computeStats(), "size"))

  /** The reason why a relation of files is not read, unless the catalog has its counts. */
  private def refused(node: LogicalPlan): Option[NodeFacts] = node match {
    case relation: LogicalRelation if !relation.catalogTable.flatMap(_.stats).exists(_.rowCount.isDefined) =>
      relation.relation match {
        case files: HadoopFsRelation =>
          FileListing.refusal(files).map(reason => NodeFacts(None, None, "size", note = Some(reason)))
        case _ => None
      }
    case _ => None
  }

  /** Not by Spark, which gets the size from Delta, perhaps by a job. */
  private def delta(relation: LogicalRelation): Option[NodeFacts] = relation.relation match {
    case files: HadoopFsRelation if DeltaStatistics.applies(files) =>
      Some(NodeFacts(None, DeltaStatistics.size(files), "size"))
    case _ => None
  }

  /** What Catalyst would estimate after its first optimizer batch. */
  private def catalyst(plan: LogicalPlan): NodeFacts = {
    val bare = EliminateView(EliminateSubqueryAliases(plan.clone()))
    bare.invalidateStatsCache()
    SQLConf.withExistingConf(withCounts)(NodeFacts.of(bare.stats, "catalyst"))
  }
}

private[pyjoinopt] object NodeStatistics {
  private val NotListed = "its files are not listed: that would take a job, or too long"
}

/** The settings of a session with a few changed, for one computation. */
private[pyjoinopt] object SessionConf {
  def changed(session: Compat.Session, settings: Map[String, String]): SQLConf = {
    val conf = session.sessionState.conf.clone()
    settings.foreach { case (key, value) => conf.setConfString(key, value) }
    conf
  }
}
