package org.apache.spark.sql.pyjoinopt

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.{ExistenceJoin, LeftExistence}
import org.apache.spark.sql.catalyst.plans.logical._

/**
 * The output of a node as attribute numbers, from the outputs of its children.
 *
 * A join computes `output` at each call from the outputs of its children, which may be joins, too. For every node of a
 * chain of a thousand joins that is a billion steps. So the outputs of common nodes are derived from those of their
 * children.
 *
 * Law: the result equals `node.output`, by expression id.
 */
private[pyjoinopt] object NodeOutputs {
  type Output = Array[Int]

  def of(node: LogicalPlan, known: LogicalPlan => Output, number: Attribute => Int): Output = node match {
    case join: Join =>
      join.joinType match {
        case existence: ExistenceJoin => known(join.left) :+ number(existence.exists)
        case LeftExistence(_) => known(join.left)
        case _ => known(join.left) ++ known(join.right)
      }
    case _: Filter | _: Sort | _: GlobalLimit | _: LocalLimit | _: Distinct | _: ResolvedHint | _: SubqueryAlias |
        _: HintScope | _: Repartition | _: RepartitionByExpression | _: Deduplicate | _: Sample =>
      known(node.children.head)
    case _ => Support.attempt(Array.empty[Int])(node.output.map(number).filter(_ >= 0).toArray)
  }
}
