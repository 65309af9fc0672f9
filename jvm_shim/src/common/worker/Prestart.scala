package org.apache.spark.sql.pyjoinopt

import org.apache.spark.{SparkContext, SparkEnv}

/**
 * Starts the first worker when the extension is loaded, so that the first query of a program need not wait for Python.
 *
 * Spark applies the extensions of a session after it has created the SparkContext and before it creates the session, so
 * Python and the session start concurrently. The settings are those of the application, since there is no session yet.
 *
 * Laws: it runs on a thread of its own, so it neither delays nor raises; after a failure the first query starts a
 * worker itself and logs the problem. It does nothing outside of a driver, if the application has switched pyjoinopt
 * off, and if there is a worker already. A worker that is not used ends after a while.
 */
private[pyjoinopt] object Prestart {

  /** With the settings of the active application, if there is one. */
  def ofApplication(): Unit = inBackground {
    for (context <- SparkContext.getActive if isDriver) {
      val conf = context.getConf
      if (conf.get(OptimizeJoins.Enabled, "true").trim.equalsIgnoreCase("true"))
        begin(context, WorkerSettings.ofApplication(conf))
    }
  }

  /** With the settings of a running session, in which pyjoinopt is being enabled. */
  def of(session: Compat.Session): Unit = Support.attempt(()) {
    val settings = WorkerSettings.of(session)
    inBackground(begin(session.sparkContext, settings))
  }

  private def begin(context: SparkContext, settings: WorkerSettings): Unit =
    settings.prestart.foreach(unused => Workers.prestart(context, settings, unused))

  private def isDriver: Boolean = Option(SparkEnv.get).exists(_.executorId == SparkContext.DRIVER_IDENTIFIER)

  private def inBackground(body: => Unit): Unit = Support.attempt(()) {
    val thread = new Thread("pyjoinopt-prestart") {
      override def run(): Unit =
        try body
        catch { case error: Throwable => OptimizeJoins.log.debug("No worker is started in advance", error) }
    }
    thread.setDaemon(true)
    thread.start()
  }
}
