package org.apache.spark.sql.pyjoinopt

import java.nio.charset.StandardCharsets.UTF_8
import java.util.Base64

import scala.xml.{Node, NodeSeq}

import com.fasterxml.jackson.databind.JsonNode
import org.json4s.JValue
import org.json4s.jackson.JsonMethods

import org.apache.spark.ui.{UIUtils, WebUIPage}

/**
 * The page of one query: its orders and join graphs as pictures, its joins with estimated and counted rows, hints, and
 * what is left as written.
 *
 * Law: a picture of an event log is embedded as an image, in which browsers run no scripts and load nothing.
 */
private[pyjoinopt] final class QueryPage(tab: JoinOrdersTab) extends WebUIPage("query") {
  override def render(request: Compat.HttpServletRequest): Seq[Node] = {
    val number = PageParts.number(request, "id", 0)
    val base = UIUtils.prependBaseUri(request, tab.basePath)
    val content = tab.store.query(number) match {
      case None => <div class="joinorders"><p>{s"There is no query $number here, or no more."}</p></div>
      case Some(query) => body(base, query, new EstimatedTimes(tab.store.all), tab.store.details(number))
    }
    Compat.headerSparkPage(request, s"Join orders of query $number", content, tab)
  }

  override def renderJson(request: Compat.HttpServletRequest): JValue =
    JsonMethods.fromJsonNode(
      JoinOrdersJson.one(tab.store, PageParts.number(request, "id", 0)).getOrElse(Support.mapper.createObjectNode()))

  private def body(base: String, query: QueryOrders, times: EstimatedTimes, details: JsonNode): NodeSeq = {
    val plans = elements(details.get("plans"))
    val counted = CountedJoins(details.path("joins"), plans)
    <div class="joinorders">
      {PageParts.style}
      {summary(base, query, times)}
      {plans.zipWithIndex.map { case (plan, i) => new PlanSection(plan, counted, i, plans.size).nodes }}
      <p>{PageParts.link(s"$base/${JoinOrdersTab.Prefix}/query/json/?id=${query.number}", "This query as JSON")}</p>
    </div>
  }

  private def summary(base: String, query: QueryOrders, times: EstimatedTimes): NodeSeq = {
    val duration = query.duration(System.currentTimeMillis)
    val costs = if (query.costBefore < 0) ""
    else
      s"${PageParts.cost(query.costBefore)} as written, ${PageParts.cost(query.costAfter)} in the chosen order"
    val asWritten = times.asWritten(query).fold("")(time => s", ${PageParts.time(Some(time))} in the order as written")
    val rows = Seq[(String, NodeSeq)](
      "Query" -> text(PageParts.title(query)),
      "SQL execution" -> PageParts.execution(base, query),
      "Status" -> text(query.status),
      "Error" -> text(query.error),
      "Submitted" -> text(UIUtils.formatDate(query.started)),
      "Duration" -> text(if (duration < 0) "" else UIUtils.formatDuration(duration)),
      "Estimated duration" -> text(times.ofRun(query).fold("")(time => PageParts.time(Some(time)) + asWritten)),
      "Changed" -> text(if (query.changed) "yes" else "no"),
      "Cost" -> text(costs),
      "Planning" -> text(PageParts.planning(query)),
      "Outcome" -> text(query.outcomes)
    )
    <ul class="list-unstyled">
      {rows.filter(_._2.nonEmpty).map { case (name, value) => <li><strong>{name}: </strong>{value}</li> }}
    </ul>
  }

  private def text(value: String): NodeSeq = if (value.isEmpty) NodeSeq.Empty else scala.xml.Text(value)

  private def elements(node: JsonNode): List[JsonNode] = ExpressionBuilder.elements(node)
}

/** Rows that operators have counted, by the relations that they join. */
private final class CountedJoins(rows: Map[Set[String], Double]) {
  def apply(relations: Seq[String]): Option[Double] = rows.get(relations.toSet)
}

