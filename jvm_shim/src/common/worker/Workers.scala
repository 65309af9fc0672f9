package org.apache.spark.sql.pyjoinopt

import java.util.{Collections, WeakHashMap}

import scala.collection.mutable

import org.apache.spark.SparkContext
import org.apache.spark.scheduler.{SparkListener, SparkListenerApplicationEnd}

/**
 * The workers of this driver. The first is started when the extension is loaded, or when a plan first needs one. They
 * end with the application, or when every session that they planned for has named another Python.
 *
 * Laws: a worker plans one query at a time. A second worker is started only when the first is busy. After a failure the
 * next start waits, longer each time; meanwhile queries keep their written plans at once, without a message. A failure
 * is logged as one WARN with its remedy.
 */
private[pyjoinopt] object Workers {
  private val pools = new mutable.HashMap[WorkerCommand, WorkerPool]

  /** The command of the worker that made each session's last plan. */
  private val commands = new WeakHashMap[Compat.Session, WorkerCommand]
  private val watched =
    Collections.synchronizedSet(Collections.newSetFromMap(new WeakHashMap[SparkContext, java.lang.Boolean]))
  private val warned = Collections.synchronizedSet(new java.util.HashSet[String])

  /**
   * The result of `body` with a worker, within the time that the query has left. None if there is no worker, if it
   * failed, or if the query was cancelled meanwhile: the thread remains interrupted then, for Spark to notice.
   *
   * @param onNoResult gets the reason if there is no result: an outcome of `PlanMetrics`
   */
  def withWorker[T](
      session: Compat.Session,
      settings: WorkerSettings,
      time: PlanningTimeBudget,
      onNoResult: String => Unit)(body: (Worker, Deadline) => T): Option[T] =
    if (Thread.currentThread.isInterrupted) {
      onNoResult("cancelled")
      None
    } else
      try enter(session, settings) match {
          case Some(pool) =>
            try using(pool, settings, time, onNoResult)(body)
            finally leave(pool)
          case None =>
            onNoResult("cancelled")
            None
        }
      catch {
        case _: InterruptedException =>
          onNoResult("cancelled")
          Thread.currentThread.interrupt()
          None
        case error: WorkerFailure =>
          onNoResult(if (error.late) "timedOut" else "failed")
          time.giveUp()
          warn(String.valueOf(error.getMessage))
          None
      }

  /** Start a worker before any plan needs one. If it is not used for `unused` milliseconds, it ends. */
  def prestart(context: SparkContext, settings: WorkerSettings, unused: Long): Unit = {
    watch(context)
    val pool = synchronized {
      if (context.isStopped) None
      else Some(pools.getOrElseUpdate(settings.command, new WorkerPool))
    }
    pool.foreach(_.prestart(settings, unused))
  }

  private def watch(context: SparkContext): Unit =
    if (watched.add(context)) {
      PlanMetrics.register()
      context.addSparkListener(new SparkListener {
        override def onApplicationEnd(end: SparkListenerApplicationEnd): Unit = closeAll()
      })
    }

  /** None once the application has ended: nothing would end a worker that is started then. */
  private def enter(session: Compat.Session, settings: WorkerSettings): Option[WorkerPool] = {
    val context = session.sparkContext
    watch(context)
    synchronized {
      if (context.isStopped) None
      else {
        commands.put(session, settings.command)
        val pool = pools.getOrElseUpdate(settings.command, new WorkerPool)
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

  /** End the workers of unused pools whose command no session names any more. Queries do not wait for that. */
  private def retire(): Unit =
    if (pools.size > 1) {
      val unneeded = pools.filter { case (command, pool) => pool.users == 0 && !commands.containsValue(command) }.toList
      pools --= unneeded.map(_._1)
      if (unneeded.nonEmpty) {
        val ending = new Thread("pyjoinopt-retiring") {
          override def run(): Unit = unneeded.foreach { case (_, pool) => Support.attempt(())(pool.close()) }
        }
        ending.setDaemon(true)
        ending.start()
      }
    }

  private def using[T](
      pool: WorkerPool,
      settings: WorkerSettings,
      time: PlanningTimeBudget,
      onNoResult: String => Unit)(
      body: (Worker, Deadline) => T): Option[T] = {
    val taken = pool.take(settings, time)
    if (taken.isEmpty) {
      onNoResult("timedOut")
      time.giveUp(settings.timeout)
    }
    taken.map { worker =>
      try {
        val result = body(worker, Deadline.in(time.left(settings.timeout)))
        pool.giveBack(worker)
        result
      } catch {
        case error: WorkerFailure =>
          pool.failed(worker)
          throw error
        case error: Throwable => // for example an interrupt: the worker has not failed
          pool.giveBack(worker)
          throw error
      }
    }
  }

  def warn(text: String): Unit = OptimizeJoins.log.warn(
    s"The joins of a query are not changed: $text. To do without: spark.pyjoinopt.enabled=false.")

  /** A WARN that every query would repeat is logged once. */
  def warnOnce(text: String, cause: Throwable = null): Unit = {
    if (warned.size > 1000) warned.clear()
    if (warned.add(text)) OptimizeJoins.log.warn(s"The joins of a query are not changed: $text", cause)
  }

  /** Send the metrics of queries that ended to all workers: to a busy one with its next request. */
  def deliverFeedback(): Unit = Worker.inBackground {
    addFeedback(Feedback.ofSessions.take())
    synchronized(pools.values.toList).foreach(_.deliverFeedback())
  }

  /** Add metrics to what each worker gets with its next request. */
  def addFeedback(queries: Seq[String]): Unit =
    if (queries.nonEmpty) synchronized(pools.values.toList).foreach(_.addFeedback(queries))

  /** How many workers there are. */
  def count: Int = synchronized(pools.values.map(_.size).sum)

  def closeAll(): Unit = {
    Support.attempt(())(addFeedback(Feedback.ofSessions.take()))
    val closing = synchronized {
      val all = pools.values.toList
      pools.clear()
      commands.clear()
      all
    }
    closing.foreach(_.close())
  }
}
