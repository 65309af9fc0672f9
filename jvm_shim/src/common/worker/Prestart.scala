package org.apache.spark.sql.pyjoinopt

import org.apache.spark.{SparkContext, SparkEnv}

/**
 * Starts the first worker when the extension is loaded, so that the first query of a program need not wait for Python.
 *
 * Spark applies the extensions of a session after it has made the SparkContext and before it has made the session:
 * Python starts while the session does. Settings are those of the application, for no session is there to have others.
 *
 * Laws: it delays nothing and raises nothing, for it runs on a thread of its own; what goes wrong the first query finds
 * again, and warns of it. It does nothing outside of a driver, where the application has switched pyjoinopt off, and
 * where the command has a worker already. A worker that no query needs ends after a while.
 */
private[pyjoinopt] object Prestart {

  /** With the settings of the application, if there is one. */
  def ofApplication(): Unit = inBackground {
    for (context <- SparkContext.getActive if isDriver) {
      val conf = context.getConf
      if (conf.get(OptimizeJoins.Enabled, "true").trim.equalsIgnoreCase("true"))
        begin(context, WorkerSettings.ofApplication(conf))
    }
  }

  /** With the settings that a live session has at the moment in which pyjoinopt is enabled. */
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
