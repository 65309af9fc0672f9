package org.apache.spark.sql.pyjoinopt

import java.io.File
import java.util.concurrent.TimeUnit
import java.util.zip.ZipFile

import org.apache.spark.SparkConf
import org.apache.spark.network.util.JavaUtils

/** A point in time, as a value of `System.nanoTime`. */
private[pyjoinopt] final class Deadline(val at: Long) {
  def nanos: Long = math.max(0, at - System.nanoTime)
  def milliseconds: Long = TimeUnit.NANOSECONDS.toMillis(nanos)
  def isOver: Boolean = at - System.nanoTime <= 0
}

private[pyjoinopt] object Deadline {
  def in(milliseconds: Long): Deadline = new Deadline(System.nanoTime + TimeUnit.MILLISECONDS.toNanos(milliseconds))
}

/** The command that starts a worker. Sessions with the same command share workers. */
private[pyjoinopt] final case class WorkerCommand(python: String, path: Option[String])

/**
 * The settings of a session's workers. All but `timeout` belong to the application, see `ApplicationSettings`.
 *
 * @param timeout how long a query waits for its join order (milliseconds)
 * @param startTimeout how long the start of a worker may take (milliseconds)
 * @param workers the largest number of workers
 * @param prestart how long a worker started in advance is kept unused (milliseconds); None starts none in advance
 */
private[pyjoinopt] final case class WorkerSettings(
    command: WorkerCommand,
    timeout: Long,
    startTimeout: Long,
    workers: Int,
    prestart: Option[Long])

private[pyjoinopt] object WorkerSettings {
  private val Ours = "spark.pyjoinopt."

  /** The words that are allowed instead of a time, by key. */
  private val words = Map("timeout" -> "auto", "prestart" -> "off")

  /** The command of the Python that runs the driver, if it has called `enable`. */
  @volatile var ofThisDriver: Option[WorkerCommand] = None

  /** The settings for a plan that reads so many bytes. */
  def of(session: Compat.Session, bytes: => Double = 0): WorkerSettings =
    read(
      session.sparkContext.conf,
      ApplicationSettings.setting(session, _),
      bytes
    )

  /** The settings before there is a session. */
  def ofApplication(conf: SparkConf): WorkerSettings = read(conf, conf.getOption, 0)

  private def read(
      application: SparkConf,
      setting: String => Option[String],
      bytes: => Double): WorkerSettings = {
    def text(key: String): Option[String] = setting(key).map(_.trim).filter(_.nonEmpty)
    def milliseconds(key: String, default: Long): Long =
      text(Ours + key).fold(default) { value =>
        val read = Support.attempt(-1L)(JavaUtils.timeStringAs(value, TimeUnit.MILLISECONDS))
        if (read > 0) read
        else Support.fail(
          s"$Ours$key is $value, but must be ${words.get(key).fold("")(word => s"$word or ")}a time such as 2s or 500ms.")
      }
    val environment = System.getenv()
    val python = Seq(
      text(Ours + "python"),
      ofThisDriver.map(_.python),
      application.getOption("spark.pyspark.driver.python").filter(isPython),
      Option(environment.get("PYSPARK_DRIVER_PYTHON")).filter(isPython),
      application.getOption("spark.pyspark.python"),
      Option(environment.get("PYSPARK_PYTHON"))
    ).flatten.headOption.getOrElse("python3")
    val workers = text(Ours + "workers").fold(2) { value =>
      val read = Support.attempt(0)(value.toInt)
      if (read > 0) read else Support.fail(s"${Ours}workers is $value, but must be a number of processes, 1 or more.")
    }
    WorkerSettings(
      WorkerCommand(python, text(Ours + "pythonpath").orElse(ofThisDriver.flatMap(_.path)).orElse(pathOfJar)),
      if (text(Ours + "timeout").forall(_.equalsIgnoreCase("auto"))) InputSize.milliseconds(bytes)
      else milliseconds("timeout", 0),
      milliseconds("startTimeout", 60000),
      workers,
      if (text(Ours + "prestart").exists(_.equalsIgnoreCase("off"))) None else Some(milliseconds("prestart", 600000))
    )
  }

  /** The driver's Python may be jupyter or ipython, which cannot run a module. */
  private def isPython(executable: String): Boolean = {
    val name = new File(executable).getName
    name.startsWith("python") || name.startsWith("pypy")
  }

  /** Where Python finds the package `pyjoinopt` of this jar, if it has one. */
  private lazy val pathOfJar: Option[String] = Support.attempt(Option.empty[String]) {
    pathOf(new File(classOf[PyJoinOptExtensions].getProtectionDomain.getCodeSource.getLocation.toURI))
  }

  /**
   * Where Python finds the package `pyjoinopt` of a jar: around the jar, if it is inside the package, as in the wheel;
   * or in the jar, as in the jars for Maven, since Python imports from archives.
   */
  def pathOf(jar: File): Option[String] = {
    val folder = jar.getParentFile.getParentFile
    if (new File(folder, "worker/__main__.py").isFile) Some(folder.getParent)
    else if (hasPython(jar)) Some(new File(jar, Inside).getPath)
    else None
  }

  /** The folder of the Python package inside a jar. */
  private val Inside = "python"

  private def hasPython(jar: File): Boolean = {
    val main = s"$Inside/pyjoinopt/worker/__main__.py"
    if (jar.isFile) {
      val archive = new ZipFile(jar)
      try archive.getEntry(main) != null
      finally archive.close()
    } else new File(jar, main).isFile // a folder of classes
  }
}
