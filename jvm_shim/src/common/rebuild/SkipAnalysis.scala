package org.apache.spark.sql.catalyst.pyjoinopt

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/**
 * Replaces Spark's analyser for a rebuilt plan.
 *
 * Such a plan consists of analysed nodes and a few new ones over resolved columns, so nothing is left to analyse. All
 * rules of the analyser would take seconds on a plan of a thousand joins. Nullability is not computed again: joins
 * become inner joins or change places with inner joins, so a nullable column may have become not nullable, never the
 * reverse.
 *
 * Law: call it only after PlanChecks. It is in this package because `setAnalyzed` is private to Catalyst.
 */
object SkipAnalysis {
  def apply(plan: LogicalPlan): LogicalPlan = {
    if (plan.resolved) plan.setAnalyzed()
    plan
  }
}
