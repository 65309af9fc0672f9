package org.apache.spark.sql.pyjoinopt

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.{Alias, NamedExpression}
import org.apache.spark.sql.catalyst.plans.logical._

/**
 * Inlines common table expressions that are referenced once, so that the joins above and inside one can form one group.
 *
 * Laws: Spark does the same at the start of optimisation (`InlineCTE`), so no row changes. Spark finds cached data by
 * the cached plan, so nothing is inlined while anything is cached. Recursive definitions are kept.
 */
private[pyjoinopt] object CommonTables {

  def inlined(session: Compat.Session, plan: LogicalPlan): LogicalPlan =
    if (plan.exists(_.isInstanceOf[WithCTE]) && session.sharedState.cacheManager.isEmpty)
      Support.attempt(plan)(withInlined(plan))
    else plan

  private def withInlined(plan: LogicalPlan): LogicalPlan = {
    val read = plan.collectWithSubqueries { case reference: CTERelationRef => reference.cteId }
    val once = read.groupBy(identity).collect { case (id, Seq(_)) => id }.toSet
    val definitions = new mutable.HashMap[Long, LogicalPlan]

    def inPlace(below: LogicalPlan): LogicalPlan = below.transformUpWithSubqueries {
      case reference: CTERelationRef if definitions.contains(reference.cteId) =>
        named(reference, definitions(reference.cteId))
      case tables: WithCTE =>
        val rest = tables.cteDefs.filterNot(d => definitions.contains(d.id))
        if (rest.isEmpty) tables.plan else tables.copy(cteDefs = rest)
    }

    // A definition only refers to earlier ones.
    plan.collectWithSubqueries { case definition: CTERelationDef => definition }.sortBy(_.id).foreach { definition =>
      if (once(definition.id) && !isRecursive(definition)) definitions.put(definition.id, inPlace(definition.child))
    }
    if (definitions.isEmpty) plan
    else Some(inPlace(plan)).filter(isWhole).getOrElse(plan)
  }

  /** Whether every reference has its definition. */
  private def isWhole(plan: LogicalPlan): Boolean = {
    val defined = plan.collectWithSubqueries { case definition: CTERelationDef => definition.id }.toSet
    plan.collectWithSubqueries { case reference: CTERelationRef => reference.cteId }.forall(defined)
  }

  private def named(reference: CTERelationRef, plan: LogicalPlan): LogicalPlan =
    if (reference.outputSet == plan.outputSet) plan
    else {
      val columns: Seq[NamedExpression] = reference.output.zip(plan.output).map { case (outer, inner) =>
        if (outer.exprId == inner.exprId) inner else Alias(inner, outer.name)(exprId = outer.exprId)
      }
      Project(columns, plan)
    }

  private def isRecursive(definition: CTERelationDef): Boolean =
    definition.child.exists(node => Support.className(node).startsWith("UnionLoop"))
}
