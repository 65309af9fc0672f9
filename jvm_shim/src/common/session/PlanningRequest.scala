package org.apache.spark.sql.pyjoinopt

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan}

/**
 * The planning of one query by a worker: export the plan, answer the worker's questions, rebuild the plan from its
 * edits.
 *
 * Laws: export, edits and checks are those of a single DataFrame. The export is released in any case. The deadline
 * holds for all steps together, waiting for a worker included.
 */
private[pyjoinopt] final class PlanningRequest(
    session: Compat.Session,
    original: LogicalPlan,
    taken: List[TakeHintScopes.Taken],
    everything: Boolean,
    writer: Option[LogicalPlan]) {

  private val started = System.nanoTime
  private val time = PlanningTimeBudget.ofThisQuery()
  private val settings = WorkerSettings.of(session, time.reading(InputSize.of(original)))
  private val strategy = JoinOrderHints.strategy(taken)
  private lazy val query = PredicateSubqueries.ofOptimizing(session, original, strategy)
  private lazy val hints = new JoinOrderHints(query, taken)

  def run(): LogicalPlan = {
    ApplicationSettings.warn(session)
    if (time.isGivenUp(settings.timeout)) original
    else if (time.leftToWait(settings.timeout) < 0) {
      Workers.warnOnce(
        s"its subqueries took most of ${settings.timeout} ms. If that comes again, raise spark.pyjoinopt.timeout.")
      original
    } else time.plans(planned())
  }

  private def planned(): LogicalPlan = session.withActive {
    UnknownKeys.of(session)
    if (learning) Feedback.ofSessions.listen(session) else Feedback.ofSessions.stop(session)
    Workers.addFeedback(Feedback.ofSessions.take())
    val exporter = new PlanExporter(session, query, optimizing = true, keep = mark)
    val text = exporter.run()
    val handle = Handles(exporter.handle) // referenced here: the registry may drop it while the query waits
    try {
      val planned = Workers.withWorker(session, settings, time) { (worker, deadline) =>
        worker.request(request(text, deadline), deadline)(question => statistics(handle, question))
      }
      planned.fold(original) { case (answer, report) =>
        SessionReports.add(session, report, JoinOrderHints.marks(taken))
        try finished(handle, answer)
        catch {
          case error: Throwable =>
            report.unused(String.valueOf(error.getMessage))
            throw error
        }
      }
    } finally Handles.release(exporter.handle)
  }

  private def mark(join: Join): Option[String] =
    if (hints.isKept(join)) Some(NodeDetails.Keep)
    else if (!everything && !hints.isToOptimize(join)) Some(NodeDetails.NotRequested)
    else None

  private def request(exported: String, deadline: Deadline): String = {
    val baselines = JoinOrderHints.baselines(taken).mkString(",")
    val named = strategy.map(name => s""""strategy":"$name"""") ++
      Option(baselines).filter(_.nonEmpty).map(names => s""""baseline":"$names"""")
    val options = named.mkString("{", ",", "}")
    val number = if (learning) Feedback.nextPlanOfThisQuery() else None
    val written = writer.fold("")(node => s""""writer":"${Support.className(node)}",""")
    val query = number.fold("")(n => s""""query":${n.query},"part":${n.part},$written""")
    s"""{"op":"plan",$query"milliseconds":${deadline.milliseconds},"options":$options,"export":$exported}"""
  }

  private def learning: Boolean =
    session.sessionState.conf.getConfString(PlanningRequest.Feedback, "false").trim.equalsIgnoreCase("true")

  private def statistics(handle: Handle, question: JsonNode): String =
    if (question.has("relations")) new SampleAnswers(handle, question).run()
    else if (question.has("proofs")) new KeyAnswers(handle, question).run()
    else new NodeStatistics(handle, question).run()

  private def finished(handle: Handle, answer: JsonNode): LogicalPlan = {
    val problem = answer.path("problem")
    if (problem.isTextual) Workers.warnOnce(problem.asText)
    val edits = answer.get("edits")
    if (edits == null || edits.isNull) original
    else {
      val rebuilt = new PlanRebuilder(handle, edits).optimizing()
      ChangeLog.add((System.nanoTime - started) / 1000000, answer.path("summary").asText)
      rebuilt
    }
  }
}

private[pyjoinopt] object PlanningRequest {
  private val Feedback = "spark.pyjoinopt.feedback"
}
