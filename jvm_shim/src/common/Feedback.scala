package org.apache.spark.sql.pyjoinopt

import java.util.{ArrayDeque, WeakHashMap}

import org.apache.spark.sql.execution.QueryExecution
import org.apache.spark.sql.util.QueryExecutionListener

/**
 * Hears of every query of a session that has ended, and keeps what it did until somebody asks.
 *
 * Laws: a query is never kept waiting for us and never fails because of us; only the last few are kept, as text. What
 * was heard stays when its session ends.
 */
private[pyjoinopt] final class Feedback extends QueryExecutionListener {
  override def onSuccess(function: String, execution: QueryExecution, nanos: Long): Unit =
    Support.attempt(())(ExecutedPlan.json(execution).foreach(Feedback.keep))

  override def onFailure(function: String, execution: QueryExecution, error: Exception): Unit = ()
}

private[pyjoinopt] object Feedback {
  private val Kept = 64
  private val listeners = new WeakHashMap[Compat.Session, Feedback]
  private val heard = new ArrayDeque[String]

  /** Listen from now on, once a session. */
  def listen(session: Compat.Session): Unit = listeners.synchronized {
    if (!listeners.containsKey(session)) {
      val listener = new Feedback
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
    while (heard.size > Kept) heard.removeFirst()
  }
}
