package org.apache.spark.sql.pyjoinopt

import java.util.{Collections, WeakHashMap}

import scala.collection.mutable

import org.apache.spark.SparkContext
import org.apache.spark.scheduler.{SparkListener, SparkListenerApplicationEnd}

/**
 * The workers of this driver: the first is started when the extension is loaded, or when a plan first needs one. They
 * are kept, and ended with the application, or when every session that they planned for has named another Python.
 *
 * Laws: a plan has a worker to itself while it is planned. A second worker is started only when the first is busy.
 * After a failure the next start waits, longer each time; meanwhile queries keep their plans at once and in silence.
 * What went wrong is said in one WARN, with what to do.
 */
private[pyjoinopt] object Workers {
  private val pools = new mutable.HashMap[WorkerCommand, WorkerPool]

  /** By which command each session had its last plan made. */
  private val named = new WeakHashMap[Compat.Session, WorkerCommand]
  private val watched =
    Collections.synchronizedSet(Collections.newSetFromMap(new WeakHashMap[SparkContext, java.lang.Boolean]))
  private val warned = Collections.synchronizedSet(new java.util.HashSet[String])

  /**
   * What `body` makes with a worker, within what is left of the query's time; None if there is none, or it failed, or
   * the query was cancelled meanwhile: the interrupt is then left for Spark to see.
   */
  def serving[T](session: Compat.Session, settings: WorkerSettings, time: PlanningTimeBudget)(
      body: (Worker, Deadline) => T): Option[T] =
    if (Thread.currentThread.isInterrupted) None
    else
      try enter(session, settings).flatMap { pool =>
        try using(pool, settings, time)(body)
        finally leave(pool)
      } catch {
        case _: InterruptedException =>
          Thread.currentThread.interrupt()
          None
        case error: WorkerFailure =>
          time.giveUp()
          warn(String.valueOf(error.getMessage))
          None
      }

  /** Start a worker before any plan needs one; it ends if none does for so many milliseconds. */
  def prestart(context: SparkContext, settings: WorkerSettings, unused: Long): Unit = {
    watch(context)
    val pool = synchronized {
      if (context.isStopped) None
      else Some(pools.getOrElseUpdate(settings.command, new WorkerPool(settings.command)))
    }
    pool.foreach(_.prestart(settings, unused))
  }

  private def watch(context: SparkContext): Unit =
    if (watched.add(context)) {
      context.addSparkListener(new SparkListener {
        override def onApplicationEnd(end: SparkListenerApplicationEnd): Unit = closeAll()
      })
    }

  /** None once the application has ended: nobody would end the workers that it started. */
  private def enter(session: Compat.Session, settings: WorkerSettings): Option[WorkerPool] = {
    val context = session.sparkContext
    watch(context)
    synchronized {
      if (context.isStopped) None
      else {
        named.put(session, settings.command)
        val pool = pools.getOrElseUpdate(settings.command, new WorkerPool(settings.command))
        pool.users += 1
        retire()
        Some(pool)
      }
    }
  }

  private def leave(pool: WorkerPool): Unit = synchronized {
    pool.users -= 1
    retire()
  }

  /** End the workers of pools that no session names any more, once nobody uses them. Queries do not wait for that. */
  private def retire(): Unit =
    if (pools.size > 1) {
      val unneeded = pools.filter { case (command, pool) => pool.users == 0 && !named.containsValue(command) }.toList
      pools --= unneeded.map(_._1)
      if (unneeded.nonEmpty) {
        val ending = new Thread("pyjoinopt-retiring") {
          override def run(): Unit = unneeded.foreach { case (_, pool) => Support.attempt(())(pool.close()) }
        }
        ending.setDaemon(true)
        ending.start()
      }
    }

  private def using[T](pool: WorkerPool, settings: WorkerSettings, time: PlanningTimeBudget)(
      body: (Worker, Deadline) => T): Option[T] = {
    val taken = pool.take(settings, time)
    if (taken.isEmpty) time.giveUp(settings.timeout)
    taken.map { worker =>
      try {
        val made = body(worker, Deadline.in(time.left(settings.timeout)))
        pool.giveBack(worker)
        made
      } catch {
        case error: WorkerFailure =>
          pool.failed(worker)
          throw error
        case error: Throwable => // an interrupt, say: that is nobody's failure
          pool.giveBack(worker)
          throw error
      }
    }
  }

  def warn(text: String): Unit = OptimizeJoins.log.warn(
    s"The joins of a query stay as written: $text. To do without: spark.pyjoinopt.enabled=false.")

  /** A WARN that comes again with every query is said once. */
  def warnOnce(text: String, cause: Throwable = null): Unit = {
    if (warned.size > 1000) warned.clear()
    if (warned.add(text)) OptimizeJoins.log.warn(s"The joins of a query stay as written: $text", cause)
  }

  /** Let the workers know, with their next request, what queries did that they may have planned. */
  def hear(plans: Seq[String]): Unit =
    if (plans.nonEmpty) synchronized(pools.values.toList).foreach(_.hear(plans))

  /** How many workers there are. */
  def count: Int = synchronized(pools.values.map(_.size).sum)

  def closeAll(): Unit = {
    Support.attempt(())(hear(Feedback.ofSessions.take()))
    val closing = synchronized {
      val all = pools.values.toList
      pools.clear()
      named.clear()
      all
    }
    closing.foreach(_.close())
  }
}
