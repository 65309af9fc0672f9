package org.apache.spark.sql.pyjoinopt

import java.util.WeakHashMap
import java.util.concurrent.TimeUnit

import org.apache.spark.sql.catalyst.QueryPlanningTracker

/**
 * How long a query has been held up: Spark plans its subqueries apart, but the time is for all of it.
 *
 * Waiting for a worker counts, be it busy or starting. A query that got no worker, or saw one fail, asks no other: its
 * later plans stay as written, and nothing more is said.
 */
private[pyjoinopt] final class QueryTime {
  private val planning = new Stopwatch
  @volatile private var over = false

  /** What is left of so many milliseconds for planning. */
  def left(milliseconds: Long): Long = milliseconds - planning.milliseconds

  /** How long it may still wait for its turn: a worker that is asked too late is ended for being late. */
  def leftToWait(milliseconds: Long): Long = left(milliseconds) - milliseconds / 4

  def plans[T](body: => T): T = planning.during(body)

  def giveUp(): Unit = over = true

  def isGivenUp: Boolean = over
}

private[pyjoinopt] object QueryTime {
  private val known = new WeakHashMap[QueryPlanningTracker, QueryTime]

  /** The time of the query that this thread plans, known by Spark's tracker of it; without one, each plan is a query. */
  def ofThisQuery(): QueryTime = QueryPlanningTracker.get match {
    case Some(query) => synchronized {
      if (!known.containsKey(query)) known.put(query, new QueryTime)
      known.get(query)
    }
    case None => new QueryTime
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
