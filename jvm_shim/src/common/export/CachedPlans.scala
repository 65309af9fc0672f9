package org.apache.spark.sql.pyjoinopt

import java.util.IdentityHashMap

import org.apache.spark.sql.catalyst.expressions.SubqueryExpression
import org.apache.spark.sql.catalyst.plans.logical.{Command, LogicalPlan}
import org.apache.spark.sql.catalyst.trees.TreePattern.PLAN_EXPRESSION

/**
 * Finds the nodes of a plan that Spark would replace by cached data.
 *
 * Spark compares the analysed plan, top down, with the plans in its cache. If joins inside such a plan are reordered,
 * Spark misses the cache and computes everything again, so a cached node must not be changed.
 *
 * Laws: exactly the nodes that Spark would replace are marked; there is no lookup below a cached node. A session
 * without cached data does no lookup at all.
 */
private[pyjoinopt] object CachedPlans {

  def find(session: Compat.Session, root: LogicalPlan): LogicalPlan => Boolean =
    if (session.sharedState.cacheManager.isEmpty) _ => false
    else {
      val cached = new IdentityHashMap[LogicalPlan, LogicalPlan]
      // A canonical form is made from those of the children. Computed from the leaves up, no call recurses deeply.
      val canonical = new IdentityHashMap[LogicalPlan, LogicalPlan]
      Support.postOrder(root)(parts, canonical.containsKey) { node =>
        canonical.put(node, node)
        Support.attempt(node)(node.canonicalized)
      }
      Support.preOrder(root)(parts) { node =>
        val hit = !node.isInstanceOf[Command] && Support.attempt(false)(Compat.cachedData(session, node).isDefined)
        if (hit) cached.put(node, node)
        !hit
      }
      cached.containsKey
    }

  /** The children of a node and the plans inside its expressions. */
  def parts(node: LogicalPlan): Iterable[LogicalPlan] =
    if (!node.containsPattern(PLAN_EXPRESSION)) node.children
    else node.children ++ node.expressions.flatMap(_.collect { case s: SubqueryExpression => s.plan })
}
