package org.apache.spark.sql.pyjoinopt

import java.net.URLEncoder

import scala.xml.{Node, NodeSeq, Text}

import org.json4s.JValue
import org.json4s.jackson.JsonMethods

import org.apache.spark.ui.{PagedDataSource, PagedTable, UIUtils, WebUIPage}

/**
 * The list of queries.
 *
 * Law: pages are built of XML nodes, which escape every text. Nothing is loaded from anywhere but this UI.
 */
private[pyjoinopt] final class JoinOrdersPage(tab: JoinOrdersTab) extends WebUIPage("") {
  override def render(request: Compat.HttpServletRequest): Seq[Node] = {
    val queries = tab.store.all
    val base = UIUtils.prependBaseUri(request, tab.basePath)
    val changed = queries.count(_.changed)
    val content =
      <div class="joinorders">
        {PageParts.style}
        <p>
          {
        s"${queries.size} ${if (queries.size == 1) "query" else "queries"}, $changed with changed joins. Costs are " +
          "in row units of the cost model. Estimated durations are these costs times the median time of a unit of cost " +
          "in the other queries."
      }
        </p>
        {
        if (queries.isEmpty) <p>No query with joins to order was planned yet.</p>
        else new QueriesTable(request, base, queries).table(PageParts.number(request, s"${QueriesTable.Tag}.page", 1))
      }
        <p>{PageParts.link(s"$base/${JoinOrdersTab.Prefix}/json/", "This list as JSON")}</p>
      </div>
    Compat.headerSparkPage(request, "Join orders", content, tab)
  }

  override def renderJson(request: Compat.HttpServletRequest): JValue =
    JsonMethods.fromJsonNode(JoinOrdersJson.all(tab.store))
}

private[pyjoinopt] object QueriesTable {
  val Tag = "joinorders"
  val Number = "Query"

  /** Header, by what it is sorted, tooltip. */
  private def columns(times: EstimatedTimes): Seq[(String, Ordering[QueryOrders], String)] = Seq(
    (Number, Ordering.by(_.number), "The number of the query in this application"),
    ("Execution", Ordering.by(_.executionId), "The query in the SQL tab"),
    ("Description", Ordering.by(_.description), ""),
    ("Submitted", Ordering.by(_.started), ""),
    ("Status", Ordering.by(_.status), ""),
    ("Changed", Ordering.by(_.changed), "Whether the query runs with a changed plan"),
    ("Cost before", number(_.costBefore), "Of the orders as written"),
    ("Cost after", number(_.costAfter), "Of the chosen orders"),
    ("Planning", number(_.planning), "Time in which the joins were ordered"),
    (
      "Estimated duration",
      number(times.ofRun(_).getOrElse(-1)),
      "By its cost, and by what a unit of cost took in the other queries (median). Costs cover the joins of a query."),
    ("Duration", Ordering.by((query: QueryOrders) => query.duration(Long.MaxValue / 2)), "Planning included")
  )

  private def number(of: QueryOrders => Double): Ordering[QueryOrders] = new Ordering[QueryOrders] {
    override def compare(a: QueryOrders, b: QueryOrders): Int = java.lang.Double.compare(of(a), of(b))
  }

}

