package org.apache.spark.sql.pyjoinopt

import org.apache.spark.sql.catalyst.optimizer.PushPredicateThroughJoin
import org.apache.spark.sql.catalyst.plans.logical._

/**
 * Moves IN and EXISTS from the condition of a join into a filter over the side that they read.
 *
 * Spark's optimizer does so before a session's extension gets the plan. An analysed plan has them in the condition
 * still, where they cannot become joins.
 *
 * Laws: Spark's own rule (PushPredicateThroughJoin) decides which conjuncts move through which types of joins. A join
 * without such a subquery in its condition is not changed, and neither is a subquery that cannot be moved.
 */
private[pyjoinopt] object JoinConditions {

  def pushed(plan: LogicalPlan): LogicalPlan =
    if (!PredicateSubqueries.contains(plan)) plan
    else Support.attempt(plan) {
      plan.transformUpWithPruning(PredicateSubqueries.contains(_)) {
        case join: Join if hasSubquery(join) =>
          Support.attempt[LogicalPlan](join)(PushPredicateThroughJoin.applyLocally.applyOrElse(
            join,
            (j: LogicalPlan) => j))
      }
    }

  private def hasSubquery(join: Join): Boolean =
    join.condition.exists(NullRejection.conjuncts(_).exists(PredicateSubqueries.becomesJoin))
}
