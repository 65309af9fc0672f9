package org.apache.spark.sql.pyjoinopt

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.optimizer.{PullupCorrelatedPredicates, RewritePredicateSubquery}
import org.apache.spark.sql.catalyst.plans.{LeftAnti, LeftSemi}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreePattern.{EXISTS_SUBQUERY, IN_SUBQUERY, OUTER_REFERENCE}

/**
 * IN and correlated EXISTS as semi and anti joins, so that they can be ordered and hinted like other joins.
 *
 * Spark makes these joins too, but so late that no order is looked for any more. Here its own two rules are run, one
 * filter at a time, over a stand-in for what is below the filter.
 *
 * Laws: what is made is what Spark makes, so no row changes. A filter of which Spark would make anything but semi and
 * anti joins stays. So does one beside, or around, a value that another subquery computes for each row: Spark carries
 * what else is asked into that subquery, but not by way of joins. So does NOT IN: Spark's planner knows its condition by its very
 * form, which other rules would not leave as it is. Cached data is known by the plan that was cached, so nothing is
 * touched while anything is cached.
 */
private[pyjoinopt] object PredicateSubqueries {

  private val Strategy = "spark.pyjoinopt.strategy"
  /** The rules of these are Spark's, and are to see what Spark's see. */
  private val twins = Set("spark", "heuristic")

  /** In an analysed plan, for a strategy that was asked for or else the session's. */
  def ofAnalysed(session: Compat.Session, plan: LogicalPlan, strategy: Option[String]): LogicalPlan =
    if (session.sharedState.cacheManager.isEmpty) joined(session, plan, strategy, analysed = true) else plan

  /** In a plan that Spark is optimising: references to the query around a subquery are in its conditions by then. */
  def ofOptimizing(session: Compat.Session, plan: LogicalPlan, strategy: Option[String]): LogicalPlan =
    joined(session, plan, strategy, analysed = false)

  /** Has this node a subquery that asks whether there are rows? */
  def standsIn(node: LogicalPlan): Boolean = node.containsPattern(EXISTS_SUBQUERY) || node.containsPattern(IN_SUBQUERY)

  /** How many subqueries of a filter become joins. */
  def count(filter: Filter): Int = if (standsIn(filter)) NullRejection.conjuncts(filter.condition).count(isPlain) else 0

  private def joined(
      session: Compat.Session, plan: LogicalPlan, strategy: Option[String], analysed: Boolean): LogicalPlan =
    if (twins(strategy.getOrElse(session.sessionState.conf.getConfString(Strategy, "").trim))) plan
    else joined(plan, analysed)

  private def joined(plan: LogicalPlan, analysed: Boolean): LogicalPlan =
    if (!standsIn(plan)) plan
    else Support.attempt(plan) {
      plan.transformUpWithPruning(bits => bits.containsPattern(EXISTS_SUBQUERY) || bits.containsPattern(IN_SUBQUERY)) {
        case filter: Filter => Support.attempt[LogicalPlan](filter)(asJoins(filter, analysed))
      }
    }

  private def asJoins(filter: Filter, analysed: Boolean): LogicalPlan = filter.child match {
    // What a projection leaves out can be named above a filter all the same, but not above a join.
    case project: Project if isPassed(filter, project) =>
      project.withNewChildren(Seq(asJoins(Filter(filter.condition, project.child), analysed)))
    case input =>
      val (plain, rest) = NullRejection.conjuncts(filter.condition).reverse.partition(isPlain)
      if (plain.isEmpty || !filter.deterministic || rest.exists(comparesByRow)) filter
      else joinedOver(input, plain, rest, analysed).getOrElse(filter)
  }

  private def isPassed(filter: Filter, project: Project): Boolean = count(filter) > 0 &&
    filter.deterministic && filter.references.subsetOf(project.child.outputSet) &&
    project.projectList.forall(e => e.deterministic && !SubqueryExpression.hasSubquery(e))

  private def joinedOver(
      child: LogicalPlan, plain: Seq[Expression], rest: Seq[Expression], analysed: Boolean): Option[LogicalPlan] = {
    // What is left and asks for rows, too, is best asked last.
    val (above, below) = rest.partition(SubqueryExpression.hasSubquery)
    val input = filtered(below, child)
    val standIn = LocalRelation(input.output: _*)
    val asked = filtered(plain.map(_.transform { case s: SubqueryExpression => prepared(s, analysed) }), standIn)
    val made = RewritePredicateSubquery(if (analysed) PullupCorrelatedPredicates(asked) else asked)
    if (!isJoins(made, standIn) || made.outputSet != input.outputSet) None
    else Some(filtered(above, made.transformUp { case leaf if leaf eq standIn => input }))
  }

  /** Spark takes references to the query around it out of a subquery when there are no aliases in their way any more. */
  private def prepared(subquery: SubqueryExpression, analysed: Boolean): SubqueryExpression =
    subquery.withNewPlan(joined(subquery.plan, analysed).transformUpWithPruning(_.containsPattern(OUTER_REFERENCE)) {
      case alias: SubqueryAlias => alias.child
    })

  private def filtered(conjuncts: Seq[Expression], child: LogicalPlan): LogicalPlan =
    conjuncts.reduceLeftOption(And(_, _)).fold(child)(Filter(_, child))

  private def isPlain(conjunct: Expression): Boolean = SubqueryExpression.hasInOrCorrelatedExistsSubquery(conjunct) &&
    (conjunct match {
      case asked: Exists => isPlain(asked.plan)
      case Not(asked: Exists) => isPlain(asked.plan)
      case in: InSubquery => !in.values.exists(SubqueryExpression.hasSubquery) && isPlain(in.query.plan)
      case _ => false
    })

  private def isPlain(asked: LogicalPlan): Boolean = !asked.exists(_.expressions.exists(comparesByRow))

  private def comparesByRow(e: Expression): Boolean = ScalarSubquery.hasCorrelatedScalarSubquery(e)

  /** Only semi and anti joins, one on the other, down to the stand-in. */
  private def isJoins(plan: LogicalPlan, standIn: LogicalPlan): Boolean = plan match {
    case leaf if leaf eq standIn => true
    case join: Join =>
      (join.joinType == LeftSemi || join.joinType == LeftAnti) && join.condition.isDefined &&
        !join.condition.exists(SubqueryExpression.hasSubquery) && isJoins(join.left, standIn)
    case project: Project => project.projectList.forall(_.isInstanceOf[Attribute]) && isJoins(project.child, standIn)
    case _ => false
  }
}
