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
 * An IN or EXISTS under OR becomes an existence join with a filter on its mark (ExistenceJoins).
 *
 * Laws: the joins are those that Spark makes, so no row changes. Filters that Spark rewrites to anything else are kept.
 * So is a filter next to or around a correlated scalar subquery: Spark pushes the other conjuncts into that subquery,
 * but does not push joins. NOT IN becomes an anti join on equality only if neither side is ever NULL; another NOT IN is
 * kept, because Spark's planner matches the exact form of its condition, which other rules would change. Spark finds
 * cached data by the cached plan, so nothing is rewritten while anything is cached.
 */
private[pyjoinopt] object PredicateSubqueries {

  private val Early = TreeNodeTag[Expression]("pyjoinopt.early")
  private val Strategy = "spark.pyjoinopt.strategy"

  /** Strategies that reimplement rules of Spark, which see subqueries in this place. */
  private val sparkStrategies = Set("spark", "heuristic")

  /** In an analysed plan. `strategy`: None for that of the session. */
  def ofAnalysed(session: Compat.Session, plan: LogicalPlan, strategy: Option[String]): LogicalPlan =
    if (!session.sharedState.cacheManager.isEmpty || isOfSpark(session, strategy)) plan
    else ScalarSubqueries.asJoins(joined(JoinConditions.pushed(plan), analysed = true))

  /** In a plan that Spark is optimising: the conditions of its subqueries hold the outer references already. */
  def ofOptimizing(session: Compat.Session, plan: LogicalPlan, strategy: Option[String]): LogicalPlan =
    if (isOfSpark(session, strategy)) plan else joined(plan, analysed = false)

  /** Whether this subtree has an IN or EXISTS. */
  def contains(node: TreePatternBits): Boolean =
    node.containsPattern(EXISTS_SUBQUERY) || node.containsPattern(IN_SUBQUERY)

  /** Whether this conjunct is a subquery that becomes a join. */
  def becomesJoin(conjunct: Expression): Boolean = isPlain(conjunct)

  /** The predicate that this join was made of. Spark makes a join of it only after it has inferred filters. */
  def predicateOf(join: Join): Option[Expression] = join.getTagValue(Early)

  /**
   * Forgets these predicates. Spark copies the tags of nodes without their columns, so in a query over a DataFrame with
   * such joins a predicate might name the columns of another relation, and definitions that have other ids by now.
   */
  def forget(plan: LogicalPlan): Unit = plan.collectWithSubqueries { case node => node.unsetTagValue(Early) }

  /** How many subqueries of a filter become joins. */
  def count(filter: Filter): Int =
    if (!contains(filter)) 0
    else NullRejection.conjuncts(filter.condition).map { conjunct =>
      if (isPlain(conjunct)) 1 else if (isMarked(conjunct)) ExistenceJoins.count(conjunct) else 0
    }.sum

  private def isOfSpark(session: Compat.Session, strategy: Option[String]): Boolean =
    sparkStrategies(strategy.getOrElse(ApplicationSettings.setting(session, Strategy).getOrElse("").trim))

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
      val conjuncts = NullRejection.conjuncts(filter.condition).reverse
      lazy val others = filtered(conjuncts.filterNot(isNotIn), input)
      val (plain, rest) = conjuncts.partition(c => isPlain(c) || isNotIn(c) && isNeverNull(c, others))
      if (plain.isEmpty && !rest.exists(isMarked) || !filter.deterministic || rest.exists(comparesByRow)) filter
      else joinedOver(input, plain, rest, analysed).getOrElse(filter)
  }

  private def isPassed(filter: Filter, project: Project): Boolean =
    NullRejection.conjuncts(filter.condition).exists(isPlain) &&
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
    joins.flatMap { joined =>
      // A mark is made below everything else. Rows that Spark removes before it then reach it, too.
      val isFirst = plain.isEmpty && above.forall(isMarked) &&
        !joined.exists(n => n.expressions.exists(SubqueryExpression.hasSubquery) || isEarly(n))
      val (marked, kept) = above.foldLeft((joined, Seq.empty[Expression])) { case ((below, others), conjunct) =>
        asMarks(below, conjunct, analysed, mayThrow = isFirst && others.isEmpty)
          .fold((below, others :+ conjunct))((_, others))
      }
      if (marked eq input) None else Some(filtered(kept, marked))
    }
  }

  private def isEarly(node: LogicalPlan): Boolean = node.getTagValue(Early).isDefined

  /** The plan with existence joins and a filter on their marks in the place of the conjunct. */
  private def asMarks(
      input: LogicalPlan,
      conjunct: Expression,
      analysed: Boolean,
      mayThrow: Boolean): Option[LogicalPlan] =
    if (!isMarked(conjunct)) None
    else PushedPlace.rewritten(input, conjunct) { place =>
      ExistenceJoins.of(place, mayThrow) {
        rewritten(_, conjunct, analysed).map { case (made, hidden) => filled(made, hidden) }
      }
    }

  private def asJoin(input: LogicalPlan, conjunct: Expression, analysed: Boolean): Option[LogicalPlan] = {
    val placeholder = LocalRelation(input.output: _*)
    val found = conjunct match {
      case Not(in: InSubquery) =>
        rewritten(placeholder, in, analysed).map { case (made, hidden) =>
          (made.transform { case join @ Join(_, _, LeftSemi, _, _) => join.copy(joinType = LeftAnti) }, hidden)
        }
      case _ => rewritten(placeholder, conjunct, analysed)
    }
    found.filter { case (made, _) =>
      isJoins(made, placeholder) && made.outputSet == input.outputSet
    }.map { case (made, subqueries) =>
      made.foreach(node =>
        if (node.isInstanceOf[Join] && (node.output == input.output)) node.setTagValue(Early, conjunct))
      filled(made, (placeholder -> input) +: subqueries)
    }
  }

  /**
   * What Spark's two rules make of a filter over a placeholder: a plan over more placeholders, and the plans of the
   * subqueries that these stand for. None if the plan of a subquery has outer references left.
   */
  private def rewritten(
      placeholder: LogicalPlan,
      conjunct: Expression,
      analysed: Boolean): Option[(LogicalPlan, Seq[(LogicalPlan, LogicalPlan)])] = {
    val filter = Filter(conjunct.transform { case s: SubqueryExpression => prepared(s, analysed) }, placeholder)
    val pulled = if (analysed) PullupCorrelatedPredicates(filter) else filter
    val hidden = mutable.ArrayBuffer.empty[(LogicalPlan, LogicalPlan)]
    val made = RewritePredicateSubquery(pulled.transformExpressions { case s: SubqueryExpression =>
      val leaf = LocalRelation(s.plan.output: _*)
      hidden += leaf -> s.plan
      s.withNewPlan(leaf)
    })
    val isReady = analysed || hidden.forall(!_._2.containsPattern(OUTER_REFERENCE))
    if (isReady) Some((made, hidden.toList)) else None
  }

  private def filled(plan: LogicalPlan, hidden: Seq[(LogicalPlan, LogicalPlan)]): LogicalPlan =
    plan.transformUp { case leaf: LocalRelation => hidden.find(_._1 eq leaf).fold[LogicalPlan](leaf)(_._2) }

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

  private def isNotIn(conjunct: Expression): Boolean = conjunct match {
    case Not(in: InSubquery) => isPlain(in)
    case _ => false
  }

  /** Whether neither side of a NOT IN is NULL in any row of the result. */
  private def isNeverNull(conjunct: Expression, result: LogicalPlan): Boolean = conjunct match {
    case Not(in: InSubquery) =>
      Support.attempt(false) {
        areNeverNull(in.query.plan.output.take(in.values.length), in.query.plan) && areNeverNull(in.values, result)
      }
    case _ => false
  }

  private def areNeverNull(expressions: Seq[Expression], plan: LogicalPlan): Boolean =
    !expressions.exists(_.nullable) || {
      val filled = plan.constraints.collect { case IsNotNull(column: Attribute) => column.exprId }
      !expressions.exists { e =>
        e.transform { case a: Attribute => a.withNullability(a.nullable && !filled(a.exprId)) }.nullable
      }
    }

  private def isMarked(conjunct: Expression): Boolean = ExistenceJoins.isCandidate(conjunct, isPlain)

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
