package org.apache.spark.sql.pyjoinopt

import com.fasterxml.jackson.databind.JsonNode

/**
 * What a worker tells of a plan after its answer, when no query waits for it any more. It is read when somebody wants
 * it, or when the worker is needed again.
 */
private[pyjoinopt] final class OwedReport(worker: Worker, val id: Long) {
  private var source = Option(worker)
  private var told: Option[JsonNode] = None

  private[pyjoinopt] def is(report: Option[JsonNode]): Unit = synchronized {
    told = report
    source = None
  }

  /** None if the worker ended before it had told. */
  def get: Option[JsonNode] = {
    synchronized(source).foreach(worker => Support.attempt(())(worker.settle(Deadline.in(OwedReport.Patience))))
    synchronized(told)
  }
}

private[pyjoinopt] object OwedReport {
  private val Patience = 1000L
}
