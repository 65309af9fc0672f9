package org.apache.spark.sql.pyjoinopt

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._

/**
 * The place to which Spark's PushDownPredicates moves a conjunct before a join is made of its subquery: below joins of
 * which it reads one side, above the other conjuncts of its filter.
 */
private[pyjoinopt] object PushedPlace {

  /** A rewrite of the plan at the place of a conjunct; None if it cannot be made there. */
  type Rewrite = LogicalPlan => Option[LogicalPlan]

  /** This plan, rewritten at the place of the conjunct. */
  def rewritten(input: LogicalPlan, conjunct: Expression)(rewrite: Rewrite): Option[LogicalPlan] =
    belowJoin(input, conjunct, rewrite).orElse(input match {
      // A filter may refer to columns that the projection below it drops, but a join may not.
      case project: Project if isPassed(project, conjunct) =>
        rewritten(project.child, conjunct)(rewrite).map(below => project.withNewChildren(Seq(below)))
      case _ => rewrite(input)
    })

  /** None if there is no join below the conjunct of which it reads one side, or the side cannot be rewritten. */
  private def belowJoin(input: LogicalPlan, conjunct: Expression, rewrite: Rewrite): Option[LogicalPlan] = input match {
    case filter: Filter if filter.deterministic =>
      belowJoin(filter.child, conjunct, rewrite).map(below => filter.withNewChildren(Seq(below)))
    case alias: SubqueryAlias =>
      belowJoin(alias.child, conjunct, rewrite).map(below => alias.withNewChildren(Seq(below)))
    case project: Project if isPassed(project, conjunct) =>
      belowJoin(project.child, conjunct, rewrite).map(below => project.withNewChildren(Seq(below)))
    case join: Join if isPreserved(join.joinType, left = true) && reads(conjunct, join.left) =>
      rewritten(join.left, conjunct)(rewrite).map(left => join.withNewChildren(Seq(left, join.right)))
    case join: Join if isPreserved(join.joinType, left = false) && reads(conjunct, join.right) =>
      rewritten(join.right, conjunct)(rewrite).map(right => join.withNewChildren(Seq(join.left, right)))
    case _ => None
  }

  private def isPassed(project: Project, conjunct: Expression): Boolean = reads(conjunct, project.child) &&
    project.projectList.forall(_.isInstanceOf[Attribute])

  /** Whether a plan has all columns that an expression reads. */
  def reads(e: Expression, side: LogicalPlan): Boolean = e.references.subsetOf(side.outputSet)

  /** Whether Spark pushes a filter above the join to this side. */
  def isPreserved(joinType: JoinType, left: Boolean): Boolean = joinType match {
    case Inner | Cross => true
    case LeftOuter | LeftSemi | LeftAnti | ExistenceJoin(_) => left
    case RightOuter => !left
    case _ => false
  }
}
