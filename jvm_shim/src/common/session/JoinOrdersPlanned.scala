package org.apache.spark.sql.pyjoinopt

import org.apache.spark.SparkContext
import org.apache.spark.scheduler.SparkListenerEvent

/**
 * What was done to the joins of a plan, as an event of Spark's bus: listeners get it, and the event log has it.
 *
 * @param executionId the number of the SQL execution; -1 if the plan was made outside of one, such as by EXPLAIN
 * @param time when it was planned (milliseconds since the epoch)
 * @param report the report as JSON, as in `joinopt_report()`
 */
case class JoinOrdersPlanned(executionId: Long, time: Long, report: String) extends SparkListenerEvent

/**
 * Posts reports as events where an event log is written.
 *
 * Law: no query waits for it. A report is read in the background, and not before the worker has sent it.
 */
private[pyjoinopt] object PlannedEvents {
  private val Log = "spark.eventLog.enabled"
  private val ExecutionId = "spark.sql.execution.id"

  /** How often, and after how many milliseconds each time, it is checked whether a report has come. */
  private val Checks = 50
  private val Delay = 100L

  def post(context: SparkContext, report: DeferredReport): Unit =
    if (context.conf.getBoolean(Log, defaultValue = false)) {
      val id = Option(context.getLocalProperty(ExecutionId)).flatMap(text =>
        Support.attempt(Option.empty[Long])(
          Some(text.toLong)))
      later(context, report, JoinOrdersPlanned(id.getOrElse(-1L), System.currentTimeMillis, ""), Checks)
    }

  private def later(context: SparkContext, report: DeferredReport, event: JoinOrdersPlanned, checks: Int): Unit =
    Worker.inBackground(
      {
        if (report.hasCome) report.get.foreach(json => context.listenerBus.post(event.copy(report = json.toString)))
        else if (checks > 0) later(context, report, event, checks - 1)
      },
      Delay
    )
}
