package org.apache.spark.sql.pyjoinopt

import org.apache.spark.sql.catalyst.plans.logical.{CTERelationDef, CTERelationRef, LogicalPlan, WithCTE}
import org.apache.spark.sql.catalyst.trees.TreePattern

/**
 * Gives the common table expressions of a changed plan new ids.
 *
 * Spark finds the definition of a reader by its id, in one map for the whole plan. A DataFrame can be joined with the
 * one that it was made of, and then one definition would serve the readers of both, although the other one has other
 * filters or fewer columns, or reads others:
 *
 * {{{
 * q = spark.sql("WITH w AS (...) SELECT ... FROM w ... w"); q.optimize_joins().union(q)
 * }}}
 *
 * Law: a definition has a larger id than those that it reads, as Spark gives them. Definitions of plans that are cached
 * are left alone, because Spark finds cached data by the plan.
 */
private[pyjoinopt] object CommonTableIds {

  /** The plan with new ids. While anything is cached, parts that are as they were written keep theirs. */
  def renewed(session: Compat.Session, plan: LogicalPlan, isAsWritten: LogicalPlan => Boolean): LogicalPlan =
    if (!plan.containsPattern(TreePattern.CTE)) plan
    else {
      val isAnythingCached = !session.sharedState.cacheManager.isEmpty
      val definitions = plan.collectWithSubqueries {
        case tables: WithCTE if !isAnythingCached || !isAsWritten(tables) => tables.cteDefs
      }.flatten
      val ids = definitions.map(_.id).distinct.sorted.map(id => id -> CTERelationDef.newId).toMap
      if (ids.isEmpty) plan else plan.transformUpWithSubqueries(renumbered(ids))
    }

  private def renumbered(ids: Map[Long, Long]): PartialFunction[LogicalPlan, LogicalPlan] = {
    case reference: CTERelationRef if ids.contains(reference.cteId) => withId(reference, 0, ids)
    case definition: CTERelationDef if ids.contains(definition.id) => withId(definition, 1, ids)
    case loop if Support.className(loop).startsWith("UnionLoop") => withId(loop, 0, ids)
  }

  /** The place of the id is the same in all versions of Spark, which differ in the arguments that follow. */
  private def withId(node: LogicalPlan, place: Int, ids: Map[Long, Long]): LogicalPlan =
    node.productElement(place) match {
      case id: Long if ids.contains(id) =>
        node.makeCopy(node.productIterator.toIndexedSeq.updated(place, ids(id)).map(_.asInstanceOf[AnyRef]).toArray)
      case _: Long => node
      case _ => Support.fail(s"${node.nodeName} has its id at another place")
    }
}
