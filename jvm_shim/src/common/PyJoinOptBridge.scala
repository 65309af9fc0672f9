package org.apache.spark.sql.pyjoinopt

import org.apache.spark.{SPARK_VERSION, SparkContext}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/**
 * The entry points for Python: plans are exported as JSON, edits are imported as JSON.
 *
 * Laws: the JVM makes no decision about join orders. The JVM keeps the objects behind an export under a number until
 * the export is released. Edits are checked before they become a DataFrame.
 */
object PyJoinOptBridge {
  private[pyjoinopt] val Protocol = 1

  /**
   * The analysed plan of a DataFrame as JSON. Opens a handle. With the option "optimizing" (and perhaps a "strategy"),
   * subqueries in filters are exported as the joins that they become.
   */
  def `export`(dataset: Compat.AnyDataset, options: String): String = {
    val session = dataset.sparkSession
    exporting(session) {
      val plan = CommonTables.inlined(session, dataset.queryExecution.analyzed)
      val parsed = Support.parse(options)
      if (!parsed.path("optimizing").asBoolean) plan
      else PredicateSubqueries.ofAnalysed(session, plan, Option(parsed.path("strategy").textValue))
    }
  }

  /** Statistics of some nodes of an export, as JSON. */
  def statistics(handle: Long, request: String): String = {
    val exported = Handles(handle)
    exported.session.withActive(new NodeStatistics(exported, Support.parse(request)).run())
  }

  /** For each requested predicate, the sampled rows of its relation that it keeps, as JSON. */
  def samples(handle: Long, request: String): String = {
    val exported = Handles(handle)
    exported.session.withActive(new SampleAnswers(exported, Support.parse(request)).run())
  }

  /** For each requested set of columns, whether it is a key of its relation, as JSON. */
  def keys(handle: Long, request: String): String = {
    val exported = Handles(handle)
    exported.session.withActive(new KeyAnswers(exported, Support.parse(request)).run())
  }

  /** Start to analyse a relation with a Spark job. Returns the number of the analysis. */
  def startAnalysis(handle: Long, request: String): Long =
    RunningAnalyses.start(Handles(handle), Support.parse(request))

  /** The progress of an analysis, and its result once it has ended, as JSON. */
  def analysis(number: Long): String = RunningAnalyses.status(number)

  /** Drop all samples and key proofs of this JVM. */
  def forgetSamples(): Unit = {
    Samples.forget()
    KeySamples.forget()
    KeyProofs.forget()
  }

  def cancelAnalysis(number: Long): Unit = RunningAnalyses.cancel(number)

  /** The DataFrame that the edits describe. The handle is left open, unless the edits have "release". */
  def rebuild(handle: Long, edits: String): Compat.Rows = {
    val exported = Handles(handle)
    val parsed = Support.parse(edits)
    try exported.session.withActive(new PlanRebuilder(exported, parsed).dataset())
    finally if (parsed.path("release").asBoolean) release(handle)
  }

  def release(handle: Long): Unit = Handles.release(handle)

  /** How many exports are open; for diagnosis, as are `trials` and `workers`. */
  def openHandles(): Int = Handles.count

  /** The versions of the protocol, of Scala and of Spark, as JSON. */
  def version(): String = Support.json { out =>
    out.writeStartObject()
    out.writeNumberField("protocol", Protocol)
    out.writeStringField("scala", Compat.scalaVersion)
    out.writeStringField("spark", SPARK_VERSION)
    out.writeEndObject()
  }

  /** The metrics of a DataFrame's own query: a JSON array of operators, or null if it has not run. */
  def executed(dataset: Compat.AnyDataset): String = ExecutedPlan.json(dataset.queryExecution).orNull

  /** Run a DataFrame's plan to its end: the seconds that it took, and operators as of `executed`, as JSON. */
  def run(dataset: Compat.AnyDataset): String = {
    val session = dataset.sparkSession
    session.withActive(ExecutedPlan.run(session, dataset.queryExecution.analyzed))
  }

  /** Record the queries of a DataFrame's session from now on, or no longer. Returns the number for `takeExecuted`. */
  def listen(dataset: Compat.AnyDataset, on: Boolean): Long = {
    if (on) Feedback.ofCalls.listen(dataset.sparkSession) else Feedback.ofCalls.stop(dataset.sparkSession)
    listener
  }

  /** A number under which `takeExecuted` has the times of the first run of a DataFrame's own query; -1 if it may have run. */
  def expectRun(dataset: Compat.AnyDataset): Long =
    Feedback.expectRun(dataset.sparkSession, dataset.queryExecution).getOrElse(-1L)

  /** Wait until Spark has delivered all events to its listeners, at most so many milliseconds. */
  def awaitListeners(milliseconds: Long): Unit =
    Support.attempt(())(SparkContext.getActive.foreach(_.listenerBus.waitUntilEmpty(milliseconds)))

  /** The recorded queries that ended since the last call: a JSON array of objects with `operators` as of `executed`. */
  def takeExecuted(number: Long): String =
    if (number == listener) Feedback.ofCalls.take().mkString("[", ",", "]")
    else Support.fail(s"There is no listener $number.")

  private lazy val listener = OpenNumbers.next()

  /** Give one session values of application settings: a JSON object of keys and texts. */
  def setApplicationSettings(session: Compat.Session, settings: String): Unit = {
    val parsed = Support.parse(settings)
    val values = Map.newBuilder[String, String]
    parsed.fieldNames.forEachRemaining(key => values += key -> parsed.get(key).asText)
    ApplicationSettings.set(session, values.result())
  }

  /**
   * Add the rule to a live session; it does nothing until the session's setting enables it. Unless a setting names
   * others, the workers of this driver run this Python and import pyjoinopt from this path.
   */
  def enable(session: Compat.Session, python: String, path: String): Unit = {
    WorkerSettings.ofThisDriver = Some(WorkerCommand(python, Option(path)))
    PyJoinOptExtensions.into(session)
    Prestart.of(session)
  }

  /** Whether this session has the rule. */
  def isPresent(session: Compat.Session): Boolean = PyJoinOptExtensions.ruleOf(session).isDefined

  /** Whether this session has the rule, and it is switched on. */
  def isEnabled(session: Compat.Session): Boolean = PyJoinOptExtensions.ruleOf(session).exists(_.enabled)

  /** The reports of a session with numbers greater than this one, as a JSON array. */
  def reports(session: Compat.Session, after: Long): String = SessionReports.json(session, after)

  /** How many rebuilt plans were planned on trial. */
  def trials(): Long = TrialPlanning.trials

  /** How many worker processes there are. */
  def workers(): Int = Workers.count

  private def exporting(session: Compat.Session)(plan: => LogicalPlan): String =
    session.withActive(new PlanExporter(session, plan).run())
}
