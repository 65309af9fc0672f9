package org.apache.spark.sql.pyjoinopt

import java.io.{File, IOException}

/** Starts the Python process of a worker, for a query that needs it now or in advance. */
private[pyjoinopt] object WorkerProcess {

  def start(command: WorkerCommand, inAdvance: Boolean): Process = {
    val builder =
      if (inAdvance) new ProcessBuilder(command.python, "-c", AtLowPriority, "pyjoinopt.worker")
      else new ProcessBuilder(command.python, "-m", "pyjoinopt.worker")
    val environment = builder.environment()
    environment.put("PYJOINOPT_ATTACH", "off")
    environment.put("PYTHONUNBUFFERED", "1")
    environment.put("PYTHONSAFEPATH", "1") // a json.py in the working directory must not replace the module json
    command.path.foreach { path =>
      val known = Option(environment.get("PYTHONPATH")).filter(_.nonEmpty)
      environment.put("PYTHONPATH", (path +: known.toSeq).mkString(File.pathSeparator))
    }
    try builder.start()
    catch {
      case error: IOException =>
        throw new WorkerFailure(
          s"${command.python} cannot be started (${error.getMessage}). Set " +
            "spark.pyjoinopt.python to a Python 3.10 or later that has pyjoinopt",
          error)
    }
  }

  /**
   * The same program as `-m pyjoinopt.worker`, loaded at low priority, so that it does not slow down Spark's own start.
   * On Linux a priority belongs to a thread, so another thread runs the worker at normal priority later. A process
   * could not raise its own priority again.
   */
  private val AtLowPriority =
    """import os, sys, threading
      |def load():
      |    try:
      |        if sys.platform == "linux":
      |            me = threading.get_native_id()
      |            os.setpriority(os.PRIO_PROCESS, me, os.getpriority(os.PRIO_PROCESS, me) + 10)
      |    except OSError:
      |        pass
      |    import pyjoinopt.worker.serve
      |loading = threading.Thread(target=load)
      |loading.start()
      |loading.join()
      |from pyjoinopt.worker.serve import main
      |sys.exit(main())""".stripMargin
}
