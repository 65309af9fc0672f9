package org.apache.spark.sql.catalyst.pyjoinopt

import org.apache.spark.sql.catalyst.analysis.UpdateAttributeNullability
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/**
 * Stands in for Spark's analyser on a rebuilt plan.
 *
 * Such a plan consists of nodes that were analysed already and of a few new ones that only refer to resolved columns.
 * The one thing left to analyse is what columns are nullable now. Running all of the analyser's rules to find that
 * nothing else is to be done takes seconds on a plan of a thousand joins.
 *
 * Law: call it only on plans that PlanChecks has agreed to. (It lives in this package because marking a plan as
 * analysed is private to Catalyst.)
 */
object Analysed {
  def apply(plan: LogicalPlan): LogicalPlan = {
    val current = UpdateAttributeNullability(plan)
    if (current.resolved) current.setAnalyzed()
    current
  }
}
