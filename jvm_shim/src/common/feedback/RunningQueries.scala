package org.apache.spark.sql.pyjoinopt

import java.util.{Collections, Locale, WeakHashMap}

import scala.collection.mutable

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.SparkContext
import org.apache.spark.scheduler._
import org.apache.spark.sql.catalyst.QueryPlanningTracker
import org.apache.spark.sql.execution.{QueryExecution, SQLExecution}
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd

/**
 * Watches the queries of sessions with feedback while they run: counts the time of their tasks, and logs one WARN for a
 * query one of whose joins exceeds its estimate by far. Its plan is not changed.
 *
 * Laws: a query never waits for this, and never fails because of it. A join's rows are those of finished tasks, or what
 * running tasks have sent with heartbeats, whichever is more: never more than there are. Other queries cost a lookup for
 * each job. What is known of a query goes when it ends; of many only the last ones are watched.
 *
 * Spark calls a listener from one thread, which is the only one that changes its fields.
 */
private[pyjoinopt] final class RunningQueries extends SparkListener {
  private val running = new mutable.LinkedHashMap[Long, RunningQuery]
  private val stages = new mutable.HashMap[Int, RunningQuery]

  override def onJobStart(start: SparkListenerJobStart): Unit = Support.attempt(()) {
    for {
      properties <- Option(start.properties)
      id <- Option(properties.getProperty(SQLExecution.EXECUTION_ID_KEY)).map(_.toLong)
      query <- running.get(id).orElse(watched(id))
    } start.stageIds.foreach(stages(_) = query)
  }

  private def watched(id: Long): Option[RunningQuery] =
    for {
      execution <- Option(SQLExecution.getQueryExecution(id)) if isPlanned(execution)
      tasks <- RunningQueries.tasksOf(execution.tracker)
    } yield {
      if (running.size >= RunningQueries.MostQueries) forget(running.head._1)
      val query = new RunningQuery(id, execution, RunningQueries.expected(execution.tracker), tasks)
      running(id) = query
      query
    }

  /** Planning may start jobs, for example to list files. Its plan cannot be read before it is there. */
  private def isPlanned(execution: QueryExecution): Boolean =
    execution.tracker.phases.contains(QueryPlanningTracker.PLANNING)

  override def onExecutorMetricsUpdate(update: SparkListenerExecutorMetricsUpdate): Unit =
    if (stages.nonEmpty) Support.attempt(()) {
      update.accumUpdates.foreach { case (task, stage, _, counted) =>
        stages.get(stage).foreach { query =>
          query.look()
          for (metric <- counted; rows <- metric.update) query.count(task, metric.id, rows)
          query.warn()
        }
      }
    }

  override def onTaskEnd(end: SparkListenerTaskEnd): Unit =
    stages.get(end.stageId).foreach { query =>
      Support.attempt(()) {
        Option(end.taskMetrics).foreach(metrics => query.tasks.add(end.stageId, metrics.executorRunTime))
        query.ended(end.taskInfo.taskId)
        if (query.look()) query.warn()
      }
    }

  override def onStageCompleted(completed: SparkListenerStageCompleted): Unit =
    stages.get(completed.stageInfo.stageId).foreach { query => // it may run once more, after a failed fetch
      Support.attempt(()) {
        query.look(atOnce = true)
        query.warn()
      }
    }

  override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
    case end: SparkListenerSQLExecutionEnd => forget(end.executionId)
    case _ =>
  }

  private def forget(id: Long): Unit = running.remove(id).foreach { query =>
    stages.filter(_._2 eq query).keys.toList.foreach(stages.remove)
  }
}

