package org.apache.spark.sql.pyjoinopt

import java.util.ArrayDeque
import java.util.concurrent.TimeUnit

import scala.collection.mutable

/** The workers that were started by one command. */
private[pyjoinopt] final class WorkerPool(command: WorkerCommand) {
  import WorkerPool._

  private val idle = new ArrayDeque[Worker]
  private val all = new mutable.HashSet[Worker]
  private val starting = new mutable.HashSet[WorkerStart]
  private var failures = 0
  private var notBefore = 0L
  private var closed = false

  /** How many plans are being made here, or wait for that; kept by `Workers`. */
  var users = 0

  def size: Int = synchronized(all.size)

  /**
   * A worker of one's own; None while none may be started, or if the query's time is over before one is free. A worker
   * starts behind the query's back: if that takes longer than the query waits, those that come later find it.
   */
  def take(settings: WorkerSettings, time: PlanningTimeBudget): Option[Worker] = synchronized {
    val until = Deadline.in(time.leftToWait(settings.timeout))
    val isStartingInAdvance = starting.exists(_.inAdvance)
    val patience = Deadline.in(if (isStartingInAdvance) math.min(LongPatience, until.milliseconds / 3) else Patience)
    var mayAsk = true
    var found = next()
    if (found.isEmpty) starting.foreach(_.noteWaiting())
    while (found.isEmpty && !until.isOver && (hasHope(settings) || mayAsk && mayStart(settings))) {
      if (mayAsk && mayStart(settings) && (patience.isOver || !hasHope(settings))) {
        mayAsk = false
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

  /** Whether one that is busy may come back, or one that starts may yet be in time. */
  private def hasHope(settings: WorkerSettings): Boolean =
    !closed && (size > 0 || starting.exists(!_.isOverdue(settings)))

  /** Where one hangs at its start the next would, too. */
  private def mayStart(settings: WorkerSettings): Boolean =
    !closed && size + starting.size < settings.workers && System.nanoTime - notBefore >= 0 &&
      !starting.exists(_.isOverdue(settings))

  private def next(): Option[Worker] = {
    var found = Option.empty[Worker]
    while (found.isEmpty && !idle.isEmpty) {
      val worker = idle.pop()
      if (worker.isReady) found = Some(worker) else forget(worker)
    }
    found
  }

  private def start(start: WorkerStart): Unit = {
    starting += start
    start.go()
  }

  /** A query waited in vain for these: said once, however many they are. */
  private def missed(settings: WorkerSettings): Unit = {
    val isNews = !starting.exists(_.isKnownLate)
    starting.zipWithIndex.foreach { case (start, i) => start.missedBy(settings, warn = isNews && i == 0) }
  }

  /** Start a worker that no plan waits for, unless there is one, or one failed; it ends if none needs it for long. */
  def prestart(settings: WorkerSettings, unused: Long): Unit = synchronized {
    if (!closed && size == 0 && starting.isEmpty && failures == 0) {
      start(new WorkerStart(settings, this, inAdvance = true) {
        override def arrived(worker: Worker): Unit = Worker.after(unused)(endUnused(worker))
      })
    }
  }

  private def endUnused(worker: Worker): Unit = synchronized {
    if (!worker.wasAsked && idle.remove(worker)) forget(worker)
  }

  /** What a start came to: a worker, or nothing. Where a plan has got one meanwhile, none is needed in advance. */
  def started(start: WorkerStart, made: Option[Worker]): Unit = synchronized {
    starting -= start
    made match {
      case Some(worker) if closed => worker.kill()
      case Some(worker) =>
        all += worker
        idle.push(worker)
        start.arrived(worker)
        starting.foreach(_.endIfInAdvance())
      case None => if (!start.inAdvance || start.isKnownLate) later()
    }
    notifyAll()
  }

  def hear(plans: Seq[String]): Unit = synchronized(all.foreach(_.hear(plans)))

  def giveBack(worker: Worker): Unit = synchronized {
    failures = 0
    if (closed || !worker.isReady) forget(worker) else idle.push(worker)
    notifyAll()
  }

  def failed(worker: Worker): Unit = synchronized {
    forget(worker)
    later()
    notifyAll()
  }

  private def forget(worker: Worker): Unit = {
    all -= worker
    worker.kill()
  }

  /** The first failure may be bad luck; from the second on the next start has to wait. */
  private def later(): Unit = {
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
  /** How long a query waits for another's worker before it has one started; then, how often it looks (milliseconds). */
  private val Patience = 50L

  /** The same where one starts at low priority: it may be nearly there, or be held up by a busy machine (milliseconds). */
  private val LongPatience = 500L

  /** Between two starts (seconds). */
  private val LongestPause = 300L
}
