package org.apache.spark.sql.pyjoinopt

import scala.collection.mutable

/**
 * What the tasks of a query have taken: the sum of their run times, and how uneven they are.
 *
 * {{{
 *   stage 3   tasks of 1, 1, 2 and 8 s    12 s, and the longest 6.7 s above the mean of the others
 *   stage 4   tasks of 3 and 3 s           6 s, and none longer
 *   query                                 18 s, skew 6.7 s
 * }}}
 *
 * Failed tasks and those that ran twice count, since they have used an executor.
 */
private[pyjoinopt] final class TaskTimes {
  private final class Stage {
    var tasks, total, longest = 0L

    def skew: Double = if (tasks < 2) 0.0 else longest - (total - longest).toDouble / (tasks - 1)
  }

  private val stages = new mutable.HashMap[Int, Stage]

  /** A task of a stage has run for so long. */
  def add(stage: Int, milliseconds: Long): Unit = synchronized {
    val one = stages.getOrElseUpdate(stage, new Stage)
    one.tasks += 1
    one.total += milliseconds
    one.longest = math.max(one.longest, milliseconds)
  }

  def milliseconds: Long = synchronized(stages.valuesIterator.map(_.total).sum)

  /** By how many milliseconds the longest task of a stage exceeds the mean of the others; of the most uneven stage. */
  def skew: Double = synchronized(stages.valuesIterator.map(_.skew).foldLeft(0.0)(math.max))
}
