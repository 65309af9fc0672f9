package org.apache.spark.sql.pyjoinopt

import org.apache.spark.SPARK_VERSION
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/**
 * The door between Python and Catalyst: plans go out as JSON, edits come in as JSON.
 *
 * Laws: the JVM decides nothing about join orders. What it gives out keeps its objects under numbers until they are
 * released; what it takes in is checked before it becomes a DataFrame.
 */
object PyJoinOptBridge {
  private[pyjoinopt] val Protocol = 1

  /**
   * The analysed plan of a DataFrame as JSON. Opens a handle. If it is to be optimised ("optimizing", perhaps with a
   * "strategy"), subqueries that ask whether there are rows are told as the joins that they come to.
   */
  def `export`(dataset: Compat.AnyDataset, options: String): String = {
    val session = dataset.sparkSession
    exporting(session) {
      val plan = CommonTables.inlined(session, dataset.queryExecution.analyzed)
      val asked = Support.parse(options)
      if (!asked.path("optimizing").asBoolean) plan
      else PredicateSubqueries.ofAnalysed(session, plan, Option(asked.path("strategy").textValue))
    }
  }

  /** What is known of the rows of some nodes, as JSON. */
  def statistics(handle: Long, request: String): String = {
    val exported = Handles(handle)
    exported.session.withActive(new NodeStatistics(exported, Support.parse(request)).run())
  }

  /** Which of the sampled rows of some relations fulfil some predicates, as JSON. */
  def samples(handle: Long, request: String): String = {
    val exported = Handles(handle)
    exported.session.withActive(new SampleAnswers(exported, Support.parse(request)).run())
  }

  /** Which sets of columns identify the rows of some relations, as JSON. */
  def keys(handle: Long, request: String): String = {
    val exported = Handles(handle)
    exported.session.withActive(new KeyAnswers(exported, Support.parse(request)).run())
  }

  /** Begin to analyse a relation with a Spark job; the number by which to ask how far it is. */
  def startAnalysis(handle: Long, request: String): Long = RunningAnalyses.start(Handles(handle), Support.parse(request))

  /** How far an analysis is, and what it found if it is at its end, as JSON. */
  def analysis(number: Long): String = RunningAnalyses.status(number)

  /** Forget all samples and proofs that are held here. */
  def forgetSamples(): Unit = {
    Samples.forget()
    KeyProofs.forget()
  }

  def cancelAnalysis(number: Long): Unit = RunningAnalyses.cancel(number)

  /** The DataFrame that the edits describe. The handle stays open. */
  def rebuild(handle: Long, edits: String): Compat.Rows = {
    val exported = Handles(handle)
    exported.session.withActive(new PlanRebuilder(exported, Support.parse(edits)).dataset())
  }

  def release(handle: Long): Unit = Handles.release(handle)

  def openHandles(): Int = Handles.count

  /** Which protocol, Scala and Spark this is. */
  def version(): String = Support.json { out =>
    out.writeStartObject()
    out.writeNumberField("protocol", Protocol)
    out.writeStringField("scala", Compat.scalaVersion)
    out.writeStringField("spark", SPARK_VERSION)
    out.writeEndObject()
  }

  /** What a DataFrame's own query did when it ran: a JSON array of operators, or null if it did not run. */
  def executed(dataset: Compat.AnyDataset): String = ExecutedPlan.json(dataset.queryExecution).orNull

  /** Runs a DataFrame's plan to its end, and tells what it did: seconds, and operators as of `executed`. */
  def run(dataset: Compat.AnyDataset): String = {
    val session = dataset.sparkSession
    session.withActive(ExecutedPlan.run(session, dataset.queryExecution.analyzed))
  }

  /** Listen to the queries of a DataFrame's session, or listen no longer; the number by which to ask `heard`. */
  def listen(dataset: Compat.AnyDataset, on: Boolean): Long = {
    if (on) Feedback.ofCalls.listen(dataset.sparkSession) else Feedback.ofCalls.stop(dataset.sparkSession)
    listener
  }

  /** What the queries that were listened to did since the last question: a JSON array of arrays as of `executed`. */
  def heard(number: Long): String =
    if (number == listener) Feedback.ofCalls.take().mkString("[", ",", "]")
    else Support.fail(s"Nobody listens under the number $number.")

  private lazy val listener = OpenNumbers.next()

  /** Settings of the application that the driver's Python has for one session: a JSON object of keys and texts. */
  def give(session: Compat.Session, settings: String): Unit = {
    val parsed = Support.parse(settings)
    val values = Map.newBuilder[String, String]
    parsed.fieldNames.forEachRemaining(key => values += key -> parsed.get(key).asText)
    ApplicationSettings.give(session, values.result())
  }

  /**
   * Put the rule into a live session; it does nothing until the session's key says so. Where no key names another, the
   * workers of this driver are of this Python and find their package there.
   */
  def enable(session: Compat.Session, python: String, path: String): Unit = {
    WorkerSettings.ofThisDriver = Some(WorkerCommand(python, Option(path)))
    PyJoinOptExtensions.into(session)
    Prestart.of(session)
  }

  /** Is the rule in this session? */
  def isPresent(session: Compat.Session): Boolean = PyJoinOptExtensions.ruleOf(session).isDefined

  /** Is it there and switched on? */
  def isEnabled(session: Compat.Session): Boolean = PyJoinOptExtensions.ruleOf(session).exists(_.enabled)

  /** What was done to the last plans of a session, those after the report with this number, as a JSON array. */
  def reports(session: Compat.Session, after: Long): String = SessionReports.json(session, after)

  /** How many rebuilt plans were planned on trial. */
  def trials(): Long = TrialPlanning.trials

  /** How many worker processes there are. */
  def workers(): Int = Workers.count

  private def exporting(session: Compat.Session)(plan: => LogicalPlan): String =
    session.withActive(new PlanExporter(session, plan).run())
}
