package org.apache.spark.sql.pyjoinopt

import java.util.WeakHashMap
import java.util.concurrent.TimeUnit

import org.apache.spark.sql.catalyst.QueryPlanningTracker

/**
 * The time that a query may spend in join ordering. Spark plans its subqueries separately; they share one budget.
 *
 * Waiting for a worker counts, whether it is busy or starting. After a worker has failed, later plans of the query are
 * not changed, without a message. The same is true if there was no worker in time, unless a later plan may wait longer:
 * Spark plans the small subquery of a large query first.
 */
private[pyjoinopt] final class PlanningTimeBudget {
  private val planning = new Stopwatch
  private var bytes = 0.0
  private var gaveUpAfter = 0L

  /** The largest number of bytes that a plan of this query reads, this one included. */
  def reading(more: Double): Double = synchronized {
    bytes = math.max(bytes, more)
    bytes
  }

  /** The rest of so many milliseconds. */
  def left(milliseconds: Long): Long = milliseconds - planning.milliseconds

  /** How long the query may still wait for a worker: a request that is sent too late would end the worker. */
  def leftToWait(milliseconds: Long): Long = left(milliseconds) - milliseconds / 4

  def plans[T](body: => T): T = planning.during(body)

  /** No worker was available within this time. By default, no later plan of the query gets one. */
  def giveUp(milliseconds: Long = Long.MaxValue): Unit = synchronized {
    gaveUpAfter = math.max(gaveUpAfter, milliseconds)
  }

  /** Whether a plan that may wait so long should not wait, since an earlier one waited as long in vain. */
  def isGivenUp(milliseconds: Long): Boolean = synchronized(gaveUpAfter >= milliseconds)
}

private[pyjoinopt] object PlanningTimeBudget {
  private val known = new WeakHashMap[QueryPlanningTracker, PlanningTimeBudget]

  /**
   * The budget of the query that this thread plans, by Spark's tracker of it; without a tracker, each plan is a query.
   */
  def ofThisQuery(): PlanningTimeBudget = QueryPlanningTracker.get match {
    case Some(query) => synchronized {
        if (!known.containsKey(query)) known.put(query, new PlanningTimeBudget)
        known.get(query)
      }
    case None => new PlanningTimeBudget
  }
}

/** Measures the total time of nested or consecutive calls. */
private[pyjoinopt] final class Stopwatch {
  private var total = 0L
  private var since = 0L
  private var depth = 0

  def milliseconds: Long = synchronized {
    TimeUnit.NANOSECONDS.toMillis(if (depth > 0) total + System.nanoTime - since else total)
  }

  def during[T](body: => T): T = {
    enter()
    try body
    finally leave()
  }

  private def enter(): Unit = synchronized {
    if (depth == 0) since = System.nanoTime
    depth += 1
  }

  private def leave(): Unit = synchronized {
    depth -= 1
    if (depth == 0) total += System.nanoTime - since
  }
}
