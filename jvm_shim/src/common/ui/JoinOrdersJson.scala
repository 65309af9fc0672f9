package org.apache.spark.sql.pyjoinopt

import java.text.SimpleDateFormat
import java.util.{Date, Locale, TimeZone}

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.{ArrayNode, ObjectNode}

import org.apache.spark.ui.SparkUI

/** The queries and their join orders as JSON, with names and times as Spark's REST API has them. */
private[pyjoinopt] object JoinOrdersJson {

  /** All queries, without reports. */
  def all(store: JoinOrdersStore): ArrayNode = {
    val list = Support.mapper.createArrayNode()
    val queries = store.all
    val times = new EstimatedTimes(queries)
    queries.foreach(query => list.add(row(query, times)))
    list
  }

  /** One query, with its reports and counted joins; None if there is none of this number. */
  def one(store: JoinOrdersStore, number: Long): Option[ObjectNode] = store.query(number).map { query =>
    val details = store.details(number)
    val result = row(query, new EstimatedTimes(store.all))
    val reports = result.putArray("reports")
    ExpressionBuilder.elements(details.get("plans")).foreach(plan => reports.add(plan.path("report")))
    val joins = details.path("joins")
    result.set[JsonNode]("joins", if (joins.isArray) joins else Support.mapper.createArrayNode())
    result
  }

  private def row(query: QueryOrders, times: EstimatedTimes): ObjectNode = {
    val result = Support.mapper.createObjectNode()
    result.put("number", query.number)
    if (query.executionId >= 0) result.put("executionId", query.executionId)
    result.put("description", query.description)
    result.put("status", query.status)
    result.put("submissionTime", time(query.started))
    if (query.ended > 0) {
      result.put("completionTime", time(query.ended))
      result.put("duration", query.ended - query.started)
    }
    result.put("changed", query.changed)
    result.put("outcome", query.outcomes)
    if (query.costBefore >= 0) {
      result.put("costBefore", query.costBefore)
      result.put("costAfter", query.costAfter)
    }
    result.put("planningTime", query.planning)
    times.ofRun(query).foreach(time => result.put("estimatedDuration", math.round(time)))
    times.asWritten(query).foreach(time => result.put("estimatedDurationAsWritten", math.round(time)))
    if (query.error.nonEmpty) result.put("errorMessage", query.error)
    result
  }

  private def time(milliseconds: Long): String = {
    val format = new SimpleDateFormat("yyyy-MM-dd'T'HH:mm:ss.SSS'GMT'", Locale.US)
    format.setTimeZone(TimeZone.getTimeZone("GMT"))
    format.format(new Date(milliseconds))
  }
}

/**
 * The REST API of a driver: `/api/v1/applications/[id]/joinorders`, and `/joinorders/[number]` below it.
 *
 * Spark's own servlet finds resources only in the class path of the JVM, which a jar of `spark.jars` is not in.
 */
private[pyjoinopt] final class JoinOrdersServlet(store: JoinOrdersStore) extends Compat.HttpServlet {
  override def doGet(request: Compat.HttpServletRequest, response: Compat.HttpServletResponse): Unit = {
    val path = Option(request.getPathInfo).getOrElse("").stripPrefix("/")
    val found = if (path.isEmpty) Some(JoinOrdersJson.all(store))
    else Support.attempt(Option.empty[Long])(Some(path.toLong)).flatMap(JoinOrdersJson.one(store, _))
    response.setContentType("application/json;charset=utf-8")
    response.setHeader("Cache-Control", "no-cache, no-store, must-revalidate")
    found match {
      case Some(json) => response.getWriter.print(json.toString)
      case None => response.sendError(404)
    }
  }

  /** As in Spark's pages: the response would repeat the headers of the request. */
  override def doTrace(request: Compat.HttpServletRequest, response: Compat.HttpServletResponse): Unit =
    response.sendError(405)
}

/** The same for the resources of Spark's own servlet. */
private[spark] object JoinOrdersApi {
  def all(ui: SparkUI): JsonNode = JoinOrdersJson.all(new JoinOrdersStore(ui.store.store))

  def one(ui: SparkUI, number: Long): Option[JsonNode] = JoinOrdersJson.one(new JoinOrdersStore(ui.store.store), number)
}
