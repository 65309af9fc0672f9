package org.apache.spark.sql.pyjoinopt

import java.util.concurrent.TimeUnit

/**
 * The start of a worker, on a thread of its own: a Python that hangs delays no query beyond its deadline.
 *
 * A failure is logged as one WARN, either by the query that waited as long as it may or by the start itself. A start in
 * advance logs nothing: no query needs it yet, and a query that needs a worker starts one itself.
 */
private[pyjoinopt] class WorkerStart(settings: WorkerSettings, pool: WorkerPool, val inAdvance: Boolean = false) {
  private val command = settings.command
  private var awaited = if (inAdvance) None else Some(System.nanoTime)
  private var worker = Option.empty[Worker]
  private var hasWarned, isEnded = false

  /** A query waits for it from now on. */
  def noteWaiting(): Unit = synchronized { if (awaited.isEmpty) awaited = Some(System.nanoTime) }

  /** Whether a query has waited for it as long as a query may. No other query waits then. */
  def isOverdue(waiting: WorkerSettings): Boolean = synchronized {
    awaited.exists(System.nanoTime - _ > TimeUnit.MILLISECONDS.toNanos(waiting.timeout))
  }

  def go(): Unit = {
    val thread = new Thread("pyjoinopt-starting") {
      override def run(): Unit = pool.started(WorkerStart.this, startWorker())
    }
    thread.setDaemon(true)
    thread.start()
  }

  private def startWorker(): Option[Worker] =
    try {
      val starting = new Worker(command, inAdvance)
      synchronized {
        worker = Some(starting)
        if (isEnded) starting.kill()
      }
      starting.greet(Deadline.in(settings.startTimeout))
      worker
    } catch {
      case error: Throwable =>
        if (!synchronized(isEnded)) PlanMetrics.workersFailed.inc()
        worker.foreach(_.kill())
        warn(error)
        None
    }

  /** The worker is ready. */
  def arrived(worker: Worker): Unit = ()

  /** Whether its failure or delay has been logged. */
  def isReported: Boolean = synchronized(hasWarned)

  /** A query waited in vain. */
  def missedBy(waiting: WorkerSettings, warn: Boolean): Unit = synchronized {
    hasWarned = true
    if (warn) {
      Workers.warn(s"the worker of ${command.python} did not start in time for a plan within ${waiting.timeout} ms; " +
        s"it has ${settings.startTimeout} ms (spark.pyjoinopt.startTimeout) to be there for later queries. If that " +
        "comes again, raise spark.pyjoinopt.timeout or name another spark.pyjoinopt.python")
    }
  }

  private def warn(error: Throwable): Unit = synchronized {
    if (inAdvance) OptimizeJoins.log.debug("A worker could not be started in advance", error)
    else {
      val isNews = !hasWarned || !worker.exists(_.wasLate)
      hasWarned = true
      if (isNews && !isEnded) Workers.warn(String.valueOf(error.getMessage))
    }
  }

  /** The application ends. */
  def end(): Unit = synchronized {
    isEnded = true
    worker.foreach(_.kill())
  }

  def endIfInAdvance(): Unit = if (inAdvance) end()
}
