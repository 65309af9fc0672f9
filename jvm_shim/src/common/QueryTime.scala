package org.apache.spark.sql.pyjoinopt

import java.util.WeakHashMap
import java.util.concurrent.TimeUnit

import org.apache.spark.sql.catalyst.QueryPlanningTracker

/**
 * How long a query has been held up: Spark plans its subqueries apart, but the time is for all of it.
 *
 * Two clocks: one for planning, with waiting for a worker that is busy; one for waiting until a worker has started. A
 * query that got no worker, or saw one fail, asks no other: its later plans stay as written, and nothing more is said.
 */
private[pyjoinopt] final class QueryTime {
  private val planning, starting = new Stopwatch
  @volatile private var over = false

  /** What is left of so many milliseconds for planning. */
  def left(milliseconds: Long): Long = milliseconds - planning.milliseconds

  /** How long it may still wait for its turn: a worker that is asked too late is ended for being late. */
  def leftToWait(milliseconds: Long): Long = left(milliseconds) - milliseconds / 4

  /** What is left of so many milliseconds for waiting until a worker has started. */
  def leftToStart(milliseconds: Long): Long = milliseconds - starting.milliseconds

  def plans[T](body: => T): T = planning.during(body)

  /** The clock of planning stands while a worker starts. */
  def starts[T](body: => T): T = planning.without(starting.during(body))

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

/** Adds up the time that some things take. */
private[pyjoinopt] final class Stopwatch {
  private var total = 0L
  private var since = 0L
  private var isRunning = false

  def milliseconds: Long = synchronized {
    TimeUnit.NANOSECONDS.toMillis(if (isRunning) total + System.nanoTime - since else total)
  }

  def during[T](body: => T): T = switched(on = true)(body)

  def without[T](body: => T): T = switched(on = false)(body)

  private def switched[T](on: Boolean)(body: => T): T = {
    val before = switch(on)
    try body
    finally switch(before)
  }

  private def switch(on: Boolean): Boolean = synchronized {
    val before = isRunning
    val now = System.nanoTime
    if (before) total += now - since
    since = now
    isRunning = on
    before
  }
}
