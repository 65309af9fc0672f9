package org.apache.spark.sql.pyjoinopt

import java.util.Locale

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
  private val strategy = JoinOrderHints.strategy(taken).filter(_ => isFree("strategy"))
  private lazy val query = PredicateSubqueries.ofOptimizing(session, original, strategy)
  private lazy val hints = new JoinOrderHints(query, taken)

  def run(): LogicalPlan = {
    ApplicationSettings.warn(session)
    if (time.isGivenUp(settings.timeout)) {
      ended("timedOut")
      original
    } else if (time.leftToWait(settings.timeout) < 0) {
      ended("timedOut")
      Workers.warnOnce(
        s"its subqueries took most of ${settings.timeout} ms. If that comes again, raise spark.pyjoinopt.timeout.")
      original
    } else
      try time.plans(planned())
      finally PlanMetrics.planning.update(milliseconds)
  }

  private def planned(): LogicalPlan = session.withActive {
    UnknownKeys.of(session)
    if (PlanningRequest.records(session)) Feedback.ofSessions.listen(session) else Feedback.ofSessions.stop(session)
    Workers.addFeedback(Feedback.ofSessions.take())
    val exporter = new PlanExporter(session, query, optimizing = true, keep = mark)
    val text = exporter.run()
    val handle = Handles(exporter.handle) // referenced here: the registry may drop it while the query waits
    try {
      val planned = Workers.withWorker(session, settings, time, ended(_)) { (worker, deadline) =>
        worker.request(request(text, deadline), deadline)(question => statistics(handle, question))
      }
      planned.fold(original) { case (answer, report) =>
        SessionReports.add(session, report, JoinOrderHints.marks(taken))
        PlanEvents.report(report)
        try {
          val result = finished(handle, answer)
          ended(answer)
          RunningQueries.expect(answer)
          result
        } catch {
          case error: Throwable =>
            report.unused(String.valueOf(error.getMessage))
            throw error
        }
      }
    } finally Handles.release(exporter.handle)
  }

  /** The plan came to an end without an answer. */
  private def ended(outcome: String): Unit = {
    PlanMetrics.count(outcome)
    PlanLog.add(PlanEnd(outcome, milliseconds))
  }

  private def ended(answer: JsonNode): Unit = {
    val outcome = PlanMetrics.count(answer.path("outcome").asText)
    Support.attempt(()) {
      val refusals = PlanMetrics.refused(ExpressionBuilder.elements(answer.get("refusals")).map(_.asText))
      Option(answer.path("store").textValue).foreach(PlanMetrics.uses)
      FeedbackBudget.of(session).spend(answer.path("feedback").asDouble * 1e9)
      val costs = answer.path("costs")
      val summary = if (outcome == "changed") answer.path("summary").asText else ""
      PlanLog.add(PlanEnd(
        outcome,
        milliseconds,
        summary,
        refusals,
        if (costs.size == 2) Some((costs.get(0).asDouble, costs.get(1).asDouble)) else None))
    }
  }

  private def milliseconds: Long = (System.nanoTime - started) / 1000000

  private def mark(join: Join): Option[String] =
    if (hints.isKept(join)) Some(NodeDetails.Keep)
    else if (!everything && !hints.isToOptimize(join)) Some(NodeDetails.NotRequested)
    else None

  private def request(exported: String, deadline: Deadline): String = {
    val baselines = if (isFree("baseline")) JoinOrderHints.baselines(taken).mkString(",") else ""
    val named = strategy.map(name => s""""strategy":"$name"""") ++
      Option(baselines).filter(_.nonEmpty).map(names => s""""baseline":"$names"""") ++
      RuleOfThread.mode(session).map(mode => s""""mode":"$mode"""")
    val options = named.mkString("{", ",", "}")
    val number = if (learning == PlanningRequest.Off) None else Feedback.nextPlanOfThisQuery(isRecorded)
    if (number.exists(_.record)) RunningQueries.watch(session.sparkContext)
    val written = writer.fold("")(node => s""""writer":"${Support.className(node)}",""")
    val query = number.fold("")(n => s""""query":${n.query},"part":${n.part},"record":${n.record},$written""")
    val shown = if (PlanEvents.isRead) """"pictures":true,""" else ""
    s"""{"op":"plan",$query$description$shown"milliseconds":${deadline.milliseconds},"options":$options,"export":$exported}"""
  }

  /** Whether a hint may decide about an option. */
  private def isFree(option: String): Boolean = !ApplicationSettings.isLocked(session, s"spark.pyjoinopt.$option")

  /** The description of the job, if the settings depend on it. */
  private def description: String = {
    val needed = PlanningRequest.DescriptionKeys.exists(ApplicationSettings.setting(session, _).exists(_.trim.nonEmpty))
    val text = if (needed) Option(session.sparkContext.getLocalProperty(PlanningRequest.Description)) else None
    text.fold("")(given => s""""description":${Support.mapper.writeValueAsString(given)},""")
  }

  private lazy val learning = PlanningRequest.learning(session)

  private def isRecorded: Boolean = {
    val record = learning != PlanningRequest.Auto || FeedbackBudget.of(session).takeOne()
    PlanMetrics.recorded(record)
    record
  }

  private def statistics(handle: Handle, question: JsonNode): String =
    if (question.has("relations")) new SampleAnswers(handle, question).run()
    else if (question.has("proofs")) new KeyAnswers(handle, question).run()
    else new NodeStatistics(handle, question).run()

  private def finished(handle: Handle, answer: JsonNode): LogicalPlan = {
    val problem = answer.path("problem")
    if (problem.isTextual) Workers.warnOnce(problem.asText)
    val edits = answer.get("edits")
    if (edits == null || edits.isNull) original
    else new PlanRebuilder(handle, edits).optimizing()
  }
}

private[pyjoinopt] object PlanningRequest {
  private val Feedback = "spark.pyjoinopt.feedback"
  private val Off = "false"
  private val Auto = "auto"
  private val Learning = Set("true", Auto)
  private val DescriptionKeys = Seq("spark.pyjoinopt.allowDescriptions", "spark.pyjoinopt.denyDescriptions")
  private val Description = "spark.job.description"

  /** Whether a session records the runs of its queries. */
  def records(session: Compat.Session): Boolean = learning(session) != Off

  /** The value of `spark.pyjoinopt.feedback`. */
  private def learning(session: Compat.Session): String =
    ApplicationSettings.setting(session, Feedback).map(_.trim.toLowerCase(Locale.ROOT))
      .filter(Learning.contains).getOrElse(Off)
}
