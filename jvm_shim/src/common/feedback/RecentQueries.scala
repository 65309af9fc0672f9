package org.apache.spark.sql.pyjoinopt

import java.util.ArrayDeque

/** The operators of queries that ended, as JSON, until somebody takes them; of many only the last few. Thread-safe. */
private[pyjoinopt] final class RecentQueries {
  private val queries = new ArrayDeque[String]

  def add(query: String): Unit = synchronized {
    queries.addLast(query)
    while (queries.size > RecentQueries.Limit) queries.removeFirst()
  }

  def isEmpty: Boolean = synchronized(queries.isEmpty)

  /** All of them, the oldest first. They are removed. */
  def take(): Seq[String] = synchronized {
    val all = queries.toArray(Array.empty[String]).toList
    queries.clear()
    all
  }
}

private[pyjoinopt] object RecentQueries {
  private val Limit = 64
}
