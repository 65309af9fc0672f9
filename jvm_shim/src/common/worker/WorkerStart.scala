package org.apache.spark.sql.pyjoinopt

import java.util.concurrent.TimeUnit

/**
 * A worker that is being started, on a thread of its own: a Python that hangs holds up no query beyond its deadline.
 *
 * What goes wrong is said in one WARN, by whoever notices first: the query that waited as long as it may, or the start.
 * A start in advance says nothing: no query needs it yet, and one that does starts a worker itself.
 */
private[pyjoinopt] class WorkerStart(settings: WorkerSettings, pool: WorkerPool, val inAdvance: Boolean = false) {
  private val command = settings.command
  private var awaited = if (inAdvance) None else Some(System.nanoTime)
  private var worker = Option.empty[Worker]
  private var isTold, isEnded = false

  /** A query waits for it from now on, if none did before. */
  def noteWaiting(): Unit = synchronized { if (awaited.isEmpty) awaited = Some(System.nanoTime) }

  /** Whether a query has waited for it as long as a query may: none waits again. */
  def isOverdue(asking: WorkerSettings): Boolean = synchronized {
    awaited.exists(System.nanoTime - _ > TimeUnit.MILLISECONDS.toNanos(asking.timeout))
  }

  def go(): Unit = {
    val thread = new Thread("pyjoinopt-starting") {
      override def run(): Unit = pool.started(WorkerStart.this, made())
    }
    thread.setDaemon(true)
    thread.start()
  }

  private def made(): Option[Worker] =
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
        worker.foreach(_.kill())
        tell(error)
        None
    }

  /** It has come to a worker. */
  def arrived(worker: Worker): Unit = ()

  /** Whether a query has waited for it in vain. */
  def isKnownLate: Boolean = synchronized(isTold)

  /** A query waited in vain: said once. */
  def missedBy(asking: WorkerSettings, warn: Boolean): Unit = synchronized {
    isTold = true
    if (warn) {
      Workers.warn(s"the worker of ${command.python} did not start in time for a plan within ${asking.timeout} ms; " +
        s"it has ${settings.startTimeout} ms (spark.pyjoinopt.startTimeout) to be there for later queries. If that " +
        "comes again, raise spark.pyjoinopt.timeout or name another spark.pyjoinopt.python")
    }
  }

  private def tell(error: Throwable): Unit = synchronized {
    if (inAdvance) OptimizeJoins.log.debug("A worker could not be started in advance", error)
    else {
      val isNews = !isTold || !worker.exists(_.wasLate)
      isTold = true
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
