package org.apache.spark.sql.pyjoinopt

import java.util.WeakHashMap
import java.util.concurrent.TimeUnit

import org.apache.spark.sql.catalyst.QueryPlanningTracker

/**
 * How long the workers have thought about a query: Spark plans its subqueries apart, but the time is for all of it.
 *
 * A query is known by Spark's tracker of it; where there is none, each plan is taken for a query.
 */
private[pyjoinopt] object QueryTime {
  private val spent = new WeakHashMap[QueryPlanningTracker, java.lang.Long]

  /** What is left of so many milliseconds. */
  def left(milliseconds: Long): Long =
    milliseconds - TimeUnit.NANOSECONDS.toMillis(QueryPlanningTracker.get.fold(0L)(before))

  /** Count the time that this takes. */
  def counted[T](body: => T): T = {
    val started = System.nanoTime
    try body
    finally QueryPlanningTracker.get.foreach { query =>
      val took = System.nanoTime - started
      synchronized(spent.put(query, before(query) + took))
    }
  }

  private def before(query: QueryPlanningTracker): Long = synchronized {
    val nanos = spent.get(query)
    if (nanos == null) 0L else nanos
  }
}