private object CountedJoins {

  /** Relations have names that are unique in their join group. Joins of the same names in several groups have no count. */
  def apply(joins: JsonNode, plans: Seq[JsonNode]): CountedJoins = {
    val groups = for (plan <- plans; kind <- Seq("groups", "pairs"); group <- elements(plan.path("report"), kind))
      yield Seq("estimated_rows", "joins_before").flatMap(elements(group, _)).map(names).distinct
    val counted = elements(joins).map(join => names(join) -> join.path("counted").asDouble)
    val several = repeated(groups.flatten) ++ repeated(counted.map(_._1))
    new CountedJoins(counted.filterNot { case (relations, _) => several(relations) }.toMap)
  }

  private def repeated(found: Seq[Set[String]]): Set[Set[String]] =
    found.groupBy(identity).collect { case (relations, all) if all.size > 1 => relations }.toSet

  private def names(join: JsonNode): Set[String] = elements(join, "relations").map(_.asText).toSet

  private def elements(node: JsonNode, name: String): List[JsonNode] = elements(node.get(name))

  private def elements(node: JsonNode): List[JsonNode] = ExpressionBuilder.elements(node)
}

private object PlanSection {

  /** Bytes of all pictures of a plan, unpacked. */
  val MaxPictures: Int = 2 << 20
}

/** What the page has of one plan: the query, or a subquery of it. */
private final class PlanSection(plan: JsonNode, counted: CountedJoins, index: Int, plans: Int) {
  private val report = plan.path("report")
  private val drawn = Option(plan.path("pictures").textValue).fold(Support.parse("")) { packed =>
    Support.attempt(Support.parse(""))(Support.parse(Packed.text(packed, PlanSection.MaxPictures)))
  }
  private val isChanged = report.path("changed").asBoolean

  def nodes: NodeSeq =
    <div>
      {if (plans > 1) <h4>{s"Plan ${index + 1} of $plans"}</h4> else NodeSeq.Empty}
      {
      (elements(report, "groups") ++ elements(report, "pairs")).zipWithIndex.map { case (group, i) =>
        section(group, i)
      }
    }
      {list("Outer joins eliminated", texts(report, "eliminated_outer_joins"))}
      {list("Joins avoided", texts(report, "spared_joins"))}
      {list("Rows grouped before they are joined", texts(report, "eager_aggregations"))}
      {list("Rows filtered before they are grouped or shuffled", texts(report, "prefilters"))}
      {
      table(
        "Hints",
        Seq("Strategy", "Side", "Join", "Reason"),
        rows(report, "hints", "strategy", "side", "join", "reason"))
    }
      {
      table(
        "Left as written",
        Seq("Where", "Why", "What would change it"),
        rows(report, "refusals", "where", "reason", "advice"))
    }
      {list("Notes", texts(report, "notes"))}
      {list("How to improve the estimates", texts(drawn, "advice"))}
      {
      list(
        "The optimizer failed, and the plan as written is used",
        Seq(report.path("error").asText("")).filter(_.nonEmpty))
    }
    </div>