/** A query that runs, and what its running tasks have counted. */
private final class RunningQuery(
    id: Long,
    execution: QueryExecution,
    groups: Seq[ExpectedJoins],
    val tasks: TaskTimes) {
  private var looked = System.nanoTime - RunningQueries.Pause
  private var joins = Seq.empty[ExpectedJoin]
  private var metrics = Set.empty[Long]
  private var warned = false

  /** Running task -> metric -> rows, and their sums over the tasks. */
  private val counts = new mutable.HashMap[Long, mutable.HashMap[Long, Long]]
  private val sums = new mutable.HashMap[Long, Long].withDefaultValue(0L)

  /** Find the joins in the plan as it is now; false if that was done just now, or if there is no more to find. */
  def look(atOnce: Boolean = false): Boolean = !warned && groups.nonEmpty && {
    val now = System.nanoTime
    val due = atOnce || now - looked >= RunningQueries.Pause
    if (due) {
      looked = now
      joins = groups.flatMap(_.located(execution.executedPlan)) // adaptive execution may have changed the plan anywhere
      metrics = joins.map(_.counted.id).toSet
    }
    due
  }

  /** A running task has counted so many rows until now. */
  def count(task: Long, metric: Long, rows: Any): Unit = rows match {
    case number: Long if metrics(metric) =>
      val before = counts.getOrElseUpdate(task, mutable.HashMap.empty).put(metric, number)
      sums(metric) += number - before.getOrElse(0L)
    case _ =>
  }

  def ended(task: Long): Unit =
    counts.remove(task).foreach(_.foreach { case (metric, number) => sums(metric) -= number })

  /** Log the join that exceeds its estimate the most, once. */
  def warn(): Unit = if (!warned) {
    val counted = joins.map(join => join -> rows(join)).filter { case (join, rows) =>
      rows - join.estimated >= RunningQueries.Excess && rows > join.estimated * RunningQueries.Factor
    }
    if (counted.nonEmpty) {
      val (join, rows) = counted.maxBy { case (join, rows) => rows / math.max(join.estimated, 1.0) }
      warned = true
      RunningQueries.log(id, join, rows, groups.exists(_.changed), groups.exists(_.stored))
    }
  }

  private def rows(join: ExpectedJoin): Long = math.max(join.counted.value, sums(join.counted.id))
}

private[pyjoinopt] object RunningQueries {

  /**
   * A join is reported from so many times its estimate. Estimates of several joins are often wrong by a factor of ten,
   * with plans that are good nevertheless; by a factor of a hundred, the order was chosen for other data.
   */
  val Factor = 100

  /** ... and from so many rows more than estimated. Spark joins a million rows in about a second, which is no loss. */
  val Excess = 1000000

  /** Between two looks at a query (nanoseconds), unless a stage ends. */
  val Pause = 1000000000L

  /** More queries than a driver runs at a time. If the end of one is not heard, the oldest goes. */
  val MostQueries = 256

  private val expected = new WeakHashMap[QueryPlanningTracker, Seq[ExpectedJoins]]
  private val tasks = new WeakHashMap[QueryPlanningTracker, TaskTimes]
  private val listening =
    Collections.synchronizedSet(Collections.newSetFromMap(new WeakHashMap[SparkContext, java.lang.Boolean]))

  /** Watch the query that this thread plans. */
  def watch(context: SparkContext): Unit =
    Support.attempt(())(QueryPlanningTracker.get.foreach(watch(context, _)))

  def watch(context: SparkContext, tracker: QueryPlanningTracker): Unit = {
    tasks.synchronized(tasks.putIfAbsent(tracker, new TaskTimes))
    if (listening.add(context)) context.addSparkListener(new RunningQueries)
  }

  /** Compare its joins with their estimates, too, if the worker's answer has any. */
  def expect(answer: JsonNode): Unit =
    if (answer.path("expected").size > 0) Support.attempt(()) {
      QueryPlanningTracker.get.foreach { tracker =>
        val stored = answer.path("store").isTextual
        val added = ExpectedJoins.of(answer.path("expected"), answer.path("edits").isObject, stored)
        expected.synchronized(expected.merge(tracker, added, (before, now) => before ++ now))
      }
    }

  /** What the tasks of a query have taken so far; None if it is not watched. */
  def tasksOf(tracker: QueryPlanningTracker): Option[TaskTimes] = tasks.synchronized(Option(tasks.get(tracker)))

  private def expected(tracker: QueryPlanningTracker): Seq[ExpectedJoins] =
    ExpectedJoins.distinguished(expected.synchronized(expected.getOrDefault(tracker, Nil)))

  def log(id: Long, join: ExpectedJoin, rows: Long, changed: Boolean, stored: Boolean): Unit = {
    val counted = String.format(Locale.ROOT, "%,d", Long.box(rows))
    val estimated = String.format(Locale.ROOT, "%,.0f", Double.box(join.estimated))
    val asWritten =
      if (changed) ", or run it as written with the hint KEEP_JOIN_ORDER or spark.pyjoinopt.enabled=false" else ""
    val ifItEnds =
      if (stored) "If it ends, its row counts are used when it comes again. Or stop it," else "You can stop it,"
    OptimizeJoins.log.warn(
      s"Query $id of Spark's SQL tab has a join far above its estimate: ${join.relations.mkString(", ")} have " +
        s"$counted rows so far, $estimated were estimated. The query runs on with the same plan. $ifItEnds and then " +
        s"collect statistics with pyjoinopt.analyze, search a plan with pyjoinopt.tune$asWritten.")
  }
}
