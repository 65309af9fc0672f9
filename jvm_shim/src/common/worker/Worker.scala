package org.apache.spark.sql.pyjoinopt

import java.io._
import java.nio.charset.StandardCharsets.UTF_8
import java.util.concurrent.{ScheduledThreadPoolExecutor, ThreadFactory, TimeUnit}

import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.JsonNode

/** What went wrong with a worker, and what to do about it. */
private[pyjoinopt] final class WorkerFailure(message: String, cause: Throwable = null)
    extends RuntimeException(message, cause)

/**
 * One Python process with the optimizer in it, spoken to over its standard input and output.
 *
 * A frame is four bytes of mark, four of length, and JSON. The worker greets with its version; then it is asked, may
 * ask back, and answers. One plan at a time: whoever wants to plan two at once takes two workers.
 *
 * Laws: nothing waits past the deadline, nor for a query that was cancelled: a watchdog then kills the process, which
 * ends every read and write. A worker that was ever late, silent or unclear is never asked again. It ends when its
 * standard input does, so none outlives the driver.
 */
private[pyjoinopt] final class Worker(command: WorkerCommand, inAdvance: Boolean = false) {
  private val process = WorkerProcess.start(command, inAdvance)
  private val in = new DataInputStream(new BufferedInputStream(process.getInputStream, 1 << 16))
  private val out = new DataOutputStream(new BufferedOutputStream(process.getOutputStream, 1 << 16))
  private val complaints = new Complaints(process.getErrorStream)
  @volatile private var late = false
  @volatile private var greeted = false
  @volatile private var talking = false
  @volatile private var last = 0L
  private val heard = new java.util.ArrayDeque[String]
  private val owing = new Object
  private var owed: Option[DeferredReport] = None

  /** Wait for the greeting. */
  def greet(deadline: Deadline): Unit = {
    val greeting = guarded(deadline, "did not start in time")(read())
    val protocol = greeting.path("protocol").asInt(-1)
    if (protocol != Worker.Protocol) {
      val version = greeting.path("version").asText("?")
      throw new WorkerFailure(
        s"the worker of ${command.python} is of pyjoinopt $version and speaks protocol $protocol, this jar speaks " +
          s"${Worker.Protocol}. Use the jar and the package of one release: ${command.python} -m pyjoinopt jar")
    }
    greeted = true
  }

  /**
   * The answer to a request, a JSON object, and the report that will follow; questions on the way are answered by
   * `tell`.
   */
  def ask(request: String, deadline: Deadline)(tell: JsonNode => String): (JsonNode, DeferredReport) = {
    settle(deadline)
    last += 1
    talking = true
    val id = last
    val news = takeHeard().fold("")(plans => s""""heard":$plans,""")
    guarded(deadline, "did not answer in time")(write(s"""{"id":$id,$news"request":$request}"""))
    var answer: JsonNode = null
    while (answer == null) {
      val frame = guarded(deadline, "did not answer in time")(read())
      if (frame.path("id").asLong(-1) != id) throw unclear("it answered another request")
      else if (frame.has("question")) {
        val told =
          try s""""answer":${tell(frame.get("question"))}"""
          catch {
            case NonFatal(error) =>
              val text = Support.cut(String.valueOf(error.getMessage))
              s""""error":${Support.mapper.writeValueAsString(text)}"""
          }
        guarded(deadline, "did not answer in time")(write(s"""{"id":$id,$told}"""))
      } else if (frame.path("answer").isObject) answer = frame.get("answer")
      else throw unclear("it answered neither yes nor no")
    }
    talking = false
    val report = new DeferredReport(this, id)
    owing.synchronized { owed = Some(report) }
    (answer, report)
  }

  /** Read the report of the last answer, if nobody has yet. */
  def settle(deadline: Deadline): Unit = owing.synchronized {
    owed.foreach { report =>
      owed = None
      var told: Option[JsonNode] = None
      try {
        val frame = guarded(deadline, "did not tell what it had done in time")(read())
        if (frame.path("id").asLong(-1) != report.id || !frame.path("report").isObject) throw unclear("it owed a report")
        told = Some(frame.get("report"))
      } finally {
        report.is(told)
        if (told.isEmpty) kill() // nobody can tell where its next frame begins
      }
    }
  }

  /** Told with the next request, or at the end. */
  def hear(plans: Seq[String]): Unit = heard.synchronized {
    plans.foreach(heard.addLast)
    while (heard.size > Feedback.Kept) heard.removeFirst()
  }

  private def takeHeard(): Option[String] = heard.synchronized {
    if (heard.isEmpty) None
    else {
      val all = heard.toArray(Array.empty[String]).mkString("[", ",", "]")
      heard.clear()
      Some(all)
    }
  }

  /** Whether it was ended because a deadline had passed. */
  def wasLate: Boolean = late

  /** Whether it has planned anything. */
  def wasAsked: Boolean = last > 0

  /** Alive, and not in the middle of an answer that nobody waits for any more. */
  def isReady: Boolean = !late && !talking && process.isAlive

  /** End the process and all that it started. */
  def kill(): Unit = {
    Support.attempt(())(Worker.descendants(process).foreach(_()))
    process.destroyForcibly()
  }

  /** Let the process end by itself, and see to it that it does. */
  def close(): Unit = {
    Support.attempt(())(settle(Deadline.in(1000)))
    val news = if (isReady) takeHeard() else None
    Support.attempt(()) {
      news.foreach(plans => guarded(Deadline.in(1000), "did not listen at its end")(write(s"""{"heard":$plans}""")))
      process.getOutputStream.close()
    }
    if (!process.waitFor(if (news.isEmpty) 500 else 2000, TimeUnit.MILLISECONDS)) kill()
  }

  private def write(text: String): Unit = {
    val bytes = text.getBytes(UTF_8)
    out.writeInt(Worker.Mark)
    out.writeInt(bytes.length)
    out.write(bytes)
    out.flush()
  }

  private def read(): JsonNode = {
    if (in.readInt() != Worker.Mark) throw unclear("it wrote something else than answers")
    val length = in.readInt()
    if (length < 0 || length > Worker.Longest) throw unclear(s"it announced $length bytes")
    val bytes = new Array[Byte](length)
    in.readFully(bytes)
    try Support.mapper.readTree(bytes)
    catch { case NonFatal(_) => throw unclear("it wrote no JSON") }
  }

  private def unclear(what: String): WorkerFailure =
    new WorkerFailure(s"the worker of ${command.python} cannot be understood ($what)${complaints.said}. $advice")

  private def advice: String =
    if (greeted) "Another one is started when a query needs it"
    else s"Has it got pyjoinopt (${command.python} -m pip install pyjoinopt)? If not, set spark.pyjoinopt.python to a " +
      "Python 3.10 or later that has"

  /** Reading or writing, with the process killed at the deadline. */
  private def guarded[T](deadline: Deadline, whatIfLate: String)(body: => T): T = {
    def tooLate(cause: Throwable) = {
      val keys = if (greeted) "raise spark.pyjoinopt.timeout or lower spark.pyjoinopt.pairBudget"
      else "raise spark.pyjoinopt.startTimeout or name another spark.pyjoinopt.python"
      new WorkerFailure(
        s"the worker of ${command.python} $whatIfLate and was ended${complaints.said}. If that comes again, $keys", cause)
    }
    if (deadline.isOver) { // the time went elsewhere, but what the worker will write now belongs to nobody
      late = true
      kill()
      throw tooLate(null)
    }
    val caller = Thread.currentThread
    @volatile var cancelled = false
    val watch = Worker.watchdog.scheduleWithFixedDelay(
      new Runnable {
        override def run(): Unit =
          if (deadline.isOver) {
            late = true
            kill()
          } else if (caller.isInterrupted) {
            cancelled = true
            kill()
          }
      }, math.min(deadline.milliseconds + 1, Worker.Look), Worker.Look, TimeUnit.MILLISECONDS)
    try body
    catch {
      case error: IOException if late => throw tooLate(error)
      case _: IOException if cancelled => throw new InterruptedException
      case error: IOException =>
        process.waitFor(200, TimeUnit.MILLISECONDS)
        val code = if (process.isAlive) "" else s" with code ${process.exitValue}"
        throw new WorkerFailure(s"the worker of ${command.python} ended$code${complaints.said}. $advice", error)
    } finally watch.cancel(false)
  }
}

