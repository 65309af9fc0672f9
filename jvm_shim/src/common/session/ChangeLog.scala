package org.apache.spark.sql.pyjoinopt

import java.util.WeakHashMap

import scala.collection.mutable.ListBuffer

import org.apache.spark.sql.catalyst.QueryPlanningTracker

/**
 * Logs one line for each query that was changed.
 *
 * Spark optimises the plans of subqueries first, each like a query. Their changes are collected here until the
 * enclosing query ends. A query is identified by Spark's tracker of it, or by its thread if it has none.
 */
private[pyjoinopt] object ChangeLog {
  private final case class Change(milliseconds: Long, summary: String)

  private val pending = new WeakHashMap[AnyRef, ListBuffer[Change]]

  /** Record a change of a plan, which is a query or a part of one. */
  def add(milliseconds: Long, summary: String): Unit = synchronized {
    pending.computeIfAbsent(query, _ => ListBuffer.empty) += Change(milliseconds, summary)
  }

  /** Log the changes of this thread's query, after it and all its parts have been planned. */
  def write(): Unit = {
    val changes = synchronized(if (pending.isEmpty) null else pending.remove(query))
    if (changes != null) {
      val summaries = changes.map(_.summary).filter(_.nonEmpty).mkString("; ")
      OptimizeJoins.log.info(s"Joins reordered in ${changes.map(_.milliseconds).sum} ms: $summaries")
    }
  }

  private def query: AnyRef = QueryPlanningTracker.get.getOrElse(Thread.currentThread)
}
