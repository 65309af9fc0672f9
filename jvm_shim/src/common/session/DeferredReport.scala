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
  private var more: Option[JsonNode] = None

  /** The worker's frame; None if it ended before it had sent it. */
  def set(frame: Option[JsonNode]): Unit = synchronized {
    content = frame.map(_.get("report"))
    more = frame.filter(_.size > 2) // besides its id and the report
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

  /** Take what the worker has sent beside the report, once it has come. A report is kept longer than that. */
  def take(name: String): Option[JsonNode] = synchronized {
    more.collect { case frame: ObjectNode => frame }.flatMap(frame => Option(frame.remove(name)))
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
