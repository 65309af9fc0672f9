package org.apache.spark.sql.pyjoinopt

import java.util.concurrent.{Callable, ConcurrentHashMap, FutureTask}

import scala.util.control.NonFatal

import org.apache.spark.sql.execution.datasources.LogicalRelation
import org.apache.spark.util.ThreadUtils

/**
 * The samples in this JVM's memory, by the files that they were drawn from.
 *
 * A sample that is not ready at a request's deadline is still read to its end, within bounds, and later queries use it.
 *
 * Law: memory is bounded; the least recently used samples are dropped. Concurrent requests for one sample read it once.
 */
private[pyjoinopt] object Samples {

  /** Hash over the files, hash over the schema. */
  type Key = (String, String)

  private val MaxBytes = math.max(64L << 20, math.min(256L << 20, Runtime.getRuntime.maxMemory / 16))
  private lazy val pool = ThreadUtils.newDaemonCachedThreadPool("pyjoinopt-samples", 4, 30)

  private val known = new RecentlyUsed[Key, RelationSample](MaxBytes, _.size)
  private val reading = new ConcurrentHashMap[(Key, Seq[Set[String]], Boolean), FutureTask[Option[SampleReader.Drawn]]]

  def get(key: Key): Option[RelationSample] = known.get(key)

  def put(key: Key, sample: RelationSample): Unit = known.put(key, sample)

  /** Remember a sample that was drawn, unless another one was drawn at the same time that has more columns or rows. */
  private def putUnlessPoorer(key: Key, sample: RelationSample): Unit = synchronized {
    val poorer = known.get(key).exists(before =>
      before.full && before.has(sample.columns.fieldNames) && (before.complete || !sample.complete) &&
        (!sample.has(before.columns.fieldNames) || before.design.isDefined && sample.design.isEmpty))
    if (!poorer) put(key, sample)
  }

  def forget(): Unit = known.clear()

  /** Start to draw a sample with one of the sets of columns in `tries`, or return the task that draws it already. */
  def begin(
      session: Compat.Session,
      key: Key,
      relation: LogicalRelation,
      tries: Seq[Set[String]],
      random: Boolean,
      budget: => SampleReader.Budget): FutureTask[Option[SampleReader.Drawn]] = {
    val reads = (key, tries, random)
    val task = new FutureTask(new Callable[Option[SampleReader.Drawn]] {
      override def call(): Option[SampleReader.Drawn] =
        try {
          val drawn = session.withActive(SampleReader.read(session, relation, tries, budget))
          for (d <- drawn) {
            val own = (d.files.id, d.files.schema)
            d.sample.foreach { sample =>
              sample.full = true
              sample.leftOut = tries.flatten.toSet -- sample.columns.fieldNames
              putUnlessPoorer(own, sample)
            }
            if (random) get(own).foreach(sample => sample.refused = sample.design.isEmpty)
          }
          drawn
        } finally reading.remove(reads)
    })
    val other = reading.putIfAbsent(reads, task)
    if (other != null) other
    else {
      try pool.execute(task)
      catch { case NonFatal(error) => reading.remove(reads); throw error }
      task
    }
  }
}
