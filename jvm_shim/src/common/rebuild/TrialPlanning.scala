package org.apache.spark.sql.pyjoinopt

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.optimizer.RewritePredicateSubquery
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.trees.TreePattern._
import org.apache.spark.sql.internal.SQLConf

/**
 * Plans a rebuilt query before anybody runs it, where it is not certain that Spark can plan it.
 *
 * Spark's analyser accepts plans that its optimizer or planner refuses: a correlated subquery that no rule could take out
 * of its place, a Python UDF over both sides of an outer join, a product where these are forbidden. Whether it does
 * depends on rules that the written query may have passed in another shape. Joins, filters, projections and aggregates of
 * ordinary expressions, and subqueries that give one value without reading a row, are always plannable; what is not
 * proved to be is tried, and a failure here leaves the query as written.
 *
 * Law: the trial is thrown away. The frame that is handed out has planned nothing yet, so data that is cached before it
 * runs is used.
 */
private[pyjoinopt] object TrialPlanning {

  /** How many plans were tried, for tests and measurements. */
  @volatile private[pyjoinopt] var trials = 0L

  def ofAnalysed(session: Compat.Session, plan: LogicalPlan): Unit =
    if (isUncertain(plan)) tried(session.sessionState.executePlan(plan).executedPlan)

  /** In a running optimizer only what is left of it can fail, and there only the rule that makes joins of subqueries does. */
  def ofOptimizing(plan: LogicalPlan): Unit =
    if (plan.containsAnyPattern(EXISTS_SUBQUERY, IN_SUBQUERY)) tried(RewritePredicateSubquery(plan))

  private def isUncertain(plan: LogicalPlan): Boolean =
    plan.containsAnyPattern(EXISTS_SUBQUERY, IN_SUBQUERY, OUTER_REFERENCE, LATERAL_JOIN, PYTHON_UDF) ||
      !SQLConf.get.crossJoinEnabled

  private def tried(planned: => Any): Unit = {
    trials += 1
    try planned
    catch {
      case NonFatal(error) => throw new PyJoinOptShimException(s"Spark cannot plan the new query: ${error.getMessage}", error)
      case error: StackOverflowError => throw new PyJoinOptShimException("The new query is too deep to be planned.", error)
    }
  }
}
