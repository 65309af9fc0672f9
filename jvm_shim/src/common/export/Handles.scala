package org.apache.spark.sql.pyjoinopt

import java.util.concurrent.atomic.AtomicLong

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/** The objects of an export, which the JVM keeps: a number in the export is an index into these lists. */
private[pyjoinopt] final case class Handle(
    session: Compat.Session,
    root: LogicalPlan,
    nodes: IndexedSeq[LogicalPlan],
    outputs: IndexedSeq[Array[Int]],
    expressions: IndexedSeq[Expression],
    attributes: IndexedSeq[Attribute]) {

  /** The bytes that proofs of keys have read for this query. */
  val keyBytes = new AtomicLong

  /** The attribute with a number that Python sent. */
  def attribute(number: Int): Attribute =
    attributes.applyOrElse(number, (n: Int) => Support.fail(s"There is no attribute $n"))
}

/**
 * The exports that are still open.
 *
 * Law: memory is bounded. If too many exports are not released, the oldest is dropped.
 */
private[pyjoinopt] object Handles {
  private val Limit = 256
  private val open = new OpenNumbers[Handle](Limit)

  def register(handle: Handle): Long = open.put(handle)

  def apply(number: Long): Handle = open.get(number).getOrElse {
    Support.fail(s"Export $number is no longer open: released, or $Limit others came after it.")
  }

  def release(number: Long): Unit = open.remove(number)

  def count: Int = open.size
}
