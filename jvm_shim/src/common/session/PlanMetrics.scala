package org.apache.spark.sql.pyjoinopt

import java.io.File
import java.util.{Collections, HashSet}

import com.codahale.metrics.{Counter, Gauge, Histogram, MetricRegistry}

import org.apache.spark.SparkEnv
import org.apache.spark.metrics.source.Source

/**
 * What the optimizer does in this driver, as a source of Spark's metrics system: `APPLICATION.driver.pyjoinopt.*` in
 * JMX, Prometheus, Graphite and the other sinks.
 *
 * Law: each plan that is sent to a worker, or would be, is counted once in `plans.seen` and once by its outcome. A query
 * is one plan, and each of its subqueries in WHERE or SELECT another one. A plan is counted once for each reason for
 * which a part of it is left as written, by the key of the reason.
 */
private[pyjoinopt] object PlanMetrics extends Source {
  override val sourceName = "pyjoinopt"
  override val metricRegistry = new MetricRegistry

  val seen: Counter = metricRegistry.counter("plans.seen")
  private val outcomes: Map[String, Counter] =
    Seq("changed", "unchanged", "leftOut", "revoked", "failed", "timedOut", "cancelled")
      .map(name => name -> metricRegistry.counter(s"plans.$name")).toMap

  /** Queries of sessions with feedback whose runs are recorded, and those for which there was no time. */
  private val runs: Map[Boolean, Counter] =
    Map(true -> "recorded", false -> "leftOut").map { case (record, name) =>
      record -> metricRegistry.counter(s"feedback.$name")
    }

  private val Other = "other"

  /** The same list as `pyjoinopt.report.reason_keys.KEYS`. */
  private val refusals: Map[String, Counter] =
    Seq(
      "aggregate",
      "baseline",
      "cached",
      "canary",
      "command",
      "correlated",
      "description",
      "equalKeys",
      "explored",
      "joinHint",
      "keepJoinOrder",
      "longCondition",
      "mayFail",
      "nondeterministic",
      "notProved",
      "notRequested",
      "oneOrder",
      Other,
      "paddedColumn",
      "pythonUdf",
      "sameColumns",
      "searchTime",
      "separated",
      "setting",
      "slower",
      "strategy",
      "streaming",
      "subquery",
      "table",
      "unresolved",
      "variant"
    )
      .map(name => name -> metricRegistry.counter(s"refusals.$name")).toMap

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

  /** The files of statistics that plans have used. */
  private val stores = Collections.synchronizedSet(new HashSet[String])
  private val MostStores = 64

  metricRegistry.register(
    "store.bytes",
    new Gauge[Long] {
      override def getValue: Long = Support.attempt(0L)(stores.toArray(Array.empty[String]).map(length).sum)
    })

  /** The length of a store and of the log of what SQLite has not written into it yet; 0 if there is none. */
  private def length(store: String): Long = new File(store).length + new File(s"$store-wal").length

  /** A plan has used the store of this path. */
  def uses(store: String): Unit = if (stores.size < MostStores) stores.add(store)

  /**
   * Count a plan by the reasons of its refusals.
   *
   * @param keys of another release's worker, perhaps: those that have no counter count as `other`
   * @return the keys that were counted
   */
  def refused(keys: Seq[String]): Seq[String] = {
    val counted = keys.map(key => if (refusals.contains(key)) key else Other).distinct
    counted.foreach(refusals(_).inc())
    counted
  }

  /** Count a query of a session with feedback by whether its run is recorded. */
  def recorded(record: Boolean): Unit = runs(record).inc()

  /** Count a plan by what became of it, `failed` for an unknown outcome, and return the outcome that was counted. */
  def count(outcome: String): String = {
    val counted = if (outcomes.contains(outcome)) outcome else "failed"
    outcomes(counted).inc()
    counted
  }

  /** Add the source to the metrics system of the running application. */
  def register(): Unit = Support.attempt(()) {
    val system = SparkEnv.get.metricsSystem
    if (system.getSourcesByName(sourceName).isEmpty) system.registerSource(this)
  }
}
