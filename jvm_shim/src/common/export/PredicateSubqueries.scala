package org.apache.spark.sql.pyjoinopt

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.optimizer.{PullupCorrelatedPredicates, RewritePredicateSubquery}
import org.apache.spark.sql.catalyst.plans.{Cross, Inner, LeftAnti, LeftSemi}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.{TreeNodeTag, TreePatternBits}
import org.apache.spark.sql.catalyst.trees.TreePattern.{EXISTS_SUBQUERY, IN_SUBQUERY, JOIN, OUTER_REFERENCE, PLAN_EXPRESSION}

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

  private val Early = TreeNodeTag[Expression]("pyjoinopt.early")
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
  def standsIn(node: TreePatternBits): Boolean =
    node.containsPattern(EXISTS_SUBQUERY) || node.containsPattern(IN_SUBQUERY)

  /** Is this conjunct a subquery that becomes a join? */
  def becomesJoin(conjunct: Expression): Boolean = isPlain(conjunct)

  /** The predicate that this join was, of which Spark would make a join only after it has inferred filters. */
  def predicateOf(join: Join): Option[Expression] = join.getTagValue(Early)

  /** How many subqueries of a filter become joins. */
  def count(filter: Filter): Int = if (standsIn(filter)) NullRejection.conjuncts(filter.condition).count(isPlain) else 0

  private def joined(
      session: Compat.Session, plan: LogicalPlan, strategy: Option[String], analysed: Boolean): LogicalPlan =
    if (twins(strategy.getOrElse(session.sessionState.conf.getConfString(Strategy, "").trim))) plan
    else joined(if (analysed) JoinConditions.pushed(plan) else plan, analysed)

  private def joined(plan: LogicalPlan, analysed: Boolean): LogicalPlan = {
    val filtered = aboveJoins(plan)
    if (!standsIn(filtered)) filtered
    else Support.attempt(filtered) {
      filtered.transformUpWithPruning(b => b.containsPattern(EXISTS_SUBQUERY) || b.containsPattern(IN_SUBQUERY)) {
        case filter: Filter => Support.attempt[LogicalPlan](filter)(asJoins(filter, analysed))
      }
    }
  }

  /**
   * Subqueries in the condition of an inner join as a filter above that join, which is the same. Spark cannot plan a
   * condition whose IN or EXISTS reads both sides; it moves such a conjunct into a filter itself (ReorderJoin), but only
   * for three relations or more in a row of joins without hints. So neither a hint nor another order may meet one.
   */
  private def aboveJoins(plan: LogicalPlan): LogicalPlan =
    if (!plan.containsAllPatterns(JOIN, PLAN_EXPRESSION)) plan
    else Support.attempt(plan) {
      plan.transformUpWithPruning(_.containsAllPatterns(JOIN, PLAN_EXPRESSION)) {
        case join: Join if isInner(join) && join.condition.exists(c => c.deterministic && SubqueryExpression.hasSubquery(c)) =>
          val (subqueries, plain) = NullRejection.conjuncts(join.condition.get).reverse.partition(SubqueryExpression.hasSubquery)
          val joinType = if (plain.isEmpty) Cross else join.joinType
          val below = join.copy(joinType = joinType, condition = plain.reduceLeftOption(And(_, _)))
          below.copyTagsFrom(join)
          filtered(subqueries, below)
      }
    }

  private def isInner(join: Join): Boolean = join.joinType == Inner || join.joinType == Cross

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
    val joins = plain.foldLeft(Option(input)) { (below, conjunct) => below.flatMap(asJoin(_, conjunct, analysed)) }
    joins.map(filtered(above, _))
  }

  private def asJoin(input: LogicalPlan, conjunct: Expression, analysed: Boolean): Option[LogicalPlan] = {
    val standIn = LocalRelation(input.output: _*)
    val filter = Filter(conjunct.transform { case s: SubqueryExpression => prepared(s, analysed) }, standIn)
    val made = RewritePredicateSubquery(if (analysed) PullupCorrelatedPredicates(filter) else filter)
    if (!isJoins(made, standIn) || made.outputSet != input.outputSet) None
    else {
      made.foreach(node => if (node.isInstanceOf[Join] && (node.output == input.output)) node.setTagValue(Early, conjunct))
      Some(made.transformUp { case leaf if leaf eq standIn => input })
    }
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
