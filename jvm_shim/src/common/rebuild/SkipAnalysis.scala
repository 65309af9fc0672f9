package org.apache.spark.sql.catalyst.pyjoinopt

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/**
 * Stands in for Spark's analyser on a rebuilt plan.
 *
 * Such a plan consists of nodes that were analysed already and of a few new ones that only refer to resolved columns:
 * nothing is left to analyse. Running all of the analyser's rules to find that out takes seconds on a plan of a
 * thousand joins. Nor is nullability worked out anew: joins become narrower or change places with other inner joins,
 * so a column that was taken for nullable may have ceased to be, never the other way round.
 *
 * Law: call it only on plans that PlanChecks has agreed to. (It lives in this package because marking a plan as
 * analysed is private to Catalyst.)
 */
object SkipAnalysis {
  def apply(plan: LogicalPlan): LogicalPlan = {
    if (plan.resolved) plan.setAnalyzed()
    plan
  }
}
