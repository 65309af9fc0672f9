package org.apache.spark.sql.pyjoinopt

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode

/**
 * The report of a plan, which a worker sends after its answer so that the query need not wait for it. It is read on
 * demand, or before the worker's next request.
 */
private[pyjoinopt] final class DeferredReport(worker: Worker, val id: Long) {
  private var source = Option(worker)
  private var content: Option[JsonNode] = None
  private var problem: Option[String] = None

  /** None if the worker ended before it had sent the report. */
  def set(report: Option[JsonNode]): Unit = synchronized {
    content = report
    source = None
  }

  /** The answer could not be used: the plan was not changed, whatever the report states. */
  def unused(why: String): Unit = synchronized { problem = Some(why) }

  /** Whether `get` need not wait. */
  def hasCome: Boolean = synchronized(source).forall(_.hasOutput)

  /** The report, read now if need be. None if the worker ended before it had sent it. */
  def get: Option[JsonNode] = {
    synchronized(source).foreach(worker => Support.attempt(())(worker.readReport(Deadline.in(DeferredReport.MaxWait))))
    synchronized(content.map(corrected))
  }

  private def corrected(report: JsonNode): JsonNode = (report, problem) match {
    case (report: ObjectNode, Some(why)) =>
      val copy = report.deepCopy()
      copy.put("changed", false)
      copy.put("error", why)
      copy
    case _ => report
  }
}

private[pyjoinopt] object DeferredReport {

  /** How long a caller waits for a report (milliseconds). */
  private val MaxWait = 1000L
}
