package org.apache.spark.sql.pyjoinopt

import java.util.{ArrayDeque, WeakHashMap}
import java.util.concurrent.atomic.AtomicLong

import org.apache.spark.sql.catalyst.QueryPlanningTracker
import org.apache.spark.sql.execution.QueryExecution
import org.apache.spark.sql.util.QueryExecutionListener

/**
 * Hears of every query of a session that has ended, and keeps what it did until somebody asks.
 *
 * Laws: a query is never kept waiting for us and never fails because of us; only the last few are kept, as text. What
 * was heard stays when its session ends.
 */
private[pyjoinopt] final class Feedback(tell: QueryExecution => Option[String], keep: String => Unit)
    extends QueryExecutionListener {
  override def onSuccess(function: String, execution: QueryExecution, nanos: Long): Unit =
    Support.attempt(())(tell(execution).foreach(keep))

  override def onFailure(function: String, execution: QueryExecution, error: Exception): Unit = ()
}

/** Who listens to which session. */
private[pyjoinopt] final class Listeners(tell: QueryExecution => Option[String]) {
  private val listeners = new WeakHashMap[Compat.Session, Feedback]
  private val heard = new ArrayDeque[String]

  /** Listen from now on, once a session. */
  def listen(session: Compat.Session): Unit = listeners.synchronized {
    if (!listeners.containsKey(session)) {
      val listener = new Feedback(tell, keep)
      session.listenerManager.register(listener)
      listeners.put(session, listener)
    }
  }

  /** Listen no longer. */
  def stop(session: Compat.Session): Unit = listeners.synchronized {
    Option(listeners.remove(session)).foreach(session.listenerManager.unregister(_))
  }

  /** What ended since the last question, in all sessions. */
  def take(): Seq[String] = heard.synchronized {
    val all = heard.toArray(Array.empty[String]).toSeq
    heard.clear()
    all
  }

  private def keep(plan: String): Unit = heard.synchronized {
    heard.addLast(plan)
    while (heard.size > Feedback.Kept) heard.removeFirst()
  }
}

private[pyjoinopt] object Feedback {
  val Kept = 64

  /** For the calls of a driver: a JSON array of operators. */
  val ofCalls = new Listeners(ExecutedPlan.json)

  /** For the workers: the number of the query and its operators, of queries that were planned under a number. */
  val ofSessions = new Listeners(execution =>
    numberOf(execution.tracker).flatMap(n => ExecutedPlan.json(execution).map(o => s"""{"query":$n,"operators":$o}""")))

  private val numbers = new WeakHashMap[QueryPlanningTracker, java.lang.Long]
  private val last = new AtomicLong

  private def numberOf(tracker: QueryPlanningTracker): Option[Long] =
    numbers.synchronized(Option(numbers.get(tracker)).map(_.longValue))

  /**
   * The number of the query that this thread plans. Its columns do not tell it: two queries over one view have the same.
   * Its tracker does, which Spark hands on from the planning to the listeners.
   */
  def numberOfThisQuery(): Option[Long] = QueryPlanningTracker.get.map { tracker =>
    numbers.synchronized(numbers.computeIfAbsent(tracker, _ => last.incrementAndGet()).longValue)
  }
}