private final class QueriesTable(request: Compat.HttpServletRequest, base: String, queries: Seq[QueryOrders])
    extends PagedTable[QueryOrders] {
  import QueriesTable._

  private val (sortColumn, descending, size) = getTableParameters(request, Tag, Number)
  private val sortedBy = URLEncoder.encode(sortColumn, "UTF-8")
  private val path = s"$base/${JoinOrdersTab.Prefix}/?"
  private val now = System.currentTimeMillis
  private val times = new EstimatedTimes(queries)
  private val columns = QueriesTable.columns(times)

  override val dataSource: PagedDataSource[QueryOrders] = new PagedDataSource[QueryOrders](size) {
    private val all = {
      val ordering = columns.find(_._1 == sortColumn).getOrElse(columns.head)._2
      queries.sorted(if (descending) ordering.reverse else ordering)
    }
    override def dataSize: Int = all.size
    override def sliceData(from: Int, to: Int): Seq[QueryOrders] = all.slice(from, to)
  }

  override def tableId: String = s"$Tag-table"
  override def tableCssClass: String =
    "table table-bordered table-sm table-striped table-head-clickable table-cell-width-limited"
  override def pageSizeFormField: String = s"$Tag.pageSize"
  override def pageNumberFormField: String = s"$Tag.page"
  override def goButtonFormPath: String = s"$path&$Tag.sort=$sortedBy&$Tag.desc=$descending"
  override def pageLink(page: Int): String =
    s"$path&$pageNumberFormField=$page&$Tag.sort=$sortedBy&$Tag.desc=$descending&$pageSizeFormField=$size"

  override def headers: Seq[Node] = {
    val shown = columns.map { case (name, _, tooltip) => (name, true, Some(tooltip)) }
    isSortColumnValid(shown, sortColumn)
    headerRow(shown, descending, size, sortColumn, path, Tag, tableId)
  }

  override def row(query: QueryOrders): Seq[Node] =
    <tr>
      <td>{PageParts.link(s"$base/${JoinOrdersTab.Prefix}/query/?id=${query.number}", query.number.toString)}</td>
      <td>{PageParts.execution(base, query)}</td>
      <td>{PageParts.link(s"$base/${JoinOrdersTab.Prefix}/query/?id=${query.number}", PageParts.title(query))}</td>
      <td>{UIUtils.formatDate(query.started)}</td>
      <td>{query.status}{if (query.error.isEmpty) NodeSeq.Empty else <br/> ++ <small>{query.error}</small>}</td>
      <td>{if (query.changed) "yes" else "no"}</td>
      <td>{PageParts.cost(query.costBefore)}</td>
      <td>{PageParts.cost(query.costAfter)}</td>
      <td>{PageParts.planning(query)}</td>
      <td>{PageParts.time(times.ofRun(query))}</td>
      <td>{if (query.duration(now) < 0) "" else UIUtils.formatDuration(query.duration(now))}</td>
    </tr>
}

/** What both pages have. */
private[pyjoinopt] object PageParts {

  /** Pictures follow the colour scheme of the page; before Spark 4.3 that is always the light one. */
  def style: Node = <style>{
    Text(".joinorders img { color-scheme: light; max-width: none; } " +
      "[data-bs-theme=dark] .joinorders img { color-scheme: dark; } " +
      ".joinorders .pictures { display: flex; flex-wrap: wrap; gap: 8px; } " +
      ".joinorders .wide { overflow-x: auto; max-width: 100%; margin-bottom: 8px; } " +
      ".joinorders h4 { margin-top: 1em; } .joinorders td { overflow-wrap: break-word; }")
  }</style>

  def link(address: String, text: String): Node = <a href={address}>{text}</a>

  def execution(base: String, query: QueryOrders): NodeSeq =
    if (query.executionId < 0) NodeSeq.Empty
    else link(s"$base/SQL/execution/?id=${query.executionId}", query.executionId.toString)

  def title(query: QueryOrders): String =
    if (query.description.nonEmpty) query.description else s"query ${query.number}"

  /** A parameter that is a number. Spark answers an `IllegalArgumentException` with the code 400. */
  def number(request: Compat.HttpServletRequest, name: String, otherwise: Int): Int =
    Option(request.getParameter(name)).filter(_.nonEmpty).fold(otherwise)(_.toInt)

  def planning(query: QueryOrders): String =
    if (query.planning > 0) UIUtils.formatDuration(math.max(1, math.round(query.planning))) else ""

  /** Of milliseconds. */
  def time(value: Option[Double]): String = value.fold("")(time => UIUtils.formatDuration(math.round(time)))

  def cost(value: Double): String = if (value < 0) "" else quantity(value)

  /** A number in three digits, like `quantity` in `number_format.py`. */
  def quantity(value: Double): String = {
    val units = Seq(1e15 -> "e15", 1e12 -> "T", 1e9 -> "G", 1e6 -> "M", 1e3 -> "k")
    def format(pattern: String, number: Double) = String.format(java.util.Locale.ROOT, pattern, Double.box(number))
    units.find { case (unit, _) => math.abs(value) >= unit } match {
      case Some((unit, name)) =>
        val scaled = value / unit
        format(if (scaled < 10) "%.2f" else if (scaled < 100) "%.1f" else "%.0f", scaled) + name
      case None =>
        val text = format(if (value < 10) "%.2f" else if (value < 100) "%.1f" else "%.0f", value)
        if (text.contains('.')) text.reverse.dropWhile(_ == '0').dropWhile(_ == '.').reverse else text
    }
  }
}
