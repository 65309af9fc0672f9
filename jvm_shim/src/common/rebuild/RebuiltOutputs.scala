package org.apache.spark.sql.pyjoinopt

import java.util.{Arrays, BitSet, IdentityHashMap}

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.{Attribute, ExprId}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/**
 * The outputs of a plan under construction, each computed once from those of the children (see NodeOutputs).
 *
 * Law: outputs of children are requested before those of their parents, so no call recurses deeper than one level.
 */
private[pyjoinopt] final class RebuiltOutputs(handle: Handle) {
  private val numbers = new mutable.HashMap[ExprId, Int]
  private val outputs = new IdentityHashMap[LogicalPlan, Array[Int]]
  private val sets = new IdentityHashMap[LogicalPlan, BitSet]

  handle.attributes.foreach(number)
  handle.nodes.indices.foreach(i => outputs.put(handle.nodes(i), handle.outputs(i)))

  def number(attribute: Attribute): Int = numbers.getOrElseUpdate(attribute.exprId, numbers.size)

  def contains(node: LogicalPlan): Boolean = outputs.containsKey(node)

  def apply(node: LogicalPlan): Array[Int] = {
    val known = outputs.get(node)
    if (known != null) known
    else {
      val output = NodeOutputs.of(node, apply, number)
      outputs.put(node, output)
      output
    }
  }

  def same(one: LogicalPlan, other: LogicalPlan): Boolean = Arrays.equals(apply(one), apply(other))

  def set(node: LogicalPlan): BitSet = {
    val known = sets.get(node)
    if (known != null) known
    else {
      val set = new BitSet
      apply(node).foreach(n => if (n >= 0) set.set(n))
      sets.put(node, set)
      set
    }
  }
}
