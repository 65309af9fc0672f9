package org.apache.spark.sql.pyjoinopt

import org.apache.spark.scheduler.SparkListenerEvent

/**
 * What was done to the joins of a plan, as an event of Spark's bus: listeners get it, and the event log has it.
 *
 * @param executionId the number of the SQL execution; -1 if the plan was made outside of one, such as by EXPLAIN
 * @param time when it was planned (milliseconds since the epoch)
 * @param report the report as JSON, as in `joinopt_report()`
 * @param query the number of the query in the application. Each subquery is a plan of its own, and has the number of its
 *   query. 0 in logs of older releases.
 * @param pictures what `spark_ui.py` has drawn, packed; null if there is nothing
 */
case class JoinOrdersPlanned(executionId: Long, time: Long, report: String, query: Long = 0, pictures: String = null)
    extends SparkListenerEvent

/**
 * The planning of a plan's joins begins or ends.
 *
 * @param query see `JoinOrdersPlanned`
 * @param outcome one of `PlanMetrics`; empty if the planning begins
 */
case class JoinOrdersPlanning(executionId: Long, time: Long, query: Long, outcome: String) extends SparkListenerEvent

/**
 * A query whose joins were planned has been executed.
 *
 * @param query see `JoinOrdersPlanned`
 * @param joins its joins with an estimate, a JSON array of `{"relations": ["a", "b"], "estimated": 10.0, "counted": 12}`
 */
case class JoinOrdersExecuted(executionId: Long, time: Long, query: Long, joins: String) extends SparkListenerEvent
