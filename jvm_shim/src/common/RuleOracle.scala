package org.apache.spark.sql.pyjoinopt

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.catalyst.analysis.{EliminateSubqueryAliases, EliminateView}
import org.apache.spark.sql.catalyst.optimizer.{EliminateResolvedHint, ReplaceExpressions}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.util.Utils

/**
 * Catalyst's own rules, run one by one on request: the measure that rules written elsewhere are held against.
 *
 * Law: it answers with what Catalyst does, adding and leaving out nothing; it takes no part in optimising.
 */
private[pyjoinopt] object RuleOracle {
  private val MostRounds = 100
  private val homes = Seq("", "org.apache.spark.sql.catalyst.optimizer.", "org.apache.spark.sql.catalyst.analysis.")

  /** The rules that Spark's optimizer runs before all others, as far as they change the shape of a plan. */
  private val finish: Seq[Rule[LogicalPlan]] =
    Seq(EliminateResolvedHint, EliminateSubqueryAliases, EliminateView, ReplaceExpressions)

  def stage(dataset: Compat.AnyDataset, options: JsonNode): LogicalPlan = {
    val execution = dataset.queryExecution
    options.path("stage").asText("analyzed") match {
      case "analyzed" => execution.analyzed
      case "optimized" => execution.optimizedPlan
      case "finish" => finish.foldLeft(execution.analyzed)((plan, rule) => rule(plan))
      case other => Support.fail(s"There is no stage $other; there are analyzed, finish and optimized.")
    }
  }

  /** The settings of the request on top of the session's. */
  def settings(handle: Handle, request: JsonNode): SQLConf = {
    val changes = request.path("confs")
    val names = Option(changes).filter(_.isObject).toSeq.flatMap { c =>
      var found = List.empty[String]
      c.fieldNames.forEachRemaining(name => found ::= name)
      found
    }
    SessionConf.changed(handle.session, names.map(name => name -> changes.get(name).asText).toMap)
  }

  def run(handle: Handle, request: JsonNode): LogicalPlan = {
    val start = if (request.has("root")) new PlanRebuilder(handle, request).plan() else handle.root
    val rules = ExpressionBuilder.elements(request.get("rules")).map(name => rule(name.asText))
    val rounds = if (request.path("once").asBoolean(false)) 1 else MostRounds
    var (before, after, round) = (start, rules.foldLeft(start)((plan, rule) => rule(plan)), 1)
    while (round < rounds && !after.fastEquals(before)) {
      before = after
      after = rules.foldLeft(before)((plan, rule) => rule(plan))
      round += 1
    }
    after
  }

  private def rule(name: String): Rule[LogicalPlan] =
    homes.iterator
      .flatMap(home => Support.attempt(Option.empty[AnyRef])(Some(singleton(home + name.stripSuffix("$")))))
      .collectFirst { case rule: Rule[_] => rule.asInstanceOf[Rule[LogicalPlan]] }
      .getOrElse(Support.fail(s"There is no rule $name in this Spark."))

  private def singleton(name: String): AnyRef =
    try Utils.classForName[AnyRef](name + "$").getField("MODULE$").get(null)
    catch { case _: ClassNotFoundException => Utils.classForName[AnyRef](name).getConstructor().newInstance() }
}
