package org.apache.spark.sql.pyjoinopt

import java.io._
import java.nio.charset.StandardCharsets.UTF_8
import java.util.concurrent.{ScheduledThreadPoolExecutor, ThreadFactory, TimeUnit}
import java.util.concurrent.atomic.AtomicReference

import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.JsonNode

/** A failure of a worker. The message says what went wrong and what the user can do about it. */
private[pyjoinopt] final class WorkerFailure(message: String, cause: Throwable = null, val late: Boolean = false)
    extends RuntimeException(message, cause)

/**
 * One Python process with the optimizer in it. Driver and process exchange frames over its standard input and output.
 *
 * A frame is four bytes of mark, four of length, and JSON. The worker sends a greeting with its version. For each
 * request it may send questions, then an answer, then a report. One plan at a time: planning two at once takes two
 * workers.
 *
 * Laws: nothing waits past the deadline, nor for a cancelled query: a watchdog then kills the process, which ends every
 * read and write. A worker that was late or broke the protocol gets no further request. The process ends when its
 * standard input is closed, so none outlives the driver.
 *
 * Threads: `state` changes only in `become`, atomically, by the pure function `WorkerState.after`. The pool lends a
 * worker to one thread at a time; that thread makes the events Greeted, Requested and Answered. Any thread may read the
 * report of the last answer: `reading` is held from the check for a pending report to the event ReportRead, so a report
 * is read once, and the next request waits until it has been read. Any thread, the watchdog's among them, may kill the
 * worker. Dead is final, so an event that races with Killed cannot bring the worker back.
 */
private[pyjoinopt] final class Worker(command: WorkerCommand, inAdvance: Boolean = false) {
  import WorkerState._

  private val process = WorkerProcess.start(command, inAdvance)
  private val in = new DataInputStream(new BufferedInputStream(process.getInputStream, 1 << 16))
  private val out = new DataOutputStream(new BufferedOutputStream(process.getOutputStream, 1 << 16))
  private val errors = new ErrorOutput(process.getErrorStream)
  private val state = new AtomicReference[WorkerState](Starting)
  private val reading = new Object
  private val feedback = new RecentQueries

  private def become(event: Event): WorkerState = state.updateAndGet(WorkerState.after(_, event))

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
    become(Greeted)
    PlanMetrics.workersStarted.inc()
  }

  /**
   * Send a request, a JSON object, and wait for the answer. The report will follow the answer.
   *
   * @param answer gives the answer to a question of the worker, as JSON
   */
  def request(json: String, deadline: Deadline)(answer: JsonNode => String): (JsonNode, DeferredReport) = {
    readReport(deadline)
    val id = become(Requested).requests
    val queries = feedback.take()
    val executed = if (queries.isEmpty) "" else s"${ended(queries)},"
    guarded(deadline, "did not answer in time")(write(s"""{"id":$id,$executed"request":$json}"""))
    var result: JsonNode = null
    while (result == null) {
      val frame = guarded(deadline, "did not answer in time")(read())
      if (frame.path("id").asLong(-1) != id) throw unclear("it answered another request")
      else if (frame.has("question")) {
        val reply =
          try s""""answer":${answer(frame.get("question"))}"""
          catch {
            case NonFatal(error) =>
              val text = Support.cut(String.valueOf(error.getMessage))
              s""""error":${Support.mapper.writeValueAsString(text)}"""
          }
        guarded(deadline, "did not answer in time")(write(s"""{"id":$id,$reply}"""))
      } else if (frame.path("answer").isObject) result = frame.get("answer")
      else throw unclear("its frame holds neither a question nor an answer")
    }
    val report = new DeferredReport(this, id)
    become(Answered(report))
    (result, report)
  }

  /** Read the report of the last answer, unless it has been read. */
  def readReport(deadline: Deadline): Unit = reading.synchronized {
    state.get match {
      case Owing(report) =>
        var content: Option[JsonNode] = None
        try {
          val frame = guarded(deadline, "did not send its report in time")(read())
          if (frame.path("id").asLong(-1) != report.id || !frame.path("report").isObject)
            throw unclear("it sent no report")
          content = Some(frame)
        } finally {
          report.set(content)
          if (content.isDefined) become(ReportRead) else kill() // where its next frame begins is unknown
        }
      case _ =>
    }
  }

  /** Queries that ended: they are sent with the next request, or at the end. */
  def addFeedback(queries: Seq[String]): Unit = queries.foreach(feedback.add)

  /** Whether there are queries that it has not been sent. */
  def hasFeedback: Boolean = !feedback.isEmpty

  /** Send the queries that ended in a frame of their own. Not on the watchdog's thread, which ends what takes too long. */
  def deliverFeedback(deadline: Deadline): Unit = {
    readReport(deadline)
    val queries = feedback.take()
    if (queries.nonEmpty) guarded(deadline, "did not read the queries that ended")(write(s"""{${ended(queries)}}"""))
  }

  private def ended(queries: Seq[String]): String = s""""heard":${queries.mkString("[", ",", "]")}"""

  /** Whether it has sent something that was not read yet, or has ended. */
  def hasOutput: Boolean = !process.isAlive || Support.attempt(true)(in.available() > 0)

  /** Whether it was killed because a deadline had passed. */
  def wasLate: Boolean = state.get match {
    case dead: Dead => dead.late
    case _ => false
  }

  /** Whether it has had a request. */
  def wasUsed: Boolean = state.get.requests > 0

  /** Whether it can take a request: alive, and not in the middle of an answer that no query waits for any more. */
  def isReady: Boolean = state.get.takesRequests && process.isAlive

  /** End the process and all that it started. */
  def kill(): Unit = kill(late = false)

  private def kill(late: Boolean): Unit = {
    become(Killed(late))
    Support.attempt(())(Worker.descendants(process).foreach(_()))
    process.destroyForcibly()
  }

  /** Let the process end by itself, and kill it if it does not. */
  def close(): Unit = {
    Support.attempt(())(readReport(Deadline.in(1000)))
    val hasNews = isReady && hasFeedback
    Support.attempt(()) {
      if (hasNews) deliverFeedback(Deadline.in(1000))
      process.getOutputStream.close()
    }
    if (!process.waitFor(if (hasNews) 2000 else 500, TimeUnit.MILLISECONDS)) kill()
  }

  private def write(text: String): Unit = {
    val bytes = text.getBytes(UTF_8)
    out.writeInt(Worker.Mark)
    out.writeInt(bytes.length)
    out.write(bytes)
    out.flush()
  }

  private def read(): JsonNode = {
    if (in.readInt() != Worker.Mark) throw unclear("its output is no frame")
    val length = in.readInt()
    if (length < 0 || length > Worker.MaxLength) throw unclear(s"it announced $length bytes")
    val bytes = new Array[Byte](length)
    in.readFully(bytes)
    try Support.mapper.readTree(bytes)
    catch { case NonFatal(_) => throw unclear("it wrote no JSON") }
  }

  private def unclear(what: String): WorkerFailure =
    new WorkerFailure(s"the worker of ${command.python} cannot be understood ($what)${errors.lastLine}. $advice")

  private def advice: String =
    if (state.get.hasGreeted) "Another one is started when a query needs it"
    else
      s"Has it got pyjoinopt (${command.python} -m pip install pyjoinopt)? If not, set spark.pyjoinopt.python to a " +
        "Python 3.10 or later that has"

  /** Read or write. At the deadline, or if the caller is interrupted, the process is killed. */
  private def guarded[T](deadline: Deadline, whatIfLate: String)(body: => T): T = {
    def tooLate(cause: Throwable) = {
      val keys = if (state.get.hasGreeted) "raise spark.pyjoinopt.timeout or lower spark.pyjoinopt.pairBudget"
      else "raise spark.pyjoinopt.startTimeout or name another spark.pyjoinopt.python"
      new WorkerFailure(
        s"the worker of ${command.python} $whatIfLate and was ended${errors.lastLine}. If that comes again, $keys",
        cause,
        late = true)
    }
    if (deadline.isOver) { // others used up the time, but no query will read what the worker writes now
      kill(late = true)
      throw tooLate(null)
    }
    val caller = Thread.currentThread
    @volatile var cancelled = false
    val watch = Worker.watchdog.scheduleWithFixedDelay(
      new Runnable {
        override def run(): Unit =
          if (deadline.isOver) kill(late = true)
          else if (caller.isInterrupted) {
            cancelled = true
            kill()
          }
      },
      math.min(deadline.milliseconds + 1, Worker.CheckEvery),
      Worker.CheckEvery,
      TimeUnit.MILLISECONDS
    )
    try body
    catch {
      case error: IOException if wasLate => throw tooLate(error)
      case _: IOException if cancelled => throw new InterruptedException
      case error: IOException =>
        process.waitFor(200, TimeUnit.MILLISECONDS)
        val code = if (process.isAlive) "" else s" with code ${process.exitValue}"
        throw new WorkerFailure(s"the worker of ${command.python} ended$code${errors.lastLine}. $advice", error)
    } finally watch.cancel(false)
  }
}

