package org.apache.spark.sql.pyjoinopt

import java.io.{InputStream, InputStreamReader}
import java.nio.charset.StandardCharsets.UTF_8

/** The last lines that a process wrote to its standard error, read on a thread of its own. */
private[pyjoinopt] final class ErrorOutput(stream: InputStream) {
  private val last = new java.util.ArrayDeque[String]

  private val thread = new Thread("pyjoinopt-worker-errors") {
    override def run(): Unit = Support.attempt(()) {
      val reader = new InputStreamReader(stream, UTF_8)
      val block = new Array[Char](4096)
      val line = new StringBuilder
      var read = reader.read(block)
      while (read >= 0) {
        block.take(read).foreach { c =>
          if (c != '\n') {
            if (line.length < ErrorOutput.MaxLine) line.append(c)
          } else {
            keep(line.toString)
            line.clear()
          }
        }
        read = reader.read(block)
      }
      keep(line.toString)
    }
  }
  thread.setDaemon(true)
  thread.start()

  private def keep(line: String): Unit = last.synchronized {
    if (line.trim.nonEmpty) last.addLast(line.trim)
    while (last.size > 5) last.removeFirst()
  }

  /** The last line, for a message. It waits a little: the pipe may still hold output of a process that has ended. */
  def lastLine: String = {
    Support.attempt(())(thread.join(100))
    last.synchronized(if (last.isEmpty) "" else s"; its last error output: ${last.getLast}")
  }
}

private[pyjoinopt] object ErrorOutput {

  /** Longer lines are cut (characters). */
  private val MaxLine = 500
}
