package org.apache.spark.sql.pyjoinopt

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.optimizer.RewritePredicateSubquery
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.trees.TreePattern._
import org.apache.spark.sql.internal.SQLConf

/**
 * Plans a rebuilt query on trial if it is not certain that Spark can plan it.
 *
 * Spark's analyser accepts plans that its optimizer or planner refuses: a correlated subquery that no rule can rewrite,
 * a Python UDF over both sides of an outer join, a Cartesian product where these are forbidden. Rules that succeed on
 * the written query may fail on the rebuilt one. Joins, filters, projections and aggregates of ordinary expressions,
 * and uncorrelated scalar subqueries, can always be planned. Other plans are planned on trial, and after a failure the
 * query is not changed.
 *
 * Law: the trial is discarded. The returned DataFrame has planned nothing yet, so it uses data that is cached before it
 * runs.
 */
private[pyjoinopt] object TrialPlanning {

  /** The number of plans that were planned on trial, for diagnosis. */
  @volatile private[pyjoinopt] var trials = 0L

  def ofAnalysed(session: Compat.Session, plan: LogicalPlan): Unit =
    if (isUncertain(plan)) tried(session.sessionState.executePlan(plan).executedPlan)

  /** In a running optimizer only its remaining rules can fail; of these only RewritePredicateSubquery does. */
  def ofOptimizing(plan: LogicalPlan): Unit =
    if (plan.containsAnyPattern(EXISTS_SUBQUERY, IN_SUBQUERY)) tried(RewritePredicateSubquery(plan))

  private def isUncertain(plan: LogicalPlan): Boolean =
    plan.containsAnyPattern(EXISTS_SUBQUERY, IN_SUBQUERY, OUTER_REFERENCE, LATERAL_JOIN, PYTHON_UDF) ||
      !SQLConf.get.crossJoinEnabled

  private def tried(planned: => Any): Unit = {
    trials += 1
    try planned
    catch {
      case NonFatal(error) =>
        throw new PyJoinOptShimException(s"Spark cannot plan the new query: ${error.getMessage}", error)
      case error: StackOverflowError =>
        throw new PyJoinOptShimException("The new query is too deep to be planned.", error)
    }
  }
}
