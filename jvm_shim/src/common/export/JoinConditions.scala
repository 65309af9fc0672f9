package org.apache.spark.sql.pyjoinopt

import org.apache.spark.sql.catalyst.optimizer.PushPredicateThroughJoin
import org.apache.spark.sql.catalyst.plans.logical._

/**
 * IN and EXISTS in the condition of a join, put into a filter over the side that they read.
 *
 * Spark's optimizer moves them there before a session's extension sees the plan. An analysed plan has them in the
 * condition still, where they cannot become joins.
 *
 * Laws: what is moved, and for which types of joins, Spark's own rule decides. A join whose condition has no such
 * subquery is not touched, nor is one that cannot be moved.
 */
private[pyjoinopt] object JoinConditions {

  def pushed(plan: LogicalPlan): LogicalPlan =
    if (!PredicateSubqueries.standsIn(plan)) plan
    else Support.attempt(plan) {
      plan.transformUpWithPruning(PredicateSubqueries.standsIn(_)) {
        case join: Join if hasSubquery(join) =>
          Support.attempt[LogicalPlan](join)(PushPredicateThroughJoin.applyLocally.applyOrElse(join, (j: LogicalPlan) => j))
      }
    }

  private def hasSubquery(join: Join): Boolean =
    join.condition.exists(NullRejection.conjuncts(_).exists(PredicateSubqueries.becomesJoin))
}
