package org.apache.spark.sql.pyjoinopt

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.optimizer.{PullupCorrelatedPredicates, RewritePredicateSubquery}
import org.apache.spark.sql.catalyst.plans.{Cross, Inner, LeftAnti, LeftSemi}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.{TreeNodeTag, TreePatternBits}
import org.apache.spark.sql.catalyst.trees.TreePattern.{
  EXISTS_SUBQUERY,
  IN_SUBQUERY,
  JOIN,
  OUTER_REFERENCE,
  PLAN_EXPRESSION
}

/**
 * Rewrites IN and correlated EXISTS to semi and anti joins, so that they can be ordered and hinted like other joins.
 *
 * Spark makes these joins too, but only after its rules for join order. Here Spark's own two rules run on one filter at
 * a time, over placeholders for the child of the filter and for the plans of the subqueries: a subquery of a subquery
 * that becomes no join is not for these rules yet, because its own outer references were not pulled up.
 *
 * Laws: the joins are those that Spark makes, so no row changes. Filters that Spark rewrites to anything but semi and
 * anti joins are kept. So is a filter next to or around a correlated scalar subquery: Spark pushes the other conjuncts
 * into that subquery, but does not push joins. So does NOT IN: Spark's planner matches the exact form of its condition,
 * which other rules would change. Spark finds cached data by the cached plan, so nothing is rewritten while anything is
 * cached.
 */