private[pyjoinopt] object Worker {
  val Protocol = 3
  private val Mark = 0x504a4f31 // PJO1
  private val MaxLength = 256 << 20

  /** Run something short on the watchdog's thread, later. */
  def after(milliseconds: Long)(body: => Unit): Unit = schedule(watchdog, milliseconds)(body)

  /** Run something, now or later, on a thread that no query waits for, and not the watchdog's. */
  def inBackground(body: => Unit, milliseconds: Long = 0): Unit = schedule(background, milliseconds)(body)

  private def schedule(executor: ScheduledThreadPoolExecutor, milliseconds: Long)(body: => Unit): Unit =
    executor.schedule(
      new Runnable {
        override def run(): Unit = Support.attempt(())(body)
      },
      milliseconds,
      TimeUnit.MILLISECONDS)

  /** How often the watchdog checks the deadline and the caller (milliseconds). */
  private val CheckEvery = 50L

  private lazy val watchdog = executor("pyjoinopt-watchdog")
  private lazy val background = executor("pyjoinopt-feedback")

  /** One thread, which ends when it has had nothing to do for a while. */
  private def executor(name: String): ScheduledThreadPoolExecutor = {
    val executor = new ScheduledThreadPoolExecutor(
      1,
      new ThreadFactory {
        override def newThread(body: Runnable): Thread = {
          val thread = new Thread(body, name)
          thread.setDaemon(true)
          thread
        }
      })
    executor.setRemoveOnCancelPolicy(true)
    executor.setKeepAliveTime(30, TimeUnit.SECONDS)
    executor.allowCoreThreadTimeOut(true)
    executor
  }

  /** Functions that kill the processes below this one. Java 8 throws: it cannot list them. */
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
