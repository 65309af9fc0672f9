package org.apache.spark.sql.pyjoinopt

import java.util.WeakHashMap

import scala.collection.mutable.ListBuffer

import org.slf4j.MDC

import org.apache.spark.sql.catalyst.QueryPlanningTracker

/**
 * What became of one plan.
 *
 * @param outcome one of `PlanMetrics`
 * @param summary what was changed, in one line
 * @param refusals the keys of the reasons for which parts of it are left as written
 * @param costs of the written and of the chosen orders
 */
private[pyjoinopt] final case class PlanEnd(
    outcome: String,
    milliseconds: Long,
    summary: String = "",
    refusals: Seq[String] = Nil,
    costs: Option[(Double, Double)] = None)

/**
 * Logs one line for each query that was planned. The line has its figures as keys of the logging context (MDC), which
 * layouts such as Spark's structured logging write as fields.
 *
 * Spark optimises the plans of subqueries first, each like a query. They are collected here until the enclosing query
 * ends. A query is identified by Spark's tracker of it, or by its thread if it has none.
 *
 * Laws: a query never fails because of its line. What the context had under these keys, it has again afterwards.
 */
private[pyjoinopt] object PlanLog {
  private val Ours = "pyjoinopt_"
  private val ExecutionId = "spark.sql.execution.id"

  private val pending = new WeakHashMap[AnyRef, ListBuffer[PlanEnd]]

  /** Record the end of a plan, which is a query or a part of one. */
  def add(plan: PlanEnd): Unit = {
    PlanEvents.end(plan.outcome)
    synchronized(pending.computeIfAbsent(query, _ => ListBuffer.empty) += plan)
  }

  /** Log this thread's query, after it and all its parts have been planned. */
  def write(session: Compat.Session): Unit = Support.attempt(()) {
    val plans = synchronized(if (pending.isEmpty) null else pending.remove(query))
    if (plans != null && OptimizeJoins.log.isInfoEnabled) log(session, plans.toList)
  }

  private def query: AnyRef = QueryPlanningTracker.get.getOrElse(Thread.currentThread)

  private def log(session: Compat.Session, plans: List[PlanEnd]): Unit = {
    val milliseconds = plans.map(_.milliseconds).sum
    val outcomes = plans.map(_.outcome).distinct.mkString(",")
    val refusals = plans.flatMap(_.refusals).distinct.sorted.mkString(",")
    val costs = plans.flatMap(_.costs)
    val (before, after) = (costs.map(_._1).sum, costs.map(_._2).sum)
    val spent = if (costs.isEmpty) "" else s"; cost $before to $after"
    val details = s"($outcomes$spent${if (refusals.isEmpty) "" else s"; refusals $refusals"})"
    val figures = Seq(
      s"${Ours}outcome" -> outcomes,
      s"${Ours}milliseconds" -> milliseconds.toString,
      s"${Ours}plans" -> plans.size.toString,
      s"${Ours}refusals" -> refusals) ++
      (if (costs.isEmpty) Nil
       else Seq(s"${Ours}cost_before" -> before.toString, s"${Ours}cost_after" -> after.toString))
    // The name of this key in Spark's own lines.
    val number = Option(session.sparkContext.getLocalProperty(ExecutionId)).map("execution_id" -> _)
    inContext(figures ++ number) {
      if (plans.exists(_.outcome == "changed")) {
        val summaries = plans.map(_.summary).filter(_.nonEmpty).mkString("; ")
        OptimizeJoins.log.info(s"Joins reordered in $milliseconds ms $details: $summaries")
      } else OptimizeJoins.log.info(s"Joins kept as written in $milliseconds ms $details")
    }
  }

  private def inContext(values: Seq[(String, String)])(body: => Unit): Unit = {
    val before = values.map { case (key, _) => key -> MDC.get(key) }
    try {
      values.foreach { case (key, value) => MDC.put(key, value) }
      body
    } finally before.foreach { case (key, value) => if (value == null) MDC.remove(key) else MDC.put(key, value) }
  }
}
