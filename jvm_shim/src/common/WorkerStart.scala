package org.apache.spark.sql.pyjoinopt

import java.util.concurrent.TimeUnit

/**
 * A worker that is being started, on a thread of its own: a Python that hangs holds up no query beyond its deadline.
 *
 * What goes wrong is said in one WARN, by whoever notices first: the query that waited as long as it may, or the start.
 */
private[pyjoinopt] final class WorkerStart(settings: WorkerSettings, pool: WorkerPool) {
  private val command = settings.command
  private val began = System.nanoTime
  private var worker = Option.empty[Worker]
  private var isTold, isEnded = false

  /** Whether a query has waited for it as long as a query may: none waits again. */
  def isOverdue(asking: WorkerSettings): Boolean =
    System.nanoTime - began > TimeUnit.MILLISECONDS.toNanos(asking.timeout)

  def go(): Unit = {
    val thread = new Thread("pyjoinopt-starting") {
      override def run(): Unit = pool.started(WorkerStart.this, made())
    }
    thread.setDaemon(true)
    thread.start()
  }

  private def made(): Option[Worker] =
    try {
      val starting = new Worker(command)
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

  /** A query waited in vain: said once. */
  def missedBy(asking: WorkerSettings): Unit = synchronized {
    if (!isTold) {
      isTold = true
      Workers.warn(s"the worker of ${command.python} did not start in time for a plan within ${asking.timeout} ms; " +
        s"it has ${settings.startTimeout} ms (spark.pyjoinopt.startTimeout) to be there for later queries. If that " +
        "comes again, raise spark.pyjoinopt.timeout or name another spark.pyjoinopt.python")
    }
  }

  private def tell(error: Throwable): Unit = synchronized {
    val isNews = !isTold || !worker.exists(_.wasLate)
    isTold = true
    if (isNews && !isEnded) Workers.warn(String.valueOf(error.getMessage))
  }

  /** The application ends. */
  def end(): Unit = synchronized {
    isEnded = true
    worker.foreach(_.kill())
  }
}
