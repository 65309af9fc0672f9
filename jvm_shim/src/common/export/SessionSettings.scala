package org.apache.spark.sql.pyjoinopt

import java.lang.ref.WeakReference
import java.util.Locale

import com.fasterxml.jackson.core.JsonGenerator

import org.apache.spark.{SparkContext, SparkEnv}
import org.apache.spark.internal.config.ConfigEntry
import org.apache.spark.sql.internal.SQLConf

/**
 * Exports the settings of a session on which Spark's planning depends, the memory of the executors, and into how many
 * tasks Spark divides what is small.
 *
 * Law: values are exported as Spark parses them ("10MB" as 10485760); keys that this Spark does not have are left out.
 * Of pyjoinopt's settings the effective values are exported; see `ApplicationSettings`.
 */
private[pyjoinopt] object SessionSettings {
  private val keys = Seq(
    "spark.sql.autoBroadcastJoinThreshold",
    "spark.sql.adaptive.enabled",
    "spark.sql.adaptive.autoBroadcastJoinThreshold",
    "spark.sql.adaptive.coalescePartitions.enabled",
    "spark.sql.adaptive.coalescePartitions.initialPartitionNum",
    "spark.sql.join.preferSortMergeJoin",
    "spark.sql.shuffledHashJoinFactor",
    "spark.sql.optimizeNullAwareAntiJoin",
    "spark.sql.optimizeNullAwareAntiJoin.broadcastThreshold",
    "spark.sql.optimizer.propagateDistinctKeys.enabled",
    "spark.sql.shuffle.partitions",
    "spark.sql.cbo.enabled",
    "spark.sql.cbo.planStats.enabled",
    "spark.sql.cbo.joinReorder.enabled",
    "spark.sql.cbo.joinReorder.dp.threshold",
    "spark.sql.cbo.joinReorder.card.weight",
    "spark.sql.cbo.joinReorder.dp.star.filter",
    "spark.sql.cbo.starSchemaDetection",
    "spark.sql.cbo.starJoinFTRatio",
    "spark.sql.statistics.ndv.maxError",
    "spark.sql.ansi.enabled",
    "spark.sql.caseSensitive",
    "spark.sql.constraintPropagation.enabled",
    "spark.sql.optimizer.avoidDoubleFilterEval",
    "spark.sql.optimizer.replaceExceptWithFilter",
    "spark.sql.optimizer.excludedRules",
    "spark.sql.defaultSizeInBytes")

  /** The prefix of keys that a session has set without effect. */
  private val OfSession = "pyjoinopt.session."

  def write(session: Compat.Session, out: JsonGenerator): Unit = {
    val conf = session.sessionState.conf
    out.writeStartObject()
    for (key <- keys; value <- typed(conf, key)) out.writeStringField(key, value)
    for ((key, value) <- ApplicationSettings.effective(session)) out.writeStringField(key, value)
    for ((key, value) <- ApplicationSettings.overruled(session)) out.writeStringField(OfSession + key, value)
    writeMemory(session.sparkContext, out)
    out.writeStringField("pyjoinopt.master", session.sparkContext.master)
    out.writeStringField("pyjoinopt.parallelism", session.sparkContext.defaultParallelism.toString)
    native(session).foreach(out.writeStringField("pyjoinopt.native", _))
    out.writeEndObject()
  }

  /** The native engine that is loaded: it replaces some of Spark's operators. */
  private def native(session: Compat.Session): Option[String] = {
    val loaded = Seq("spark.plugins", "spark.sql.extensions").flatMap { key =>
      Option(session.sessionState.conf.getConfString(key, null)).orElse(session.sparkContext.conf.getOption(key))
    }.mkString(",").toLowerCase(Locale.ROOT)
    Seq("comet", "gluten").find(loaded.contains(_))
  }

  /** The driver's heap, the number of executors, and the bytes that all of them may use for execution and storage. */
  private def writeMemory(context: SparkContext, out: JsonGenerator): Unit = {
    out.writeStringField("pyjoinopt.driver", Runtime.getRuntime.maxMemory.toString)
    val memory = memoryOf(context)
    // The driver has a block manager, too. Without executors, it runs the tasks.
    val workers = if (memory.size > 1) memory - driver else memory
    if (workers.nonEmpty) {
      out.writeStringField("pyjoinopt.executors", workers.size.toString)
      out.writeStringField("pyjoinopt.memory", workers.values.sum.toString)
    }
  }

  /** A request to another thread or machine, so it is repeated at most once a second. */
  private def memoryOf(context: SparkContext): Map[String, Long] = {
    val before = lastMemory
    if ((before.context.get eq context) && System.nanoTime - before.at < 1000000000L) before.memory
    else {
      val memory = Support.attempt(Map.empty[String, Long]) {
        context.getExecutorMemoryStatus.toMap.map { case (address, (most, _)) => address -> most }
      }
      lastMemory = Memory(new WeakReference(context), System.nanoTime, memory)
      memory
    }
  }

  private final case class Memory(context: WeakReference[SparkContext], at: Long, memory: Map[String, Long])
  @volatile private var lastMemory = Memory(new WeakReference(null), 0, Map.empty)

  private def driver: String = Support.attempt("")(SparkEnv.get.blockManager.blockManagerId.hostPort)

  private def typed(conf: SQLConf, key: String): Option[String] = Support.attempt(Option.empty[String]) {
    Option(ConfigEntry.findEntry(key)).flatMap { entry =>
      conf.getConf(entry) match {
        case null | None => None
        case Some(value) => Some(value.toString)
        case value => Some(value.toString)
      }
    }
  }
}
