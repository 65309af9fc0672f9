package org.apache.spark.sql.pyjoinopt

import java.util.{BitSet, IdentityHashMap}

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet, ExprId, SubqueryExpression}
import org.apache.spark.sql.catalyst.plans.logical.{Command, Join, LogicalPlan}
import org.apache.spark.sql.catalyst.trees.TreePattern.PLAN_EXPRESSION
import org.apache.spark.sql.types.DataType

/**
 * The last look at a rebuilt plan: is it still the same question?
 *
 * `before` runs on the plan as built: Spark's analyser would silently give new ids to one side of a join whose sides
 * share some, so that must be caught first. And a command would run again. `after` runs on what the analyser made of
 * it and compares with the original.
 *
 * Law: only new nodes are looked at, each once; what came from the export was checked by Spark.
 */
private[pyjoinopt] final class PlanChecks(handle: Handle) {
  private val numbers = new mutable.HashMap[ExprId, Int]
  private val outputs = new IdentityHashMap[LogicalPlan, Array[Int]]
  private val available = new IdentityHashMap[LogicalPlan, BitSet]

  handle.attributes.foreach(number)
  handle.nodes.indices.foreach(i => outputs.put(handle.nodes(i), handle.outputs(i)))

  private def number(attribute: Attribute): Int = numbers.getOrElseUpdate(attribute.exprId, numbers.size)

  def before(plan: LogicalPlan): Unit = {
    if (handle.nodes.exists(_.isInstanceOf[Command])) Support.fail("A command is not rebuilt: it would run again.")
    Support.postOrder(plan)(parts, outputs.containsKey)(check)
  }

  private def check(node: LogicalPlan): Unit = {
    outputs.put(node, NodeOutputs.of(node, outputs.get, number))
    val input = new BitSet
    node.children.foreach(child => input.or(columns(child)))
    missing(node.references, input).foreach { attribute =>
      Support.fail(s"${node.nodeName} needs the column $attribute, which its children do not put out.")
    }
    node match {
      case join: Join if columns(join.left).intersects(columns(join.right)) =>
        Support.fail(s"Both sides of a join put out the same column: ${shared(join)}.")
      case _ =>
    }
  }

  private def parts(node: LogicalPlan): Iterable[LogicalPlan] =
    if (!node.containsPattern(PLAN_EXPRESSION)) node.children
    else node.children ++ node.expressions.flatMap(_.collect { case s: SubqueryExpression => s.plan })

  private def columns(node: LogicalPlan): BitSet = {
    val known = available.get(node)
    if (known != null) known
    else {
      val set = new BitSet
      outputs.get(node).foreach(n => if (n >= 0) set.set(n))
      available.put(node, set)
      set
    }
  }

  private def missing(references: AttributeSet, input: BitSet): Option[Attribute] =
    references.find(attribute => !numbers.get(attribute.exprId).exists(input.get))

  private def shared(join: Join): String = {
    val both = columns(join.left).clone.asInstanceOf[BitSet]
    both.and(columns(join.right))
    join.left.output.filter(a => both.get(number(a))).take(3).mkString(", ")
  }

  def after(analyzed: LogicalPlan): Unit = {
    val (old, now) = (handle.root.output, analyzed.output)
    if (!analyzed.resolved) Support.fail("The rebuilt plan is not resolved.")
    if (analyzed.isStreaming != handle.root.isStreaming) Support.fail("A plan cannot start or stop streaming.")
    if (old.map(_.exprId) != now.map(_.exprId) || old.map(_.name) != now.map(_.name)) {
      Support.fail(s"The columns changed from ${names(old)} to ${names(now)}.")
    }
    old.zip(now).foreach { case (before, after) =>
      if (!DataType.equalsIgnoreCompatibleNullability(after.dataType, before.dataType)) {
        Support.fail(s"Column $before changed its type from ${before.dataType.sql} to ${after.dataType.sql}.")
      }
      if (after.nullable && !before.nullable) Support.fail(s"Column $before became nullable.")
      if (after.metadata != before.metadata) Support.fail(s"Column $before changed its metadata.")
    }
  }

  private def names(columns: Iterable[Attribute]): String = Support.cut(columns.mkString("(", ", ", ")"))
}
