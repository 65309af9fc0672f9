package org.apache.spark.sql.pyjoinopt

import java.util.concurrent.TimeUnit

import com.fasterxml.jackson.core.JsonGenerator
import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.catalyst.analysis.{EliminateSubqueryAliases, EliminateView, UpdateAttributeNullability}
import org.apache.spark.sql.catalyst.catalog.{CatalogTable, HiveTableRelation}
import org.apache.spark.sql.catalyst.expressions.{Attribute, ExprId}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.columnar.InMemoryRelation
import org.apache.spark.sql.execution.datasources.{CatalogFileIndex, HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.internal.SQLConf

/**
 * How many rows, how many bytes, which values: what can be known of a node without running anything.
 *
 * The ladder for a leaf: the catalog's counts (ANALYZE), then file footers or the width of a text line, then what lies
 * in memory, then only the size. Each is taken only if it is asked for, by "source" or, one by one, by "sources". Asked
 * for "catalyst", Catalyst's own estimate of any plan, also of one that exists only as edits.
 *
 * Laws: no Spark job is started. One node that cannot be read is told as its error and spoils no other. Nothing is
 * left behind in the plan: estimates are computed on clones, because nodes cache theirs under whatever settings held.
 */
private[pyjoinopt] final class NodeStatistics(handle: Handle, request: JsonNode) {
  private val source = request.path("source").asText("auto")
  private val conf =
    SessionConf.changed(handle.session, Map(SQLConf.CBO_ENABLED.key -> request.path("cbo").asBoolean(true).toString))
  private val numbers: Map[ExprId, Int] = handle.attributes.zipWithIndex.map { case (a, i) => a.exprId -> i }.toMap

  def run(): String = SQLConf.withExistingConf(conf)(Support.json { out =>
    out.writeStartObject()
    out.writeObjectFieldStart("nodes")
    ExpressionBuilder.elements(request.get("nodes")).map(_.asInt).foreach { n =>
      out.writeFieldName(n.toString)
      val wanted = wantedColumns(n)
      def node = handle.nodes.applyOrElse(n, (_: Int) => Support.fail(s"There is no node $n."))
      writeOne(out, wanted)(facts(node, wanted))
    }
    out.writeEndObject()
    if (request.has("plans")) writePlans(out)
    out.writeEndObject()
  })

  /** Catalyst's estimates of plans that the edits describe. */
  private def writePlans(out: JsonGenerator): Unit = {
    val edits = Support.mapper.createObjectNode()
    edits.set[JsonNode]("exprs", request.get("exprs"))
    edits.set[JsonNode]("nodes", request.get("edits"))
    val rebuilder = new PlanRebuilder(handle, edits)
    out.writeArrayFieldStart("plans")
    ExpressionBuilder.elements(request.get("plans")).foreach { reference =>
      writeOne(out, _ => true)(catalyst(UpdateAttributeNullability(rebuilder.plan(reference))))
    }
    out.writeEndArray()
  }

  /** Of a wide table only some columns are asked for. */
  private def wantedColumns(node: Int): Attribute => Boolean = {
    val listed = request.path("columns").get(node.toString)
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

  private def facts(node: LogicalPlan, wanted: Attribute => Boolean): NodeFacts =
    if (source == "catalyst") catalyst(node) else cached(node).getOrElse(identified(node, read(node, wanted)))

  private def cached(node: LogicalPlan): Option[NodeFacts] =
    if (!wants("memory") || handle.session.sharedState.cacheManager.isEmpty) None
    else Compat.cachedData(handle.session, node).filter(LeafDetails.materializedRows(_).isDefined).map(memory)

  private def read(node: LogicalPlan, wanted: Attribute => Boolean): NodeFacts = node match {
    case relation: LogicalRelation if isCounted(relation.catalogTable) => catalog(relation, relation.catalogTable)
    case hive: HiveTableRelation if isCounted(Some(hive.tableMeta)) => catalog(hive, Some(hive.tableMeta))
    case relation: LogicalRelation if wants("footers") || wants("text") =>
      FileStatistics.read(handle.session, relation, limits, wanted, wants).getOrElse(size(relation))
    case local: LocalRelation => LocalStatistics.of(local)
    case _: OneRowRelation => NodeFacts(Some(1), Some(1), "local", exact = true)
    case result: CommandResult => NodeFacts(Some(result.rows.length.toDouble), None, "local", exact = true)
    case range: Range => NodeFacts.of(range.computeStats(), "local", exact = true)
    case relation: InMemoryRelation if LeafDetails.materializedRows(relation).isDefined => memory(relation)
    case other => size(other)
  }

  /**
   * With which files these are, if that is asked. They also tell whether the catalog's counts can be of today; but the
   * catalog is not asked for all partitions only to tell that.
   */
  private def identified(node: LogicalPlan, known: NodeFacts): NodeFacts = node match {
    case relation: LogicalRelation if known.source == "catalog" && inCatalog(relation) => known
    case relation: LogicalRelation if request.path("identity").asBoolean && known.files.isEmpty =>
      Support.attempt(Option.empty[FileIdentity])(FileStatistics.identify(handle.session, relation, limits)) match {
        case Some(files) if known.source == "catalog" => known.copy(files = Some(files), note = files.note)
        case files => known.copy(files = files)
      }
    case _ => known
  }

  private def inCatalog(relation: LogicalRelation): Boolean = relation.relation match {
    case files: HadoopFsRelation => files.location.isInstanceOf[CatalogFileIndex]
    case _ => false
  }

  private def wants(what: String): Boolean =
    if (request.has("sources")) asked(what) else what != "text" && (source == "auto" || source == what)

  private lazy val asked: Set[String] = ExpressionBuilder.elements(request.get("sources")).map(_.asText).toSet

  private val started = System.nanoTime

  /** For the next node. However many there are, together they have `totalMs`. */
  private def limits = {
    def nanos(field: String, default: Long) = TimeUnit.MILLISECONDS.toNanos(request.path(field).asLong(default))
    FileStatistics.Limits(
      request.path("maxFiles").asInt(64),
      request.path("maxBytes").asLong(64L << 20),
      until = math.min(System.nanoTime + nanos("deadlineMs", 2000), started + nanos("totalMs", 10000)))
  }

  private def isCounted(table: Option[CatalogTable]): Boolean =
    wants("catalog") && table.flatMap(_.stats).exists(_.rowCount.isDefined)

  /** The catalog's statistics, with the stored size instead of Spark's rows times width. */
  private def catalog(leaf: LeafNode, table: Option[CatalogTable]): NodeFacts =
    NodeFacts.of(leaf.computeStats(), "catalog").copy(bytes = table.flatMap(_.stats).map(_.sizeInBytes.toDouble))

  private def memory(relation: InMemoryRelation): NodeFacts = {
    val statistics = relation.computeStats()
    NodeFacts.of(statistics, "memory", exact = true).copy(columns = Nil)
  }

  private def size(node: LogicalPlan): NodeFacts = node match {
    case leaf: LeafNode => NodeFacts.of(leaf.computeStats(), "size")
    case other => catalyst(other)
  }

  /** What Catalyst would estimate after its first optimizer batch. */
  private def catalyst(plan: LogicalPlan): NodeFacts = {
    val bare = EliminateView(EliminateSubqueryAliases(plan.clone()))
    bare.invalidateStatsCache()
    NodeFacts.of(bare.stats, "catalyst")
  }
}

/** The settings of a session with a few changed, for one computation. */
private[pyjoinopt] object SessionConf {
  def changed(session: Compat.Session, settings: Map[String, String]): SQLConf = {
    val conf = session.sessionState.conf.clone()
    settings.foreach { case (key, value) => conf.setConfString(key, value) }
    conf
  }
}
