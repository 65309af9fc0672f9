package org.apache.spark.sql.pyjoinopt

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.{Alias, NamedExpression}
import org.apache.spark.sql.catalyst.plans.logical._

/**
 * Common table expressions that are read in one place, put in that place: a join above one and the joins inside it may
 * then be one group.
 *
 * Laws: Spark does the same at the end of its analysis (`InlineCTE`), so no row changes. It knows cached data by the
 * plan that was cached, so nothing is moved while anything is cached. Recursive tables stay.
 */
private[pyjoinopt] object CommonTables {

  def inlined(session: Compat.Session, plan: LogicalPlan): LogicalPlan =
    if (plan.exists(_.isInstanceOf[WithCTE]) && session.sharedState.cacheManager.isEmpty)
      Support.attempt(plan)(moved(plan))
    else plan

  private def moved(plan: LogicalPlan): LogicalPlan = {
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

    // What a definition reads is defined before it.
    plan.collectWithSubqueries { case definition: CTERelationDef => definition }.sortBy(_.id).foreach { definition =>
      if (once(definition.id) && !isRecursive(definition)) definitions.put(definition.id, inPlace(definition.child))
    }
    if (definitions.isEmpty) plan
    else Some(inPlace(plan)).filter(isWhole).getOrElse(plan)
  }

  /** Is everything defined that is read? */
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