private[pyjoinopt] object PredicateSubqueries {

  private val Early = TreeNodeTag[Expression]("pyjoinopt.early")
  private val Strategy = "spark.pyjoinopt.strategy"

  /** Strategies that reimplement rules of Spark, which see subqueries in this place. */
  private val sparkStrategies = Set("spark", "heuristic")

  /** In an analysed plan. `strategy`: None for that of the session. */
  def ofAnalysed(session: Compat.Session, plan: LogicalPlan, strategy: Option[String]): LogicalPlan =
    if (session.sharedState.cacheManager.isEmpty) joined(session, plan, strategy, analysed = true) else plan

  /** In a plan that Spark is optimising: the conditions of its subqueries hold the outer references already. */
  def ofOptimizing(session: Compat.Session, plan: LogicalPlan, strategy: Option[String]): LogicalPlan =
    joined(session, plan, strategy, analysed = false)

  /** Whether this subtree has an IN or EXISTS. */
  def contains(node: TreePatternBits): Boolean =
    node.containsPattern(EXISTS_SUBQUERY) || node.containsPattern(IN_SUBQUERY)

  /** Whether this conjunct is a subquery that becomes a join. */
  def becomesJoin(conjunct: Expression): Boolean = isPlain(conjunct)

  /** The predicate that this join was made of. Spark makes a join of it only after it has inferred filters. */
  def predicateOf(join: Join): Option[Expression] = join.getTagValue(Early)

  /** How many subqueries of a filter become joins. */
  def count(filter: Filter): Int = if (contains(filter)) NullRejection.conjuncts(filter.condition).count(isPlain) else 0

  private def joined(
      session: Compat.Session,
      plan: LogicalPlan,
      strategy: Option[String],
      analysed: Boolean): LogicalPlan =
    if (sparkStrategies(strategy.getOrElse(session.sessionState.conf.getConfString(Strategy, "").trim))) plan
    else joined(if (analysed) JoinConditions.pushed(plan) else plan, analysed)

  private def joined(plan: LogicalPlan, analysed: Boolean): LogicalPlan = {
    val filtered = aboveJoins(plan)
    if (!contains(filtered)) filtered
    else Support.attempt(filtered) {
      filtered.transformUpWithPruning(b => b.containsPattern(EXISTS_SUBQUERY) || b.containsPattern(IN_SUBQUERY)) {
        case filter: Filter => Support.attempt[LogicalPlan](filter)(asJoins(filter, analysed))
      }
    }
  }

  /**
   * Moves subqueries from the condition of an inner join into a filter above it, which is equivalent. Spark cannot plan
   * a condition with an IN or EXISTS over both sides. Its rule ReorderJoin moves such a conjunct into a filter, but
   * only among three or more relations without hints. So no such conjunct may be left when a hint is added or the order
   * changes.
   */
  private def aboveJoins(plan: LogicalPlan): LogicalPlan =
    if (!plan.containsAllPatterns(JOIN, PLAN_EXPRESSION)) plan
    else Support.attempt(plan) {
      plan.transformUpWithPruning(_.containsAllPatterns(JOIN, PLAN_EXPRESSION)) {
        case join: Join
            if isInner(join) && join.condition.exists(c => c.deterministic && SubqueryExpression.hasSubquery(c)) =>
          val (subqueries, plain) =
            NullRejection.conjuncts(join.condition.get).reverse.partition(SubqueryExpression.hasSubquery)
          val joinType = if (plain.isEmpty) Cross else join.joinType
          val below = join.copy(joinType = joinType, condition = plain.reduceLeftOption(And(_, _)))
          below.copyTagsFrom(join)
          filtered(subqueries, below)
      }
    }

  private def isInner(join: Join): Boolean = join.joinType == Inner || join.joinType == Cross

  private def asJoins(filter: Filter, analysed: Boolean): LogicalPlan = filter.child match {
    // A filter may refer to columns that the projection below it drops, but a join may not.
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
      child: LogicalPlan,
      plain: Seq[Expression],
      rest: Seq[Expression],
      analysed: Boolean): Option[LogicalPlan] = {
    // Other conjuncts with subqueries are evaluated last.
    val (above, below) = rest.partition(SubqueryExpression.hasSubquery)
    val input = filtered(below, child)
    val joins = plain.foldLeft(Option(input)) { (below, conjunct) => below.flatMap(asJoin(_, conjunct, analysed)) }
    joins.map(filtered(above, _))
  }

  private def asJoin(input: LogicalPlan, conjunct: Expression, analysed: Boolean): Option[LogicalPlan] = {
    val placeholder = LocalRelation(input.output: _*)
    val filter = Filter(conjunct.transform { case s: SubqueryExpression => prepared(s, analysed) }, placeholder)
    val pulled = if (analysed) PullupCorrelatedPredicates(filter) else filter
    val hidden = mutable.ArrayBuffer[(LogicalPlan, LogicalPlan)](placeholder -> input)
    val made = RewritePredicateSubquery(pulled.transformExpressions { case s: SubqueryExpression =>
      val leaf = LocalRelation(s.plan.output: _*)
      hidden += leaf -> s.plan
      s.withNewPlan(leaf)
    })
    val isReady = analysed || hidden.tail.forall(!_._2.containsPattern(OUTER_REFERENCE))
    if (!isReady || !isJoins(made, placeholder) || made.outputSet != input.outputSet) None
    else {
      made.foreach(node =>
        if (node.isInstanceOf[Join] && (node.output == input.output)) node.setTagValue(Early, conjunct))
      Some(made.transformUp { case leaf: LocalRelation => hidden.find(_._1 eq leaf).fold[LogicalPlan](leaf)(_._2) })
    }
  }

  /** Without aliases, through which Spark cannot pull outer references out of a subquery. */
  private def prepared(subquery: SubqueryExpression, analysed: Boolean): SubqueryExpression =
    subquery.withNewPlan(joined(subquery.plan, analysed).transformUpWithPruning(_.containsPattern(OUTER_REFERENCE)) {
      case alias: SubqueryAlias => alias.child
    })

  private def filtered(conjuncts: Seq[Expression], child: LogicalPlan): LogicalPlan =
    conjuncts.reduceLeftOption(And(_, _)).fold(child)(Filter(_, child))

  private def isPlain(conjunct: Expression): Boolean = SubqueryExpression.hasInOrCorrelatedExistsSubquery(conjunct) &&
    (conjunct match {
      case exists: Exists => isPlain(exists.plan)
      case Not(exists: Exists) => isPlain(exists.plan)
      case in: InSubquery => !in.values.exists(SubqueryExpression.hasSubquery) && isPlain(in.query.plan)
      case _ => false
    })

  private def isPlain(subquery: LogicalPlan): Boolean = !subquery.exists(_.expressions.exists(comparesByRow))

  private def comparesByRow(e: Expression): Boolean = ScalarSubquery.hasCorrelatedScalarSubquery(e)

  /** Whether a plan has only semi and anti joins, each on the left of the next, above the placeholder. */
  private def isJoins(plan: LogicalPlan, placeholder: LogicalPlan): Boolean = plan match {
    case leaf if leaf eq placeholder => true
    case join: Join =>
      (join.joinType == LeftSemi || join.joinType == LeftAnti) && join.condition.isDefined &&
      !join.condition.exists(SubqueryExpression.hasSubquery) && isJoins(join.left, placeholder)
    case project: Project =>
      project.projectList.forall(_.isInstanceOf[Attribute]) && isJoins(project.child, placeholder)
    case _ => false
  }
}
