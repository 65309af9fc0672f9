package org.apache.spark.sql.pyjoinopt

import java.util.ArrayDeque
import java.util.concurrent.TimeUnit

import scala.collection.mutable

/** The workers that were started by one command. */
private[pyjoinopt] final class WorkerPool(command: WorkerCommand) {
  import WorkerPool._

  private val idle = new ArrayDeque[Worker]
  private val all = new mutable.HashSet[Worker]
  private var starting = 0
  private var failures = 0
  private var notBefore = 0L
  private var closed = false

  /** How many plans are being made here, or wait for that; kept by `Workers`. */
  var users = 0

  def size: Int = synchronized(all.size)

  /** A worker of one's own; None while none may be started, or if the query's time is over before one is free. */
  def take(settings: WorkerSettings, time: QueryTime): Option[Worker] = {
    def untilStarted = Deadline.in(time.leftToStart(settings.startTimeout))
    val turn =
      if (size > 0) waiting(settings, Deadline.in(time.leftToWait(settings.timeout)))
      else time.starts(waiting(settings, untilStarted))
    turn.map {
      case Free(worker) => worker
      case ToStart => time.starts(start(untilStarted))
    }
  }

  private def waiting(settings: WorkerSettings, until: Deadline): Option[Turn] = synchronized {
    val patience = Deadline.in(Patience)
    var found = next()
    while (found.isEmpty && mayWait && !until.isOver && !(mayStart(settings) && patience.isOver)) {
      val pause = if (mayStart(settings)) patience else until
      wait(math.max(1, pause.milliseconds))
      found = next()
    }
    if (found.isEmpty && size > 0 && !closed && until.isOver) {
      Workers.warnOnce(s"all workers ($size) were busy for most of ${settings.timeout} ms. If that comes again, " +
        "raise spark.pyjoinopt.workers or spark.pyjoinopt.timeout.")
    }
    if (found.isDefined) found.map(Free)
    else if (!mayStart(settings) || until.isOver) None
    else {
      starting += 1
      Some(ToStart)
    }
  }

  private def next(): Option[Worker] = {
    var found = Option.empty[Worker]
    while (found.isEmpty && !idle.isEmpty) {
      val worker = idle.pop()
      if (worker.isReady) found = Some(worker) else forget(worker)
    }
    found
  }

  private def mayWait: Boolean = !closed && size + starting > 0

  private def mayStart(settings: WorkerSettings): Boolean =
    !closed && size + starting < settings.workers && System.nanoTime - notBefore >= 0

  private def start(deadline: Deadline): Worker = {
    var made: Worker = null
    try {
      made = new Worker(command)
      made.greet(deadline)
      synchronized {
        all += made
        if (closed) {
          forget(made)
          throw new WorkerFailure("the application ends")
        }
      }
      made
    } catch {
      case error: Throwable =>
        if (made != null) made.kill()
        if (!error.isInstanceOf[InterruptedException]) synchronized(later())
        throw error
    } finally synchronized {
      starting -= 1
      notifyAll()
    }
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
      notifyAll()
      workers
    }
    ending.foreach(_.close())
  }
}

private[pyjoinopt] object WorkerPool {
  /** What waiting for a worker comes to: one that is free, or the right to start one. */
  private sealed trait Turn
  private final case class Free(worker: Worker) extends Turn
  private case object ToStart extends Turn

  private val Patience = 50L
  private val LongestPause = 300L
}
