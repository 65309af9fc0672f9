package org.apache.spark.sql.pyjoinopt

import com.codahale.metrics.{Counter, Gauge, Histogram, MetricRegistry}

import org.apache.spark.SparkEnv
import org.apache.spark.metrics.source.Source

/**
 * What the optimizer does in this driver, as a source of Spark's metrics system: `APPLICATION.driver.pyjoinopt.*` in
 * JMX, Prometheus, Graphite and the other sinks.
 *
 * Law: each plan that is sent to a worker, or would be, is counted once in `plans.seen` and once by its outcome. A query
 * is one plan, and each of its subqueries in WHERE or SELECT another one.
 */
private[pyjoinopt] object PlanMetrics extends Source {
  override val sourceName = "pyjoinopt"
  override val metricRegistry = new MetricRegistry

  val seen: Counter = metricRegistry.counter("plans.seen")
  private val outcomes: Map[String, Counter] =
    Seq("changed", "unchanged", "leftOut", "revoked", "failed", "timedOut", "cancelled")
      .map(name => name -> metricRegistry.counter(s"plans.$name")).toMap

  /** How long queries waited for their plans (milliseconds). */
  val planning: Histogram = metricRegistry.histogram("planning.milliseconds")

  val workersStarted: Counter = metricRegistry.counter("workers.started")

  /** Workers that ended before the application: they were late, broke the protocol, or died. */
  val workersFailed: Counter = metricRegistry.counter("workers.failed")

  metricRegistry.register(
    "workers.running",
    new Gauge[Int] {
      override def getValue: Int = Workers.count
    })

  /** Count a plan by what became of it; `failed` for an unknown outcome. */
  def count(outcome: String): Unit = outcomes.getOrElse(outcome, outcomes("failed")).inc()

  /** Add the source to the metrics system of the running application. */
  def register(): Unit = Support.attempt(()) {
    val system = SparkEnv.get.metricsSystem
    if (system.getSourcesByName(sourceName).isEmpty) system.registerSource(this)
  }
}
