package org.apache.spark.sql.pyjoinopt

import org.apache.spark.sql.internal.SQLConf

/**
 * Entry points that only tests and benchmarks call: plans at other stages of Spark's optimizer, Catalyst's own rules,
 * and measurements of the session extension.
 *
 * Law: not part of the shim's jar. It is compiled into a jar of its own, and no installation contains that.
 */
object OracleBridge {

  /** The plan of a DataFrame at another stage: "analyzed", "finish" (without aliases and views) or "optimized". */
  def exportStage(dataset: Compat.AnyDataset, options: String): String = {
    val session = dataset.sparkSession
    session.withActive(new PlanExporter(session, RuleOracle.stage(dataset, Support.parse(options))).run())
  }

  /** The plan that Catalyst's own rules make of an exported plan, as a new export. */
  def applyRule(handle: Long, request: String): String = {
    val exported = Handles(handle)
    val parsed = Support.parse(request)
    exported.session.withActive(SQLConf.withExistingConf(RuleOracle.settings(exported, parsed)) {
      new PlanExporter(exported.session, RuleOracle.run(exported, parsed)).run()
    })
  }

  /** Exports of all plans between the analysed plan and the optimised one: a JSON array. */
  def intermediatePlans(dataset: Compat.AnyDataset): String = {
    val session = dataset.sparkSession
    session.withActive(
      RuleOracle.intermediatePlans(dataset).map(new PlanExporter(session, _).run()).mkString("[", ",", "]"))
  }

  /** For each of the requested rules that changes an exported plan, the changed plan: a JSON object of exports. */
  def effectiveRules(handle: Long, request: String): String = {
    val exported = Handles(handle)
    val parsed = Support.parse(request)
    val rules = ExpressionBuilder.elements(parsed.get("rules")).map(rule => rule.get(0).asText -> rule.get(1).asInt)
    exported.session.withActive(SQLConf.withExistingConf(RuleOracle.settings(exported, parsed)) {
      RuleOracle.effective(exported, rules)
        .map { case (rule, plan) => "\"" + rule + "\":" + new PlanExporter(exported.session, plan).run() }
        .mkString("{", ",", "}")
    })
  }

  /** The number of a session's last report. */
  def lastReport(session: Compat.Session): Long = SessionReports.last(session)

  /** How long the query of a DataFrame waits for its join order in its session (milliseconds). */
  def timeout(dataset: Compat.AnyDataset): Long =
    WorkerSettings.of(dataset.sparkSession, InputSize.of(dataset.queryExecution.optimizedPlan)).timeout

  /** The time that the session's rule takes for the optimised plan of a DataFrame, on average over so many times. */
  def ruleNanos(session: Compat.Session, dataset: Compat.AnyDataset, times: Int): Long = {
    val plan = dataset.queryExecution.optimizedPlan
    val rule = PyJoinOptExtensions.ruleOf(session).getOrElse(Support.fail("The rule is not in this session."))
    val started = System.nanoTime
    (1 to times).foreach(_ => rule(plan))
    (System.nanoTime - started) / times
  }
}