  private def section(group: JsonNode, i: Int): NodeSeq = {
    val moved = group.path("changed").asBoolean
    val (before, after) = (group.path("order_before").asText, group.path("order_after").asText)
    val costs = Seq("cost_before", "cost_after").map(group.path(_).asDouble).map(PageParts.quantity)
    val search = group.path("strategy").asText
    val title = s"Join group ${i + 1}: ${group.path("relations").size} relations, " +
      (if (moved) s"cost ${costs(0)} to ${costs(1)}" else s"cost ${costs(0)}, order as written") +
      (if (search.isEmpty) "" else s", $search search")
    val pictures = drawn.path("groups").path(i)
    val graph = image(pictures.path("graph").asText(""), s"Join graph of group ${i + 1}")
    <div>
      <h4>{title}</h4>
      {
      if (moved && !isChanged) <p>The query ran as written; this is the order that would be chosen.</p>
      else NodeSeq.Empty
    }
      <p>{if (moved) "Before: " else "Order: "}<code>{before}</code>{
      if (moved) <br/> ++ scala.xml.Text("After: ") ++ <code>{after}</code> else NodeSeq.Empty
    }</p>
      <div class="pictures">
        {if (moved) image(pictures.path("before").asText(""), s"Order before: $before") else NodeSeq.Empty}
        {image(pictures.path("after").asText(""), s"Order${if (moved) " after" else ""}: $after")}
      </div>
      {joins(group, moved)}
      {
      table(
        "Relations",
        Seq("Relation", "Estimated rows", "Source"),
        elements(group, "relations").map(relation =>
          Seq(
            relation.path("name").asText,
            PageParts.quantity(relation.path("rows").asDouble),
            relation.path("source").asText))
      )
    }
      {
      if (graph.isEmpty) NodeSeq.Empty
      else <details><summary>{s"Join graph, ${group.path("edges").size} edges"}</summary>{graph}</details>
    }
    </div>
  }

  /** The joins of the order that ran. */
  private def joins(group: JsonNode, moved: Boolean): NodeSeq = {
    val written = elements(group, "joins_before")
    val ran = if (moved && !isChanged && written.nonEmpty) written else elements(group, "estimated_rows")
    val rows = ran.map { join =>
      val relations = texts(join, "relations")
      val estimated = join.path("rows").asDouble
      val actual = counted(relations)
      Seq(
        relations.mkString(", "),
        texts(join, "predicates").mkString(" AND "),
        PageParts.quantity(estimated),
        actual.fold("")(PageParts.quantity),
        actual.fold("")(rows => s"${PageParts.quantity(factor(estimated, rows))}x"),
        join.path("operator").asText,
        join.path("hint").asText
      )
    }
    val head =
      Seq("Joined relations", "On", "Estimated rows", "Actual rows", "Error factor", "Forecast operator", "Hint")
    table("Joins, innermost first", head, rows)
  }

  /** How many times too many or too few rows were estimated; a count of 0 is compared as 1. */
  private def factor(estimated: Double, rows: Double): Double = {
    val (a, b) = (math.max(1, estimated), math.max(1, rows))
    math.max(a / b, b / a)
  }

  private def image(svg: String, words: String): NodeSeq =
    if (svg.isEmpty) NodeSeq.Empty
    else {
      val address = s"data:image/svg+xml;base64,${Base64.getEncoder.encodeToString(svg.getBytes(UTF_8))}"
      <div class="wide" tabindex="0"><img src={address} alt={words}/></div>
    }

  private def list(title: String, rows: Seq[String]): NodeSeq =
    if (rows.isEmpty) NodeSeq.Empty else <h4>{title}</h4> ++ <ul>{rows.map(row => <li>{row}</li>)}</ul>

  /** A table without its empty columns. */
  private def table(title: String, head: Seq[String], rows: Seq[Seq[String]]): NodeSeq =
    if (rows.isEmpty) NodeSeq.Empty
    else {
      val used = head.indices.filter(i => rows.exists(_(i).nonEmpty))
      <h4>{title}</h4> ++
        <table class="table table-bordered table-sm table-striped">
          <thead><tr>{used.map(i => <th scope="col">{head(i)}</th>)}</tr></thead>
          <tbody>{rows.map(row => <tr>{used.map(i => <td>{row(i)}</td>)}</tr>)}</tbody>
        </table>
    }

  private def elements(node: JsonNode, name: String): List[JsonNode] = ExpressionBuilder.elements(node.get(name))

  private def texts(node: JsonNode, name: String): List[String] = elements(node, name).map(_.asText)

  private def rows(node: JsonNode, name: String, parts: String*): List[Seq[String]] =
    elements(node, name).map(one => parts.map(one.path(_).asText))
}
