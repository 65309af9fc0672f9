package org.apache.spark.sql.pyjoinopt

import java.util.ArrayDeque
import java.util.concurrent.TimeUnit

import scala.collection.mutable

/** The workers that were started by one command. */
private[pyjoinopt] final class WorkerPool {
  import WorkerPool._

  private val idle = new ArrayDeque[Worker]
  private val all = new mutable.HashSet[Worker]
  private val starting = new mutable.HashSet[WorkerStart]
  private var failures = 0
  private var notBefore = 0L
  private var closed = false

  /** How many queries use this pool or wait for a worker of it; counted by `Workers`. */
  var users = 0

  def size: Int = synchronized(all.size)

  /**
   * A worker for exclusive use; None while none may be started, or if the query's time is over before one is free. A
   * worker starts on a thread of its own: if its start takes longer than the query waits, later queries get it.
   */
  def take(settings: WorkerSettings, time: PlanningTimeBudget): Option[Worker] = synchronized {
    val until = Deadline.in(time.leftToWait(settings.timeout))
    val isStartingInAdvance = starting.exists(_.inAdvance)
    val patience = Deadline.in(if (isStartingInAdvance) math.min(LongPatience, until.milliseconds / 3) else Patience)
    var mayRequest = true
    var found = next()
    if (found.isEmpty) starting.foreach(_.noteWaiting())
    while (found.isEmpty && !until.isOver && (canStillGetOne(settings) || mayRequest && mayStart(settings))) {
      if (mayRequest && mayStart(settings) && (patience.isOver || !canStillGetOne(settings))) {
        mayRequest = false
        start(new WorkerStart(settings, this))
      } else wait(math.max(1, math.min(Patience, until.milliseconds)))
      found = next()
    }
    if (found.isEmpty && !closed) {
      if (size == 0) missed(settings)
      else if (until.isOver) {
        Workers.warnOnce(s"all workers ($size) were busy for most of ${settings.timeout} ms. If that comes again, " +
          "raise spark.pyjoinopt.workers or spark.pyjoinopt.timeout.")
      }
    }
    found
  }

  /** Whether a busy worker may become free, or a starting one may be ready in time. */
  private def canStillGetOne(settings: WorkerSettings): Boolean =
    !closed && (size > 0 || starting.exists(!_.isOverdue(settings)))

  /** A start that hangs blocks others: the next one would hang, too. */
  private def mayStart(settings: WorkerSettings): Boolean =
    !closed && size + starting.size < settings.workers && System.nanoTime - notBefore >= 0 &&
      !starting.exists(_.isOverdue(settings))

  private def next(): Option[Worker] = {
    var found = Option.empty[Worker]
    while (found.isEmpty && !idle.isEmpty) {
      val worker = idle.pop()
      if (worker.isReady) found = Some(worker)
      else {
        PlanMetrics.workersFailed.inc()
        forget(worker)
      }
    }
    found
  }

  private def start(start: WorkerStart): Unit = {
    starting += start
    start.go()
  }

  /** A query waited in vain for all starts under way: one warning, however many they are. */
  private def missed(settings: WorkerSettings): Unit = {
    val isNews = !starting.exists(_.isReported)
    starting.zipWithIndex.foreach { case (start, i) => start.missedBy(settings, warn = isNews && i == 0) }
  }

  /**
   * Start a worker in advance, unless there is one or one failed. If it is not used for `unused` milliseconds, it ends.
   */
  def prestart(settings: WorkerSettings, unused: Long): Unit = synchronized {
    if (!closed && size == 0 && starting.isEmpty && failures == 0) {
      start(new WorkerStart(settings, this, inAdvance = true) {
        override def arrived(worker: Worker): Unit = Worker.after(unused)(endUnused(worker))
      })
    }
  }

  private def endUnused(worker: Worker): Unit = synchronized {
    if (!worker.wasUsed && idle.remove(worker)) forget(worker)
  }

  /** A start has ended, with a worker or without. Once there is a worker, none is needed in advance. */
  def started(start: WorkerStart, result: Option[Worker]): Unit = synchronized {
    starting -= start
    result match {
      case Some(worker) if closed => worker.kill()
      case Some(worker) =>
        all += worker
        idle.push(worker)
        start.arrived(worker)
        starting.foreach(_.endIfInAdvance())
      case None => if (!start.inAdvance || start.isReported) delayNextStart()
    }
    notifyAll()
  }

  def addFeedback(queries: Seq[String]): Unit = synchronized(all.foreach(_.addFeedback(queries)))

  /**
   * Send idle workers the queries that ended, one after the other. A query that needs the worker meanwhile waits for it
   * as for any that is busy.
   */
  def deliverFeedback(): Unit = idleOnes().reverse.foreach { worker =>
    if (synchronized(idle.remove(worker))) {
      if (worker.hasFeedback) Support.attempt(())(worker.deliverFeedback(Deadline.in(WorkerPool.Delivery)))
      synchronized(makeIdle(worker)) // in reverse, so that the next query gets the same one as without it
    }
  }

  private def idleOnes(): List[Worker] = synchronized(idle.toArray(Array.empty[Worker]).toList)

  def giveBack(worker: Worker): Unit = synchronized {
    failures = 0
    makeIdle(worker)
  }

  private def makeIdle(worker: Worker): Unit = {
    if (closed || !worker.isReady) forget(worker) else idle.push(worker)
    notifyAll()
  }

  def failed(worker: Worker): Unit = synchronized {
    PlanMetrics.workersFailed.inc()
    forget(worker)
    delayNextStart()
    notifyAll()
  }

  private def forget(worker: Worker): Unit = {
    all -= worker
    worker.kill()
  }

  /** The first failure may be chance. From the second on the next start has to wait, longer each time. */
  private def delayNextStart(): Unit = {
    if (failures > 0) {
      val seconds = math.min(LongestPause, 1L << math.min(failures - 1, 20))
      notBefore = System.nanoTime + TimeUnit.SECONDS.toNanos(seconds)
    } else notBefore = System.nanoTime
    failures += 1
  }

  def close(): Unit = {
    val ending = synchronized {
      closed = true
      idle.clear()
      val workers = all.toList
      all.clear()
      starting.foreach(_.end())
      notifyAll()
      workers
    }
    ending.foreach(_.close())
  }
}

private[pyjoinopt] object WorkerPool {

  /** How long a query waits for a busy worker before it starts another; then, how often it checks (milliseconds). */
  private val Patience = 50L

  /** The same while one starts at low priority: it may be nearly ready, or slow on a busy machine (milliseconds). */
  private val LongPatience = 500L

  /** How long an idle worker may take to send its last report and to read (milliseconds); one that hangs is ended. */
  private val Delivery = 30000L

  /** The longest pause between two starts (seconds). */
  private val LongestPause = 300L
}
