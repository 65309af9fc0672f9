package org.apache.spark.sql.pyjoinopt

import java.util.{BitSet, IdentityHashMap}

import org.apache.spark.sql.catalyst.analysis.UpdateAttributeNullability
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet, Expression, SubqueryExpression}
import org.apache.spark.sql.catalyst.plans.logical.{Command, Filter, Join, LogicalPlan}
import org.apache.spark.sql.catalyst.trees.TreePattern.PLAN_EXPRESSION
import org.apache.spark.sql.types.{BooleanType, DataType}

/**
 * Checks that a rebuilt plan is valid and has the schema of the original.
 *
 * `before` checks the plan as built. Spark's analyser would silently give new ids to one side of a join whose sides
 * share some, so shared ids must be found first. A command is refused, since it would run again. `after` compares the
 * analysed plan with the original.
 *
 * Law: only new nodes are checked, each once; Spark has checked those of the export.
 */
private[pyjoinopt] final class PlanChecks(handle: Handle, outputs: RebuiltOutputs, columns: RebuiltColumns) {

  private val old = new IdentityHashMap[LogicalPlan, LogicalPlan]
  handle.nodes.foreach(node => old.put(node, node))

  def before(plan: LogicalPlan): Unit = {
    if (handle.nodes.exists(_.isInstanceOf[Command])) Support.fail("A command is not rebuilt: it would run again.")
    Support.postOrder(plan)(parts, old.containsKey)(check)
  }

  private def check(node: LogicalPlan): Unit = {
    val input = new BitSet
    node.children.foreach(child => input.or(outputs.set(child)))
    missing(node.references, input).foreach { attribute =>
      Support.fail(s"${node.nodeName} needs the column $attribute, which its children do not put out.")
    }
    columns.stale(node).headOption.foreach { case (use, column) =>
      Support.fail(s"${node.nodeName} takes the column $use for ${kind(use)}, but it is ${kind(column)}.")
    }
    node match {
      case join: Join if outputs.set(join.left).intersects(outputs.set(join.right)) =>
        Support.fail(s"Both sides of a join put out the same column: ${shared(join)}.")
      case _ =>
    }
    node match {
      case Filter(condition, _) => predicate(node, condition)
      case join: Join => join.condition.foreach(predicate(node, _))
      case _ =>
    }
  }

  private def kind(column: Attribute): String = column.dataType.sql + (if (column.nullable) "" else " NOT NULL")

  private def predicate(node: LogicalPlan, condition: Expression): Unit =
    if (condition.resolved && condition.dataType != BooleanType) {
      Support.fail(s"The condition of ${node.nodeName} is no predicate: ${Support.cut(condition.sql)}")
    }

  private def parts(node: LogicalPlan): Iterable[LogicalPlan] =
    if (!node.containsPattern(PLAN_EXPRESSION)) node.children
    else node.children ++ node.expressions.flatMap(_.collect { case s: SubqueryExpression => s.plan })

  private def missing(references: AttributeSet, input: BitSet): Option[Attribute] =
    references.find(attribute => !input.get(outputs.number(attribute)))

  private def shared(join: Join): String = {
    val both = outputs.set(join.left).clone.asInstanceOf[BitSet]
    both.and(outputs.set(join.right))
    join.left.output.filter(a => both.get(outputs.number(a))).take(3).mkString(", ")
  }

  /** Inside Spark's optimizer, the declared nullability of a column may be stricter than that of its input. */
  def afterOptimizing(rebuilt: LogicalPlan): Unit = {
    val stricter = handle.root.output.zip(rebuilt.output).exists { case (before, now) =>
      now.nullable && !before.nullable
    }
    after(rebuilt, mayWiden = false, if (stricter) UpdateAttributeNullability(handle.root) else handle.root)
  }

  def after(analyzed: LogicalPlan, mayWiden: Boolean, original: LogicalPlan = handle.root): Unit = {
    val (old, now) = (original.output, analyzed.output)
    if (!analyzed.resolved) Support.fail("The rebuilt plan is not resolved.")
    if (analyzed.isStreaming != handle.root.isStreaming) Support.fail("A plan cannot start or stop streaming.")
    if (old.map(_.exprId) != now.map(_.exprId) || old.map(_.name) != now.map(_.name)) {
      Support.fail(s"The columns changed from ${names(old)} to ${names(now)}.")
    }
    old.zip(now).foreach { case (before, after) =>
      if (!DataType.equalsIgnoreCompatibleNullability(after.dataType, before.dataType)) {
        Support.fail(s"Column $before changed its type from ${before.dataType.sql} to ${after.dataType.sql}.")
      }
      if (after.nullable && !before.nullable && !mayWiden) Support.fail(s"Column $before became nullable.")
      if (after.metadata != before.metadata) Support.fail(s"Column $before changed its metadata.")
    }
  }

  private def names(columns: Iterable[Attribute]): String = Support.cut(columns.mkString("(", ", ", ")"))
}
