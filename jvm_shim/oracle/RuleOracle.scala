package org.apache.spark.sql.pyjoinopt

import scala.collection.mutable

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.catalyst.analysis.{EliminateSubqueryAliases, EliminateView}
import org.apache.spark.sql.catalyst.optimizer.{EliminateResolvedHint, ReplaceExpressions}
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Subquery}
import org.apache.spark.sql.catalyst.rules.{Rule, RuleExecutor}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.util.Utils

/**
 * Runs Catalyst's own rules one by one. Tests compare reimplementations of these rules with the results.
 *
 * Law: the result is exactly what Catalyst makes of a plan.
 */
private[pyjoinopt] object RuleOracle {
  private val MaxRounds = 100
  private val packages = Seq("", "org.apache.spark.sql.catalyst.optimizer.", "org.apache.spark.sql.catalyst.analysis.")

  /** The rules of the optimizer's first batch that change the shape of a plan. */
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

  /** The session's settings, overridden by those of the request. */
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
    repeated(start, rules, if (request.path("once").asBoolean(false)) 1 else MaxRounds)
  }

  /** The plan after the rules have run in order, repeatedly until nothing changes or `rounds` are over. */
  private def repeated(start: LogicalPlan, rules: Seq[Rule[LogicalPlan]], rounds: Int): LogicalPlan = {
    var (before, after, round) = (start, rules.foldLeft(start)((plan, rule) => rule(plan)), 1)
    while (round < rounds && !after.fastEquals(before)) {
      before = after
      after = rules.foldLeft(before)((plan, rule) => rule(plan))
      round += 1
    }
    after
  }

  /**
   * Every plan between the analysed plan and the optimised one, the plans of subqueries included: one after each rule
   * that changed the plan.
   */
  def intermediatePlans(dataset: Compat.AnyDataset): Seq[LogicalPlan] = {
    val session = dataset.sparkSession
    val optimizer = session.sessionState.optimizer
    val found = mutable.ArrayBuffer.empty[LogicalPlan]
    val waiting = mutable.Queue(dataset.queryExecution.withCachedData)
    while (waiting.nonEmpty) {
      var plan = waiting.dequeue()
      found += plan
      for ((rules, rounds) <- Batches.of(optimizer)) {
        var (round, before) = (0, null: LogicalPlan)
        while (round < rounds && (before == null || !plan.fastEquals(before))) {
          before = plan
          round += 1
          for (rule <- rules) {
            if (rule.ruleName.endsWith("OptimizeSubqueries")) {
              plan.foreach(_.expressions.foreach(_.foreach {
                case subquery: SubqueryExpression => waiting += Subquery.fromExpression(subquery)
                case _ =>
              }))
            }
            val after = rule(plan)
            if (!after.fastEquals(plan)) found += after
            plan = after
          }
        }
      }
    }
    found.toSeq
  }

  /** The rules that change an exported plan, each with its plan after at most so many rounds. */
  def effective(handle: Handle, rounds: Seq[(String, Int)]): Seq[(String, LogicalPlan)] =
    rounds.flatMap { case (name, most) =>
      val after = repeated(handle.root, Seq(rule(name)), most)
      if (after.fastEquals(handle.root)) None else Some(name -> after)
    }

  private def rule(name: String): Rule[LogicalPlan] =
    packages.iterator
      .flatMap(inside => Support.attempt(Option.empty[AnyRef])(Some(singleton(inside + name.stripSuffix("$")))))
      .collectFirst { case rule: Rule[_] => rule.asInstanceOf[Rule[LogicalPlan]] }
      .getOrElse(Support.fail(s"There is no rule $name in this Spark."))

  private def singleton(name: String): AnyRef =
    try Utils.classForName[AnyRef](name + "$").getField("MODULE$").get(null)
    catch { case _: ClassNotFoundException => Utils.classForName[AnyRef](name).getConstructor().newInstance() }
}

/** The batches of an optimizer, which are protected in Spark: the rules of each batch and its maximal iterations. */
private object Batches {
  type Executor = RuleExecutor[LogicalPlan]

  def of(optimizer: Executor): Seq[(Seq[Rule[LogicalPlan]], Int)] =
    call(optimizer, "batches").asInstanceOf[scala.collection.Seq[AnyRef]].toList.map { batch =>
      val rules = call(batch, "rules").asInstanceOf[scala.collection.Seq[Rule[LogicalPlan]]].toList
      rules -> call(call(batch, "strategy"), "maxIterations").asInstanceOf[Int]
    }

  private def call(owner: AnyRef, name: String): AnyRef = {
    val method = owner.getClass.getMethods.find(m => m.getName == name && m.getParameterCount == 0)
      .getOrElse(Support.fail(s"${Support.className(owner)} has no $name in this Spark."))
    method.setAccessible(true)
    method.invoke(owner)
  }
}
