package org.apache.spark.sql.pyjoinopt

import scala.collection.mutable

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.{ArrayNode, ObjectNode}

import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent}
import org.apache.spark.sql.execution.ui.{SparkListenerSQLExecutionEnd, SparkListenerSQLExecutionStart}
import org.apache.spark.util.kvstore.KVStore

/**
 * Writes the queries whose joins are planned to the store of the UI: in the driver as they run, and in a History Server
 * from the event log.
 *
 * Events of one query come in any order: its execution may end before its report has come. So the last executions are
 * kept in memory.
 *
 * Laws: only the last `retained` queries are kept. Logs of older releases, whose events lack fields, are read, too. Logs
 * may come from anyone, so what a query may have is limited.
 * Spark calls a listener from one thread, which is the only one that changes its fields.
 */
private[pyjoinopt] final class JoinOrdersListener(store: KVStore, retained: Int) extends SparkListener {
  import JoinOrdersListener._

  private val queries = new mutable.LinkedHashMap[Long, LiveQuery]
  private val executions = new mutable.LinkedHashMap[Long, Execution]
  private var last = 0L

  override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
    case event: JoinOrdersPlanning => Support.attempt(())(planning(event))
    case event: JoinOrdersPlanned => Support.attempt(())(planned(event))
    case event: JoinOrdersExecuted => Support.attempt(())(executed(event))
    case event: SparkListenerSQLExecutionStart => Support.attempt(())(started(event))
    case event: SparkListenerSQLExecutionEnd => Support.attempt(())(ended(event))
    case _ =>
  }

  private def planning(event: JoinOrdersPlanning): Unit = {
    val query = liveQuery(event.query, event.executionId, event.time)
    if (event.outcome.isEmpty) query.pending += 1
    else {
      query.pending = math.max(0, query.pending - 1)
      if (!query.outcomes.contains(event.outcome) && query.outcomes.size < MostOutcomes)
        query.outcomes :+= Support.cut(event.outcome, MaxOutcome)
    }
    write(query)
  }

  private def planned(event: JoinOrdersPlanned): Unit = {
    val query = liveQuery(event.query, event.executionId, event.time)
    query.plans += 1
    if (query.plans <= MostPlans) add(query, event)
    write(query)
  }

  private def add(query: LiveQuery, event: JoinOrdersPlanned): Unit = {
    val report =
      if (event.report.length > MaxReport) TooLong
      else Support.attempt(Support.parse(""))(Support.parse(event.report))
    query.changed ||= report.path("changed").asBoolean
    query.seconds += report.path("seconds").asDouble
    if (report.path("groups").size > 0) {
      query.costBefore = math.max(0, query.costBefore) + report.path("cost_before").asDouble
      query.costAfter = math.max(0, query.costAfter) + report.path("cost_after").asDouble
    }
    change(query) { details =>
      val plan = Option(details.get("plans")).fold(details.putArray("plans"))(_.asInstanceOf[ArrayNode]).addObject()
      plan.put("time", event.time)
      plan.set[JsonNode]("report", report)
      Option(event.pictures).filter(_.length <= MaxPictures).foreach(plan.put("pictures", _))
    }
  }

  /** Of a query that is executed several times, the first execution counts. */
  private def executed(event: JoinOrdersExecuted): Unit = queries.get(event.query).foreach { query =>
    if (query.executionId < 0) query.executionId = event.executionId
    if (query.executionId == event.executionId && !query.counted && event.joins.length <= MaxReport) {
      val joins = Support.parse(event.joins)
      query.counted = joins.size > 0
      if (query.counted) change(query)(_.set[JsonNode]("joins", joins))
    }
    write(query)
  }

  private def started(event: SparkListenerSQLExecutionStart): Unit = {
    val description = Support.cut(String.valueOf(event.description), MaxDescription)
    if (executions.size >= retained)
      executions.remove(executions.collectFirst { case (id, old) if old.ended > 0 => id }.getOrElse(executions.head._1))
    executions(event.executionId) = Execution(description, event.time)
    queries.values.filter(_.executionId == event.executionId).foreach(write)
  }

  private def ended(event: SparkListenerSQLExecutionEnd): Unit = {
    val error = Support.cut(firstLine(Option(event.errorMessage).flatten.getOrElse("")), MaxError)
    def ended(execution: Execution): Execution = execution.copy(ended = event.time, error = error)
    executions.get(event.executionId).foreach(known => executions(event.executionId) = ended(known))
    queries.values.filter(_.executionId == event.executionId).foreach { query =>
      query.execution = query.execution.map(ended)
      write(query)
    }
  }

  /** The query of this number. It is found by its execution in logs without numbers. */
  private def liveQuery(number: Long, executionId: Long, time: Long): LiveQuery = {
    val found =
      if (number > 0) queries.get(number)
      else queries.values.find(query => executionId >= 0 && query.executionId == executionId)
    val query = found.getOrElse {
      val added = new LiveQuery(if (number > 0) number else last + 1, executionId >= 0, time)
      last = math.max(last, added.number)
      if (queries.size >= retained) remove(queries.values.find(hasEnded).getOrElse(queries.head._2))
      queries(added.number) = added
      added
    }
    if (query.executionId < 0) query.executionId = executionId
    query
  }

  private def hasEnded(query: LiveQuery): Boolean = query.executionId < 0 || query.execution.exists(_.ended > 0)

  private def remove(query: LiveQuery): Unit = {
    queries.remove(query.number)
    Support.attempt(())(store.delete(classOf[QueryOrders], query.number))
    Support.attempt(())(store.delete(classOf[QueryOrdersDetails], query.number))
  }

  private def change(query: LiveQuery)(edit: ObjectNode => Unit): Unit = if (queries.contains(query.number)) {
    val details = new JoinOrdersStore(store).details(query.number).asInstanceOf[ObjectNode]
    edit(details)
    store.write(new QueryOrdersDetails(query.number, Packed(details.toString)))
  }

  private def write(query: LiveQuery): Unit = if (queries.contains(query.number)) {
    query.execution = executions.get(query.executionId).orElse(query.execution)
    val execution = query.execution
    val status = execution match {
      case Some(known) if known.ended > 0 => if (known.error.isEmpty) QueryOrders.Finished else QueryOrders.Failed
      case _ if query.pending > 0 => QueryOrders.Planning
      case _ if query.executionId >= 0 => QueryOrders.Running
      case _ => QueryOrders.Planned
    }
    store.write(
      new QueryOrders(
        query.number,
        query.executionId,
        execution.fold("")(_.description),
        status,
        execution.fold(query.time)(found => if (query.inside) math.min(found.started, query.time) else found.started),
        execution.fold(0L)(_.ended),
        query.changed,
        query.outcomes.mkString(", "),
        query.costBefore,
        query.costAfter,
        query.seconds * 1000,
        execution.fold("")(_.error)
      ))
  }
}

private[pyjoinopt] object JoinOrdersListener {
  private val MaxDescription = 500
  private val MaxError = 2000
  private val MostOutcomes = 10
  private val MaxOutcome = 20

  /** Plans of a query; a report, and the pictures of one (characters). Reports of sixty relations have a tenth of that. */
  private val MostPlans = 50
  private val MaxReport = 1 << 20
  private val MaxPictures = 300000
  private val TooLong = Support.parse("""{"notes":["The report is too long for this page."]}""")

  private final case class Execution(description: String, started: Long, ended: Long = 0, error: String = "")

  /**
   * @param inside whether it is planned in an execution. One that is planned by EXPLAIN may be executed much later.
   * @param time when its planning began
   */
  private final class LiveQuery(val number: Long, val inside: Boolean, val time: Long) {
    var executionId = -1L
    var execution = Option.empty[Execution]
    var pending, plans = 0
    var counted = false
    var outcomes = List.empty[String]
    var changed = false
    var costBefore, costAfter = -1.0
    var seconds = 0.0
  }

  private def firstLine(text: String): String = text.split("\n", 2)(0).trim
}
