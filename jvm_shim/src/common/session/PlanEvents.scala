package org.apache.spark.sql.pyjoinopt

import java.util.WeakHashMap

import scala.collection.mutable.ListBuffer

import org.apache.spark.SparkContext
import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent}
import org.apache.spark.sql.catalyst.QueryPlanningTracker
import org.apache.spark.sql.execution.QueryExecution
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd

/** A query whose joins are planned: each of its subqueries is a plan of its own. */
private[pyjoinopt] final class PlannedQuery(val number: Long) {
  private val reports = ListBuffer.empty[DeferredReport]
  private var known = List.empty[ExpectedJoins]

  def add(report: DeferredReport): Unit = synchronized(reports += report)

  /** The reports from which groups were not taken yet. */
  def pending: List[DeferredReport] = synchronized(reports.toList)

  /** The join groups of all plans whose reports have come. Reports are not kept: a query may live as long as its driver. */
  def groups: List[ExpectedJoins] = synchronized {
    for (report <- reports.filter(_.hasCome).toList) {
      reports -= report
      if (report.get.isDefined)
        known ++= report.take("expected").toList.flatMap(ExpectedJoins.of(_, changed = false, stored = false))
    }
    known
  }
}

/**
 * Posts what happens to the joins of queries as events, if there is a UI that shows them or an event log that keeps them.
 *
 * Law: no query waits for a report. It is read in the background, and not before the worker has sent it.
 */
private[pyjoinopt] object PlanEvents {
  private val Log = "spark.eventLog.enabled"
  private val ExecutionId = "spark.sql.execution.id"

  /** How often, and after how many milliseconds each time, it is checked whether a report has come. */
  private val Checks = 50
  private val Delay = 100L

  private final case class Planning(context: SparkContext, query: PlannedQuery, executionId: Long)

  private val ofThread = new ThreadLocal[Option[Planning]] {
    override def initialValue(): Option[Planning] = None
  }

  private val queries = new WeakHashMap[QueryPlanningTracker, PlannedQuery]
  private var application = ""
  private var last = 0L

  /** Whether events have a reader. */
  def areRead(context: SparkContext): Boolean =
    context.ui.isDefined || context.conf.getBoolean(Log, defaultValue = false)

  /** This thread begins to plan joins. */
  def begin(context: SparkContext): Unit = Support.attempt(()) {
    ofThread.set(None)
    if (areRead(context)) {
      JoinOrdersTab.attach(context)
      val id = Option(context.getLocalProperty(ExecutionId)).flatMap(text =>
        Support.attempt(Option.empty[Long])(Some(text.toLong)))
      val planning = Planning(context, queryOfThisThread(context), id.getOrElse(-1L))
      ofThread.set(Some(planning))
      post(planning, "")
    }
  }

  /** This thread has planned, with an outcome of `PlanMetrics`. */
  def end(outcome: String): Unit = Support.attempt(()) {
    ofThread.get.foreach(post(_, outcome))
    ofThread.set(None)
  }

  /** Whether the plan of this thread has readers. */
  def isRead: Boolean = ofThread.get.isDefined

  private def post(planning: Planning, outcome: String): Unit = planning.context.listenerBus.post(
    JoinOrdersPlanning(planning.executionId, System.currentTimeMillis, planning.query.number, outcome))

  private def queryOfThisThread(context: SparkContext): PlannedQuery = queries.synchronized {
    QueryPlanningTracker.get.fold(next(context))(queries.computeIfAbsent(_, _ => next(context)))
  }

  private def next(context: SparkContext): PlannedQuery = {
    if (application != context.applicationId) {
      application = context.applicationId
      last = 0
    }
    last += 1
    new PlannedQuery(last)
  }

  /** Post the report of this thread's plan when it has come. */
  def report(report: DeferredReport): Unit = Support.attempt(()) {
    ofThread.get.foreach { case Planning(context, query, executionId) =>
      query.add(report)
      val time = System.currentTimeMillis
      whenCome(List(report), Checks) {
        report.get.foreach { json =>
          val pictures = report.take("pictures").map(_.asText).filter(_.nonEmpty).orNull
          context.listenerBus.post(JoinOrdersPlanned(executionId, time, json.toString, query.number, pictures))
        }
        query.groups
      }
    }
  }

  private def whenCome(reports: List[DeferredReport], checks: Int)(body: => Unit): Unit =
    Worker.inBackground(
      {
        if (reports.forall(_.hasCome)) body
        else if (checks > 0) whenCome(reports, checks - 1)(body)
      },
      Delay
    )

  /** Posts the rows of joins when a query has ended. */
  final class ExecutedQueries(context: SparkContext) extends SparkListener {
    override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
      case end: SparkListenerSQLExecutionEnd => Support.attempt(())(ended(end))
      case _ =>
    }

    private def ended(end: SparkListenerSQLExecutionEnd): Unit =
      for {
        execution <- Option(end.qe)
        query <- queries.synchronized(Option(queries.get(execution.tracker)))
      } {
        val failed = Option(end.errorMessage).flatten.exists(_.nonEmpty)
        val counts =
          if (failed) Map.empty[Long, Long]
          else Support.attempt(Map.empty[Long, Long])(ExecutedPlan.counts(execution.executedPlan))
        whenCome(query.pending, Checks) {
          val joins = Support.attempt(Seq.empty[ExpectedJoin])(counted(execution, query, counts))
          context.listenerBus.post(JoinOrdersExecuted(end.executionId, end.time, query.number, json(joins, counts)))
        }
      }

    /** The joins that have a count. If no operator has counted a row, the plan is being executed again. */
    private def counted(
        execution: QueryExecution,
        query: PlannedQuery,
        counts: Map[Long, Long]): Seq[ExpectedJoin] = {
      val groups = query.groups
      if (groups.isEmpty || counts.values.forall(_ == 0)) Nil
      else {
        val limited = ExecutedPlan.limited(execution.executedPlan)
        ExpectedJoins.distinguished(groups).flatMap(_.located(execution.executedPlan)).filter(join =>
          counts.get(join.counted.id).exists(_ > 0 || ExecutedPlan.isRead(join.operator, counts)) &&
            !limited(join.operator))
      }
    }

    private def json(joins: Seq[ExpectedJoin], counts: Map[Long, Long]): String = Support.json { out =>
      out.writeStartArray()
      joins.foreach { join =>
        out.writeStartObject()
        out.writeArrayFieldStart("relations")
        join.relations.foreach(out.writeString)
        out.writeEndArray()
        out.writeNumberField("estimated", join.estimated)
        out.writeNumberField("counted", counts(join.counted.id))
        out.writeEndObject()
      }
      out.writeEndArray()
    }
  }
}
