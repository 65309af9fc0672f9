package org.apache.spark.sql.pyjoinopt

import java.util.WeakHashMap

import scala.collection.mutable.ListBuffer

import org.apache.spark.sql.catalyst.QueryPlanningTracker

/**
 * One line of log for each query that was changed.
 *
 * Spark optimises the plans of subqueries first, each as if it were a query. What was done to them waits here for the
 * query around them, which is known by Spark's tracker of it, or by its thread where there is none.
 */
private[pyjoinopt] object ChangeLog {
  private final case class Change(milliseconds: Long, summary: String)

  private val waiting = new WeakHashMap[AnyRef, ListBuffer[Change]]

  /** A plan was changed: a whole query, or a part of one. */
  def add(milliseconds: Long, summary: String): Unit = synchronized {
    waiting.computeIfAbsent(query, _ => ListBuffer.empty) += Change(milliseconds, summary)
  }

  /** The query of this thread has come to its end, all its parts before it. */
  def tell(): Unit = {
    val changes = synchronized(if (waiting.isEmpty) null else waiting.remove(query))
    if (changes != null) {
      val summaries = changes.map(_.summary).filter(_.nonEmpty).mkString("; ")
      OptimizeJoins.log.info(s"Joins reordered in ${changes.map(_.milliseconds).sum} ms: $summaries")
    }
  }

  private def query: AnyRef = QueryPlanningTracker.get.getOrElse(Thread.currentThread)
}
