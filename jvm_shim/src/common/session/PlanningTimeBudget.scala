package org.apache.spark.sql.pyjoinopt

import java.util.WeakHashMap
import java.util.concurrent.TimeUnit

import org.apache.spark.sql.catalyst.QueryPlanningTracker

/**
 * How long a query has been held up: Spark plans its subqueries apart, but the time is for all of it.
 *
 * Waiting for a worker counts, be it busy or starting. A query that saw a worker fail asks no other: its later plans stay
 * as written, and nothing more is said. The same holds if it got no worker, unless a later plan may wait longer: Spark
 * plans the small subquery of a large query first.
 */
private[pyjoinopt] final class PlanningTimeBudget {
  private val planning = new Stopwatch
  private var bytes = 0.0
  private var gaveUpAfter = 0L

  /** The most bytes that any plan of this query is known to read, this one included. */
  def reading(more: Double): Double = synchronized {
    bytes = math.max(bytes, more)
    bytes
  }

  /** What is left of so many milliseconds for planning. */
  def left(milliseconds: Long): Long = milliseconds - planning.milliseconds

  /** How long it may still wait for its turn: a worker that is asked too late is ended for being late. */
  def leftToWait(milliseconds: Long): Long = left(milliseconds) - milliseconds / 4

  def plans[T](body: => T): T = planning.during(body)

  /** No worker came within this time; without one, none is of use any more. */
  def giveUp(milliseconds: Long = Long.MaxValue): Unit = synchronized {
    gaveUpAfter = math.max(gaveUpAfter, milliseconds)
  }

  /** Whether a plan that may wait so long need not wait at all. */
  def isGivenUp(milliseconds: Long): Boolean = synchronized(gaveUpAfter >= milliseconds)
}

private[pyjoinopt] object PlanningTimeBudget {
  private val known = new WeakHashMap[QueryPlanningTracker, PlanningTimeBudget]

  /** The time of the query that this thread plans, known by Spark's tracker of it; without one, each plan is a query. */
  def ofThisQuery(): PlanningTimeBudget = QueryPlanningTracker.get match {
    case Some(query) => synchronized {
      if (!known.containsKey(query)) known.put(query, new PlanningTimeBudget)
      known.get(query)
    }
    case None => new PlanningTimeBudget
  }
}

/** Adds up the time that some things take, one inside the other or one after the other. */
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
