package org.apache.spark.sql.pyjoinopt

import java.util.WeakHashMap
import java.util.concurrent.atomic.AtomicLong

/**
 * How many bytes the proofs of keys of one query may read, and those of its session together.
 *
 * Bytes count when they have been read. A reason names the limits, and never how much is left of them, so that a
 * repeated request has the same answer.
 */
private[pyjoinopt] final class ReadBudget(
    query: AtomicLong,
    mostOfQuery: Long,
    session: AtomicLong,
    mostOfSession: Long) {

  def add(bytes: Long): Unit = {
    query.addAndGet(bytes)
    session.addAndGet(bytes)
  }

  /** Why so many more bytes may not be read; None if they may. */
  def refusal(more: Double): Option[String] =
    if (session.get + more > mostOfSession) Some(ReadBudget.reason("session", mostOfSession, "sessionBackgroundMb"))
    else if (query.get + more > mostOfQuery) Some(ReadBudget.reason("query", mostOfQuery, "backgroundMb"))
    else None
}

private[pyjoinopt] object ReadBudget {
  private val sessions = new WeakHashMap[Compat.Session, AtomicLong]

  /** The bytes that proofs of keys have read for the queries of a session. */
  def ofSession(session: Compat.Session): AtomicLong =
    sessions.synchronized(sessions.computeIfAbsent(session, _ => new AtomicLong))

  private def reason(of: String, bytes: Long, key: String): String =
    s"the ${bytes >> 20} MiB that a $of may read in the background are not enough (spark.pyjoinopt.$key)"
}
