package org.apache.spark.sql.pyjoinopt

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode

/**
 * What a worker tells of a plan after its answer, when no query waits for it any more. It is read when somebody wants
 * it, or when the worker is needed again.
 */
private[pyjoinopt] final class DeferredReport(worker: Worker, val id: Long) {
  private var source = Option(worker)
  private var told: Option[JsonNode] = None
  private var problem: Option[String] = None

  private[pyjoinopt] def is(report: Option[JsonNode]): Unit = synchronized {
    told = report
    source = None
  }

  /** The answer could not be used: whatever the worker tells, the plan stayed as it was. */
  def unused(why: String): Unit = synchronized { problem = Some(why) }

  /** None if the worker ended before it had told. */
  def get: Option[JsonNode] = {
    synchronized(source).foreach(worker => Support.attempt(())(worker.settle(Deadline.in(DeferredReport.Patience))))
    synchronized(told.map(corrected))
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
  private val Patience = 1000L
}
