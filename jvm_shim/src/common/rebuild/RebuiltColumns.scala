package org.apache.spark.sql.pyjoinopt

import java.util.IdentityHashMap

import org.apache.spark.sql.catalyst.expressions.{Attribute, ExprId, Expression}
import org.apache.spark.sql.catalyst.plans.{FullOuter, LeftOuter, RightOuter}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.types.DataType

/**
 * Type and nullability of single columns in the output of a node.
 *
 * If a column is declared not nullable but has NULLs, Spark simplifies `IS NULL` to false, and rows are wrong. That
 * happens if an expression is moved above an outer join unchanged.
 *
 * Law: a column is traced down to the node that produces it, one step a level; no join's whole output is computed.
 */
private[pyjoinopt] final class RebuiltColumns(outputs: RebuiltOutputs) {

  private val made = new IdentityHashMap[LogicalPlan, Map[ExprId, Attribute]]

  /** The column with the id of `column` in the output of one of these nodes. */
  def find(nodes: Seq[LogicalPlan], column: Attribute): Option[Attribute] = {
    val number = outputs.number(column)
    nodes.find(outputs.set(_).get(number)).flatMap(trace(_, column, number))
  }

  private def trace(top: LogicalPlan, column: Attribute, number: Int): Option[Attribute] = {
    var node = top
    var nullable = false
    var found: Option[Attribute] = null
    while (found == null) node match {
      case join: Join if outputs.set(join.left).get(number) =>
        nullable ||= join.joinType == RightOuter || join.joinType == FullOuter
        node = join.left
      case join: Join if outputs.set(join.right).get(number) =>
        nullable ||= join.joinType == LeftOuter || join.joinType == FullOuter ||
          Support.className(join.joinType) == "LeftSingle"
        node = join.right
      case _: Filter | _: Sort | _: GlobalLimit | _: LocalLimit | _: Distinct | _: ResolvedHint | _: SubqueryAlias |
          _: HintScope | _: Repartition | _: RepartitionByExpression | _: Deduplicate | _: Sample =>
        node = node.children.head
      case maker => found = columns(maker).get(column.exprId)
    }
    if (nullable) found.map(_.withNullability(true)) else found
  }

  private def columns(node: LogicalPlan): Map[ExprId, Attribute] = {
    val known = made.get(node)
    if (known != null) known
    else {
      val columns = Support.attempt(Map.empty[ExprId, Attribute])(node.output.map(a => a.exprId -> a).toMap)
      made.put(node, columns)
      columns
    }
  }

  /** Each use of a column in the node's expressions whose type or nullability is not the children's: (use, column). */
  def stale(node: LogicalPlan): List[(Attribute, Attribute)] =
    if (node.children.isEmpty) Nil
    else node.expressions.toList.flatMap { root =>
      var found = List.empty[(Attribute, Attribute)]
      Support.preOrder[Expression](root)(_.children) { e =>
        e match {
          case use: Attribute if use.resolved =>
            find(node.children, use).filterNot(RebuiltColumns.covers(use, _)).foreach(column => found ::= use -> column)
          case _ =>
        }
        true
      }
      found
    }

  /** The node with such uses declared nullable. */
  def refreshed(node: LogicalPlan): LogicalPlan = {
    val outdated = stale(node).collect { case (use, column) if column.nullable && !use.nullable => use.exprId }.toSet
    if (outdated.isEmpty) node
    else node.transformExpressions { case use: Attribute if outdated(use.exprId) => use.withNullability(true) }
  }
}

private[pyjoinopt] object RebuiltColumns {

  /** Whether `column` can be read with the type and nullability that `use` declares. */
  def covers(use: Attribute, column: Attribute): Boolean =
    (use.nullable || !column.nullable) && DataType.equalsIgnoreCompatibleNullability(column.dataType, use.dataType)
}
