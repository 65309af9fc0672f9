package org.apache.spark.sql.pyjoinopt

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.ExistenceJoin
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreePattern.PYTHON_UDF
import org.apache.spark.sql.types.NumericType

/**
 * The existence joins that Spark makes of IN and EXISTS under OR, in a filter.
 *
 * {{{
 * before  Filter(a.x > 1 OR EXISTS (SELECT 1 FROM b WHERE b.k = a.k)) over a
 * after   Project(a.*) over Filter(a.x > 1 OR exists) over (a EXISTENCE JOIN b ON b.k = a.k)
 * }}}
 *
 * Laws: the conjunct consists of subqueries and of predicates without any, combined by AND and OR, so an IN that is
 * NULL counts as false. A subquery is negated only directly, and only if it is an EXISTS, which is never NULL. If the
 * conjunct reads one relation, joins and filter are where Spark makes them (PushedPlace). If it reads several, each
 * join is made on the relation that its subquery compares, and the filter is a predicate over columns of several
 * relations like any other. That relation must not be the largest one, because all its rows are probed. The joins and
 * the filter may throw only if they get no row that Spark removes first: not if they are made on one relation of
 * several, nor if other subqueries are evaluated before them.
 */
private[pyjoinopt] object ExistenceJoins {

  /** Whether a conjunct has subqueries under OR that may become existence joins, if these may become joins. */
  def isCandidate(conjunct: Expression, becomesJoin: Expression => Boolean): Boolean =
    conjunct.isInstanceOf[Or] && conjunct.deterministic && {
      val (subqueries, others) = operands(conjunct).partition(PredicateSubqueries.contains)
      subqueries.nonEmpty && subqueries.forall(becomesJoin) && others.forall(isPlain)
    }

  /** How many existence joins are made of a candidate. */
  def count(conjunct: Expression): Int = operands(conjunct).count(PredicateSubqueries.contains)

  /**
   * The plan with existence joins and a filter on their marks. `rewrite` makes them as Spark does, above a placeholder
   * for the plan. `mayThrow`: whether they may throw if all of them are above the input.
   */
  def of(input: LogicalPlan, mayThrow: Boolean)(rewrite: LogicalPlan => Option[LogicalPlan]): Option[LogicalPlan] = {
    val placeholder = LocalRelation(input.output: _*)
    rewrite(placeholder).flatMap {
      case Project(columns, Filter(condition, joins)) if columns.forall(_.isInstanceOf[Attribute]) =>
        for {
          existence <- chain(joins, placeholder)
          isSafe = (condition +: existence.flatMap(_.condition)).forall(isTotal)
          below <-
            if (isRelation(input) && (isSafe || mayThrow)) Some(existence.foldLeft(input)(over))
            else if (isSafe) sunk(input, existence)
            else None
        } yield Project(columns, Filter(condition, below))
      case _ => None
    }
  }

  private def over(left: LogicalPlan, join: Join): LogicalPlan = join.copy(left = left)

  /** The existence joins above the placeholder, the lowest one first; None if there is anything else. */
  private def chain(plan: LogicalPlan, placeholder: LogicalPlan): Option[List[Join]] = {
    val found = mutable.ListBuffer.empty[Join]
    var below = plan
    while (isExistence(below)) {
      found.prepend(below.asInstanceOf[Join])
      below = below.asInstanceOf[Join].left
    }
    if ((below eq placeholder) && found.nonEmpty) Some(found.toList) else None
  }

  /** Of an OR in the condition Spark would make filters of the right side (PushExtraPredicateThroughJoin). */
  private def isExistence(plan: LogicalPlan): Boolean = plan match {
    case Join(_, _, ExistenceJoin(_), Some(condition), _) =>
      !condition.exists(_.isInstanceOf[Or]) && !SubqueryExpression.hasSubquery(condition)
    case _ => false
  }

  private def sunk(input: LogicalPlan, existence: List[Join]): Option[LogicalPlan] = {
    val largest = Support.attempt(BigInt(0))(input.collectLeaves().map(_.stats.sizeInBytes).max)
    existence.foldLeft(Option(input)) { (below, join) => below.flatMap(sink(_, join, largest)) }
  }

  /** The plan with the join on the one relation whose columns it compares. */
  private def sink(plan: LogicalPlan, existence: Join, largest: BigInt): Option[LogicalPlan] = {
    def reads(side: LogicalPlan): Boolean =
      existence.condition.exists(c => (c.references -- existence.right.outputSet).subsetOf(side.outputSet))
    def below(child: LogicalPlan): Option[LogicalPlan] = sink(child, existence, largest)
    plan match {
      case relation if isRelation(relation) =>
        if (relation.collectLeaves().head.stats.sizeInBytes < largest) Some(over(relation, existence)) else None
      case join: Join if PushedPlace.isPreserved(join.joinType, left = true) && reads(join.left) =>
        below(join.left).map(left => join.withNewChildren(Seq(left, join.right)))
      case join: Join if PushedPlace.isPreserved(join.joinType, left = false) && reads(join.right) =>
        below(join.right).map(right => join.withNewChildren(Seq(join.left, right)))
      case filter: Filter if filter.deterministic =>
        below(filter.child).map(child => filter.withNewChildren(Seq(child)))
      case alias: SubqueryAlias => below(alias.child).map(child => alias.withNewChildren(Seq(child)))
      case project: Project if project.projectList.forall(_.isInstanceOf[Attribute]) =>
        below(project.child).map { child =>
          val wider = Project(project.projectList ++ mark(existence), child)
          wider.copyTagsFrom(project)
          wider
        }
      case _ => None
    }
  }

  private def mark(existence: Join): Option[Attribute] = existence.joinType match {
    case ExistenceJoin(exists) => Some(exists)
    case _ => None
  }

  /** Whether a plan is one relation, perhaps filtered; Spark pushes predicates below operators of other kinds. */
  private def isRelation(plan: LogicalPlan): Boolean = plan match {
    case Filter(_, child) => isRelation(child)
    case Project(_, child) => isRelation(child)
    case SubqueryAlias(_, child) => isRelation(child)
    case view: View => isRelation(view.child)
    case join: Join => isExistence(join) && isRelation(join.left)
    case _: CTERelationRef => false
    case other => other.children.isEmpty
  }

  /** The operands of ANDs and ORs. */
  private def operands(condition: Expression): Seq[Expression] = {
    val found = Seq.newBuilder[Expression]
    Support.preOrder(condition)(_.children) {
      case _: And | _: Or => true
      case other =>
        found += other
        false
    }
    found.result()
  }

  private def isPlain(e: Expression): Boolean =
    !SubqueryExpression.hasSubquery(e) && !e.containsPattern(PYTHON_UDF) && !e.exists(_.isInstanceOf[OuterReference])

  /** Whether an expression throws for no row: comparisons of columns and constants as they are, and parts of texts. */
  private def isTotal(e: Expression): Boolean = !e.exists {
    case _: Attribute | _: Literal | _: And | _: Or | _: Not | _: BinaryComparison => false
    case _: In | _: IsNull | _: IsNotNull | _: Substring | _: Upper | _: Lower => false
    case cast: Cast => !isNumber(cast) || !isNumber(cast.child) || !Cast.canUpCast(cast.child.dataType, cast.dataType)
    case _ => true
  }

  private def isNumber(e: Expression): Boolean = e.dataType.isInstanceOf[NumericType]
}
