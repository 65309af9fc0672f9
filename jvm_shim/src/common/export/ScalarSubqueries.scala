package org.apache.spark.sql.pyjoinopt

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.optimizer.{PullupCorrelatedPredicates, RewriteCorrelatedScalarSubquery}
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreePattern._
import org.apache.spark.sql.catalyst.trees.TreePatternBits

/**
 * Rewrites correlated scalar subqueries over aggregates, in filters, to left joins with these aggregates.
 *
 * {{{
 * before  Filter(a.x < (SELECT avg(b.x) FROM b WHERE b.k = a.k)) over a
 * after   Project(a.*) over Filter(a.x < avg) over (a LEFT JOIN (SELECT avg(b.x), k FROM b GROUP BY k) ON k = a.k)
 * }}}
 *
 * Spark makes this join in its optimizer, before a session's extension gets the plan. Here Spark's own two rules run on
 * one conjunct at a time, over a placeholder for the child of the filter, so empty groups and COUNT are as in Spark.
 *
 * Laws: the join is made where Spark's PushDownPredicates has put the conjunct by then (PushedPlace). The subquery is
 * an aggregate without grouping, so it never returns a second row. What Spark's optimizer replaces before these two
 * rules (expressions with a replacement, the current time) must not be in the parts that they evaluate or move. Kept:
 * a subquery with outer references of another query left, and one for which Spark must join with the distinct outer
 * rows. IN and EXISTS next to the subquery remain predicates, so that Spark can copy them into it, across the equality
 * of the join.
 */
private[pyjoinopt] object ScalarSubqueries {

  /** In an analysed plan, and in the plans of its subqueries that refer to no outer query. */
  def asJoins(plan: LogicalPlan): LogicalPlan = if (!mayHave(plan)) plan
  else Support.attempt(plan) {
    plan.transformUpWithPruning(mayHave(_)) { case node =>
      val inner = node.transformExpressionsWithPruning(mayHave(_)) {
        case subquery: SubqueryExpression if !subquery.isCorrelated => subquery.withNewPlan(asJoins(subquery.plan))
      }
      inner match {
        case filter: Filter if filter.deterministic => Support.attempt[LogicalPlan](filter)(rewritten(filter))
        case other => other
      }
    }
  }

  private def mayHave(node: TreePatternBits): Boolean =
    node.containsAllPatterns(FILTER, SCALAR_SUBQUERY, OUTER_REFERENCE)

  private def rewritten(filter: Filter): LogicalPlan = {
    val (compared, rest) = NullRejection.conjuncts(filter.condition).reverse.partition(isCandidate)
    val input = filtered(rest, filter.child)
    val (joined, kept) = compared.foldLeft((input, Seq.empty[Expression])) { case ((below, others), conjunct) =>
      PushedPlace.rewritten(below, conjunct)(leftJoin(_, conjunct)).fold((below, others :+ conjunct))((_, others))
    }
    if (joined eq input) filter else filtered(kept, joined)
  }

  private def filtered(conjuncts: Seq[Expression], child: LogicalPlan): LogicalPlan =
    conjuncts.reduceLeftOption(And(_, _)).fold(child)(Filter(_, child))

  private def leftJoin(input: LogicalPlan, conjunct: Expression): Option[LogicalPlan] = {
    val placeholder = LocalRelation(input.output: _*)
    val pulled = PullupCorrelatedPredicates(Filter(
      conjunct.transform { case s: ScalarSubquery if s.isCorrelated => s.withNewPlan(withoutAliases(s.plan)) },
      placeholder))
    val subqueries = pulled.expressions.flatMap(_.collect { case s: ScalarSubquery if s.isCorrelated => s.plan })
    if (subqueries.exists(isUnready)) None
    else RewriteCorrelatedScalarSubquery(pulled) match {
      case Project(columns, Filter(condition, joins))
          if columns.map(_.exprId) == input.output.map(_.exprId) && isLeftJoins(joins, placeholder) =>
        val below = joins.transformUp { case leaf if leaf eq placeholder => input }
        Some(Project(columns, Filter(condition, withoutProjection(below))))
      case _ => None
    }
  }

  /** Spark cannot pull outer references out of a subquery through aliases. */
  private def withoutAliases(plan: LogicalPlan): LogicalPlan =
    plan.transformUpWithPruning(_.containsPattern(OUTER_REFERENCE)) { case alias: SubqueryAlias => alias.child }

  private def isUnready(plan: LogicalPlan): Boolean =
    plan.containsPattern(OUTER_REFERENCE) || plan.exists(_.isInstanceOf[DomainJoin])

  /** The filter directly above the join, where an outer join that it makes needless is found. */
  private def withoutProjection(plan: LogicalPlan): LogicalPlan = plan match {
    case Project(columns, join: Join) if columns.forall(_.isInstanceOf[Attribute]) => join
    case other => other
  }

  /** Whether a plan has only left joins, each on the left of the next, above the placeholder. */
  private def isLeftJoins(plan: LogicalPlan, placeholder: LogicalPlan): Boolean = plan match {
    case leaf if leaf eq placeholder => true
    case join: Join =>
      join.joinType == LeftOuter && join.condition.exists(c => !SubqueryExpression.hasSubquery(c)) &&
      join.left.outputSet.intersect(join.right.outputSet).isEmpty &&
      !join.right.exists(_ eq placeholder) && isLeftJoins(join.left, placeholder)
    case project: Project => isLeftJoins(project.child, placeholder)
    case _ => false
  }

  private def isCandidate(conjunct: Expression): Boolean =
    conjunct.deterministic && ScalarSubquery.hasCorrelatedScalarSubquery(conjunct) &&
      !conjunct.exists { // without the plans of subqueries
        case _: RuntimeReplaceable => true
        case scalar: ScalarSubquery if scalar.isCorrelated => !isAggregate(scalar.plan) || !canBePulled(scalar.plan)
        case _: ScalarSubquery => false
        case other => other.isInstanceOf[SubqueryExpression]
      }

  /** Whether a subquery is an aggregate without grouping, perhaps with a HAVING, which Spark evaluates over no rows. */
  private def isAggregate(plan: LogicalPlan): Boolean = plan match {
    case SubqueryAlias(_, child) => isAggregate(child)
    case Project(columns, child) => columns.forall(isPlain) && isAggregate(child)
    case Filter(condition, child: Aggregate) => isPlain(condition) && isAggregate(child)
    case aggregate: Aggregate =>
      aggregate.groupingExpressions.isEmpty && aggregate.aggregateExpressions.forall(isPlain)
    case _ => false
  }

  /** Whether a subquery has no correlated subquery, and Spark replaces no part of the predicates that it pulls out. */
  private def canBePulled(plan: LogicalPlan): Boolean = !plan.exists { node =>
    node.expressions.exists(SubqueryExpression.hasCorrelatedSubquery) ||
    node.expressions.flatMap(NullRejection.conjuncts).exists(e => e.containsPattern(OUTER_REFERENCE) && !isFinal(e))
  }

  private def isPlain(e: Expression): Boolean =
    e.deterministic && isFinal(e) && !e.containsAnyPattern(OUTER_REFERENCE, PLAN_EXPRESSION, PYTHON_UDF)

  private def isFinal(e: Expression): Boolean =
    !e.containsPattern(RUNTIME_REPLACEABLE) && !ConstantValues.isCurrent(e)
}