private[pyjoinopt] object Worker {
  val Protocol = 2
  private val Mark = 0x504a4f31 // PJO1
  private val Longest = 256 << 20

  /** Do something later, briefly. */
  def after(milliseconds: Long)(body: => Unit): Unit = watchdog.schedule(
    new Runnable {
      override def run(): Unit = Support.attempt(())(body)
    }, milliseconds, TimeUnit.MILLISECONDS)

  /** How often the watchdog looks (milliseconds). */
  private val Look = 50L

  private lazy val watchdog = {
    val executor = new ScheduledThreadPoolExecutor(1, new ThreadFactory {
      override def newThread(body: Runnable): Thread = {
        val thread = new Thread(body, "pyjoinopt-watchdog")
        thread.setDaemon(true)
        thread
      }
    })
    executor.setRemoveOnCancelPolicy(true)
    executor.setKeepAliveTime(30, TimeUnit.SECONDS)
    executor.allowCoreThreadTimeOut(true)
    executor
  }

  /** How to kill each process below this one; Java 8 cannot tell. */
  private def descendants(process: Process): Seq[() => Unit] = {
    val handle = classOf[Process].getMethod("descendants").invoke(process)
    val all = Class.forName("java.util.stream.BaseStream").getMethod("iterator").invoke(handle)
      .asInstanceOf[java.util.Iterator[AnyRef]]
    val kill = Class.forName("java.lang.ProcessHandle").getMethod("destroyForcibly")
    var found = List.empty[() => Unit]
    while (all.hasNext) {
      val child = all.next()
      found ::= (() => kill.invoke(child))
    }
    found
  }
}

/** Keeps the last lines that a process wrote to its standard error. */
private[pyjoinopt] final class Complaints(stream: InputStream) {
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
            if (line.length < Complaints.Longest) line.append(c)
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

  /** The last line, for a message; a process that ended may still have something in the pipe. */
  def said: String = {
    Support.attempt(())(thread.join(100))
    last.synchronized(if (last.isEmpty) "" else s"; it said: ${last.getLast}")
  }
}

private[pyjoinopt] object Complaints {
  private val Longest = 500
}
