package org.apache.spark.sql.pyjoinopt

import java.util.IdentityHashMap

import org.apache.spark.sql.catalyst.expressions.SubqueryExpression
import org.apache.spark.sql.catalyst.plans.logical.{Command, LogicalPlan}
import org.apache.spark.sql.catalyst.trees.TreePattern.PLAN_EXPRESSION

/**
 * Which nodes of a plan Spark would replace by cached data.
 *
 * Spark compares the analysed plan, top down, with the plans in its cache. Whoever reorders joins inside such a plan
 * makes Spark miss the cache and compute everything again, so a cached node has to stay as it is.
 *
 * Laws: what Spark would use is what is marked; below a cached node nothing is looked up. A session that caches
 * nothing pays nothing.
 */
private[pyjoinopt] object CachedPlans {

  def find(session: Compat.Session, root: LogicalPlan): LogicalPlan => Boolean =
    if (session.sharedState.cacheManager.isEmpty) _ => false
    else {
      val cached = new IdentityHashMap[LogicalPlan, LogicalPlan]
      // Canonical forms are made from those of the children: ask from the leaves up, and no call goes deep.
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
