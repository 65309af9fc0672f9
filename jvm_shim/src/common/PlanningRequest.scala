package org.apache.spark.sql.pyjoinopt

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan}

/**
 * One plan on its way through the worker: export, questions on the way, edits, rebuild.
 *
 * Laws: the same export, the same edits and the same checks as for a single DataFrame. The export is let go of
 * whatever happens. The deadline is for all of it.
 */
private[pyjoinopt] final class PlanningRequest(
    session: Compat.Session,
    query: LogicalPlan,
    hints: JoinOrderHints,
    everything: Boolean) {

  private val started = System.nanoTime
  private val settings = WorkerSettings.of(session)

  def run(): LogicalPlan = session.withActive {
    val exporter = new PlanExporter(session, query, optimizing = true, keep = isKept)
    val text = exporter.run()
    val handle = exporter.handle
    try {
      val answered = Workers.serving(session, settings) { (worker, deadline) =>
        worker.ask(request(text, deadline), deadline)(question => statistics(handle, question))
      }
      answered.fold(query) { answer =>
        Support.attempt(())(SessionReports.add(session, answer.path("report")))
        finished(handle, answer)
      }
    } finally Handles.release(handle)
  }

  private def isKept(join: Join): Boolean = hints.isKept(join) || (!everything && !hints.isToOptimize(join))

  private def request(exported: String, deadline: Deadline): String = {
    val strategy = hints.strategy.fold("{}")(name => s"""{"strategy":"$name"}""")
    s"""{"op":"plan","milliseconds":${deadline.milliseconds},"options":$strategy,"export":$exported}"""
  }

  private def statistics(handle: Long, question: JsonNode): String =
    if (question.has("relations")) new SampleAnswers(Handles(handle), question).run()
    else new NodeStatistics(Handles(handle), question).run()

  private def finished(handle: Long, answer: JsonNode): LogicalPlan = {
    val problem = answer.path("problem")
    if (problem.isTextual) Workers.warnOnce(problem.asText)
    val edits = answer.get("edits")
    if (edits == null || edits.isNull) query
    else {
      val rebuilt = new PlanRebuilder(Handles(handle), edits).optimizing()
      OptimizeJoins.log.info(
        s"Joins reordered in ${(System.nanoTime - started) / 1000000} ms: ${answer.path("summary").asText}")
      rebuilt
    }
  }
}
