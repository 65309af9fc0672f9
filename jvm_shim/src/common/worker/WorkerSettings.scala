package org.apache.spark.sql.pyjoinopt

import java.io.File
import java.util.concurrent.TimeUnit

import org.apache.spark.SparkConf
import org.apache.spark.network.util.JavaUtils

/** The moment by which something has to be done. */
private[pyjoinopt] final class Deadline(val at: Long) {
  def nanos: Long = math.max(0, at - System.nanoTime)
  def milliseconds: Long = TimeUnit.NANOSECONDS.toMillis(nanos)
  def isOver: Boolean = at - System.nanoTime <= 0
}

private[pyjoinopt] object Deadline {
  def in(milliseconds: Long): Deadline = new Deadline(System.nanoTime + TimeUnit.MILLISECONDS.toNanos(milliseconds))
}

/** How a worker is started: workers started alike serve all sessions that want it so. */
private[pyjoinopt] final case class WorkerCommand(python: String, path: Option[String])

/**
 * The workers of a session: all but `timeout` belongs to the application, see `ApplicationSettings`.
 *
 * @param timeout how long a query waits (milliseconds)
 * @param startTimeout how long a worker may take to start (milliseconds)
 * @param workers how many there may be
 * @param prestart how long a worker that was started in advance is kept unused (milliseconds); None starts none
 */
private[pyjoinopt] final case class WorkerSettings(
    command: WorkerCommand,
    timeout: Long,
    startTimeout: Long,
    workers: Int,
    prestart: Option[Long])

private[pyjoinopt] object WorkerSettings {
  private val Ours = "spark.pyjoinopt."

  /** Keys of times that may be a word, too. */
  private val words = Map("timeout" -> "auto", "prestart" -> "off")

  /** What a Python driver told of itself. */
  @volatile var ofThisDriver: Option[WorkerCommand] = None

  /** For a plan of a session that reads so many bytes. */
  def of(session: Compat.Session, bytes: => Double = 0): WorkerSettings =
    read(
      session.sparkContext.conf,
      key =>
        if (ApplicationSettings.Static.contains(key)) ApplicationSettings.text(session, key)
        else Option(session.sessionState.conf.getConfString(key, null)),
      bytes)

  /** Before there is a session. */
  def ofApplication(conf: SparkConf): WorkerSettings = read(conf, conf.getOption, 0)

  private def read(
      application: SparkConf, setting: String => Option[String], bytes: => Double): WorkerSettings = {
    def text(key: String): Option[String] = setting(key).map(_.trim).filter(_.nonEmpty)
    def milliseconds(key: String, default: Long): Long =
      text(Ours + key).fold(default) { value =>
        val read = Support.attempt(-1L)(JavaUtils.timeStringAs(value, TimeUnit.MILLISECONDS))
        if (read > 0) read else Support.fail(
          s"$Ours$key is $value, but must be ${words.get(key).fold("")(word => s"$word or ")}a time such as 2s or 500ms.")
      }
    val environment = System.getenv()
    val python = Seq(
      text(Ours + "python"),
      ofThisDriver.map(_.python),
      application.getOption("spark.pyspark.driver.python").filter(isPython),
      Option(environment.get("PYSPARK_DRIVER_PYTHON")).filter(isPython),
      application.getOption("spark.pyspark.python"),
      Option(environment.get("PYSPARK_PYTHON"))).flatten.headOption.getOrElse("python3")
    val workers = text(Ours + "workers").fold(2) { value =>
      val read = Support.attempt(0)(value.toInt)
      if (read > 0) read else Support.fail(s"${Ours}workers is $value, but must be a number of processes, 1 or more.")
    }
    WorkerSettings(
      WorkerCommand(python, text(Ours + "pythonpath").orElse(ofThisDriver.flatMap(_.path)).orElse(besideJar)),
      if (text(Ours + "timeout").forall(_.equalsIgnoreCase("auto"))) InputSize.milliseconds(bytes)
      else milliseconds("timeout", 0),
      milliseconds("startTimeout", 60000),
      workers,
      if (text(Ours + "prestart").exists(_.equalsIgnoreCase("off"))) None else Some(milliseconds("prestart", 600000)))
  }

  /** The driver's Python may be set to jupyter or ipython, which run no modules. */
  private def isPython(executable: String): Boolean = {
    val name = new File(executable).getName
    name.startsWith("python") || name.startsWith("pypy")
  }

  /** A jar that lies in the package `pyjoinopt` knows where that package is. */
  private lazy val besideJar: Option[String] = Support.attempt(Option.empty[String]) {
    val jar = new File(classOf[PyJoinOptExtensions].getProtectionDomain.getCodeSource.getLocation.toURI)
    val folder = jar.getParentFile.getParentFile
    if (new File(folder, "worker/__main__.py").isFile) Some(folder.getParent) else None
  }
}
