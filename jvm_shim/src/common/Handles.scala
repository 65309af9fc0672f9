package org.apache.spark.sql.pyjoinopt

import java.util.concurrent.ConcurrentSkipListMap
import java.util.concurrent.atomic.AtomicLong

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/** What an export leaves behind in the JVM: the objects that its numbers mean. */
private[pyjoinopt] final case class Handle(
    session: Compat.Session,
    root: LogicalPlan,
    nodes: IndexedSeq[LogicalPlan],
    outputs: IndexedSeq[Array[Int]],
    expressions: IndexedSeq[Expression],
    attributes: IndexedSeq[Attribute])

/**
 * The exports that are still open.
 *
 * Law: memory is bounded. Whoever forgets to release loses the oldest export, never the driver.
 */
private[pyjoinopt] object Handles {
  private val Limit = 256
  private val open = new ConcurrentSkipListMap[java.lang.Long, Handle]
  private val last = new AtomicLong

  def register(handle: Handle): Long = {
    val number = last.incrementAndGet()
    open.put(number, handle)
    while (open.size > Limit) open.pollFirstEntry()
    number
  }

  def apply(number: Long): Handle = {
    val handle = open.get(number)
    if (handle == null) Support.fail(s"Export $number is no longer open: released, or $Limit others came after it.")
    handle
  }

  def release(number: Long): Unit = open.remove(number)

  def count: Int = open.size
}
