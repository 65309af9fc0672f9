package org.apache.spark.sql.pyjoinopt

import java.util.WeakHashMap
import java.util.concurrent.atomic.AtomicLong

import org.apache.spark.sql.catalyst.QueryPlanningTracker
import org.apache.spark.sql.execution.QueryExecution
import org.apache.spark.sql.util.QueryExecutionListener

/**
 * Spark's listener of one session: records the metrics of every query that ended without an error.
 *
 * Laws: a query never waits for the listener and never fails because of it. Only the last few queries are kept, as
 * text. They are kept when their session ends.
 */
private[pyjoinopt] final class Feedback(describe: QueryExecution => Option[String], record: String => Unit)
    extends QueryExecutionListener {
  override def onSuccess(function: String, execution: QueryExecution, nanos: Long): Unit =
    Support.attempt(())(describe(execution).foreach(record))

  override def onFailure(function: String, execution: QueryExecution, error: Exception): Unit = ()
}

/** The listeners of all sessions for one purpose, and the queries that they recorded. */
private[pyjoinopt] final class Listeners(describe: QueryExecution => Option[String]) {
  private val listeners = new WeakHashMap[Compat.Session, Feedback]
  private val queries = new RecentQueries

  /** Add a listener to a session, unless it has one. */
  def listen(session: Compat.Session): Unit = listeners.synchronized {
    if (!listeners.containsKey(session)) {
      val listener = new Feedback(describe, queries.add)
      session.listenerManager.register(listener)
      listeners.put(session, listener)
    }
  }

  /** Remove the listener of a session. */
  def stop(session: Compat.Session): Unit = listeners.synchronized {
    Option(listeners.remove(session)).foreach(session.listenerManager.unregister(_))
  }

  /** The queries of all sessions that ended since the last call. */
  def take(): Seq[String] = queries.take()
}

private[pyjoinopt] object Feedback {

  /** For DataFrames that a driver optimised by calls: each query as a JSON array of operators. */
  val ofCalls = new Listeners(ExecutedPlan.json)

  /** For the workers: the number and the operators of each query that was planned under a number. */
  val ofSessions = new Listeners(execution =>
    numberOf(execution.tracker).flatMap(n => ExecutedPlan.json(execution).map(o => s"""{"query":$n,"operators":$o}""")))

  private val numbers = new WeakHashMap[QueryPlanningTracker, java.lang.Long]
  private val last = new AtomicLong

  private def numberOf(tracker: QueryPlanningTracker): Option[Long] =
    numbers.synchronized(Option(numbers.get(tracker)).map(_.longValue))

  /**
   * The number of the query that this thread plans. It belongs to the query's tracker, which Spark passes from planning
   * to the listeners. Columns cannot identify a query: two queries over one view have the same.
   */
  def numberOfThisQuery(): Option[Long] = QueryPlanningTracker.get.map { tracker =>
    numbers.synchronized(numbers.computeIfAbsent(tracker, _ => last.incrementAndGet()).longValue)
  }
}
