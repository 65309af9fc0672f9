package org.apache.spark.sql.pyjoinopt

import java.util.{ArrayDeque, Collections, WeakHashMap}
import java.util.concurrent.TimeUnit

import scala.collection.mutable

import org.apache.spark.SparkContext
import org.apache.spark.scheduler.{SparkListener, SparkListenerApplicationEnd}

/**
 * The workers of this driver: started when a plan first needs one, kept, and ended with the application, or when every
 * session that they planned for has named another Python.
 *
 * Laws: a plan has a worker to itself while it is planned. A second worker is started only when the first is busy.
 * After a failure the next start waits, longer each time; meanwhile queries keep their plans at once and in silence.
 * What went wrong is said in one WARN, with what to do.
 */
private[pyjoinopt] object Workers {
  private val pools = new mutable.HashMap[WorkerCommand, WorkerPool]

  /** By which command each session had its last plan made. */
  private val named = new WeakHashMap[Compat.Session, WorkerCommand]
  private val watched =
    Collections.synchronizedSet(Collections.newSetFromMap(new WeakHashMap[SparkContext, java.lang.Boolean]))
  private val warned = Collections.synchronizedSet(new java.util.HashSet[String])

  /**
   * What `body` makes with a worker, within the session's deadline; None if there is none, or it failed, or the query
   * was cancelled meanwhile: the interrupt is then left for Spark to see.
   */
  def serving[T](session: Compat.Session, settings: WorkerSettings)(body: (Worker, Deadline) => T): Option[T] =
    if (Thread.currentThread.isInterrupted) None
    else
      try enter(session, settings).flatMap { pool =>
        try using(pool, settings)(body)
        finally leave(pool)
      } catch {
        case _: InterruptedException =>
          Thread.currentThread.interrupt()
          None
        case error: WorkerFailure =>
          OptimizeJoins.log.warn(s"The joins of a query stay as written: ${error.getMessage}. " +
            "To do without: spark.pyjoinopt.enabled=false.")
          None
      }

  /** None once the application has ended: nobody would end the workers that it started. */
  private def enter(session: Compat.Session, settings: WorkerSettings): Option[WorkerPool] = {
    val context = session.sparkContext
    if (watched.add(context)) {
      context.addSparkListener(new SparkListener {
        override def onApplicationEnd(end: SparkListenerApplicationEnd): Unit = closeAll()
      })
    }
    synchronized {
      if (context.isStopped) None
      else {
        named.put(session, settings.command)
        val pool = pools.getOrElseUpdate(settings.command, new WorkerPool(settings.command))
        pool.users += 1
        retire()
        Some(pool)
      }
    }
  }

  private def leave(pool: WorkerPool): Unit = synchronized {
    pool.users -= 1
    retire()
  }

  /** End the workers of pools that no session names any more, once nobody uses them. Queries do not wait for that. */
  private def retire(): Unit =
    if (pools.size > 1) {
      val unneeded = pools.filter { case (command, pool) => pool.users == 0 && !named.containsValue(command) }.toList
      pools --= unneeded.map(_._1)
      if (unneeded.nonEmpty) {
        val ending = new Thread("pyjoinopt-retiring") {
          override def run(): Unit = unneeded.foreach { case (_, pool) => Support.attempt(())(pool.close()) }
        }
        ending.setDaemon(true)
        ending.start()
      }
    }

  private def using[T](pool: WorkerPool, settings: WorkerSettings)(body: (Worker, Deadline) => T): Option[T] =
    pool.take(settings).map { worker =>
      try {
        val made = body(worker, Deadline.in(settings.timeout))
        pool.giveBack(worker)
        made
      } catch {
        case error: WorkerFailure =>
          pool.failed(worker)
          throw error
        case error: Throwable => // an interrupt, say: that is nobody's failure
          pool.giveBack(worker)
          throw error
      }
    }

  /** A WARN that comes again with every query is said once. */
  def warnOnce(text: String, cause: Throwable = null): Unit = {
    if (warned.size > 1000) warned.clear()
    if (warned.add(text)) OptimizeJoins.log.warn(s"The joins of a query stay as written: $text", cause)
  }

  /** Let the workers know, with their next request, what queries did that they may have planned. */
  def hear(plans: Seq[String]): Unit =
    if (plans.nonEmpty) synchronized(pools.values.toList).foreach(_.hear(plans))

  /** How many workers there are. */
  def count: Int = synchronized(pools.values.map(_.size).sum)

  def closeAll(): Unit = {
    Support.attempt(())(hear(Feedback.ofSessions.take()))
    val closing = synchronized {
      val all = pools.values.toList
      pools.clear()
      named.clear()
      all
    }
    closing.foreach(_.close())
  }
}

/** The workers that were started by one command. */
private[pyjoinopt] final class WorkerPool(command: WorkerCommand) {
  private val idle = new ArrayDeque[Worker]
  private val all = new mutable.HashSet[Worker]
  private var starting = 0
  private var failures = 0
  private var notBefore = 0L
  private var closed = false

  /** How many plans are being made here, or wait for that; kept by `Workers`. */
  var users = 0

  def size: Int = synchronized(all.size)

  /** A worker of one's own; None while none may be started, or if all stay busy until the deadline. */
  def take(settings: WorkerSettings): Option[Worker] = {
    val until = Deadline.in(if (size == 0) settings.startTimeout else settings.timeout)
    val patience = Deadline.in(WorkerPool.Patience)
    synchronized {
      var found = next()
      while (found.isEmpty && mayWait && !until.isOver && !(mayStart(settings) && patience.isOver)) {
        val pause = if (mayStart(settings)) patience else until
        wait(math.max(1, pause.milliseconds))
        found = next()
      }
      if (found.isEmpty && mayWait && until.isOver) {
        Workers.warnOnce(s"all workers (${size + starting}) were busy for ${settings.timeout} ms. If that comes again, " +
          "raise spark.pyjoinopt.workers or spark.pyjoinopt.timeout.")
      }
      if (found.isDefined || !mayStart(settings) || until.isOver) return found
      starting += 1
    }
    Some(start(Deadline.in(settings.startTimeout)))
  }

  private def next(): Option[Worker] = {
    var found = Option.empty[Worker]
    while (found.isEmpty && !idle.isEmpty) {
      val worker = idle.pop()
      if (worker.isReady) found = Some(worker) else forget(worker)
    }
    found
  }

  private def mayWait: Boolean = !closed && size + starting > 0

  private def mayStart(settings: WorkerSettings): Boolean =
    !closed && size + starting < settings.workers && System.nanoTime - notBefore >= 0

  private def start(deadline: Deadline): Worker = {
    var made: Worker = null
    try {
      made = new Worker(command)
      made.greet(deadline)
      synchronized {
        all += made
        if (closed) {
          forget(made)
          throw new WorkerFailure("the application ends")
        }
      }
      made
    } catch {
      case error: Throwable =>
        if (made != null) made.kill()
        if (!error.isInstanceOf[InterruptedException]) synchronized(later())
        throw error
    } finally synchronized {
      starting -= 1
      notifyAll()
    }
  }

  def hear(plans: Seq[String]): Unit = synchronized(all.foreach(_.hear(plans)))

  def giveBack(worker: Worker): Unit = synchronized {
    failures = 0
    if (closed || !worker.isReady) forget(worker) else idle.push(worker)
    notifyAll()
  }

  def failed(worker: Worker): Unit = synchronized {
    forget(worker)
    later()
    notifyAll()
  }

  private def forget(worker: Worker): Unit = {
    all -= worker
    worker.kill()
  }

  /** The first failure may be bad luck; from the second on the next start has to wait. */
  private def later(): Unit = {
    if (failures > 0) {
      val seconds = math.min(WorkerPool.LongestPause, 1L << math.min(failures - 1, 20))
      notBefore = System.nanoTime + TimeUnit.SECONDS.toNanos(seconds)
    } else notBefore = System.nanoTime
    failures += 1
  }

  def close(): Unit = {
    val ending = synchronized {
      closed = true
      idle.clear()
      val workers = all.toList
      all.clear()
      notifyAll()
      workers
    }
    ending.foreach(_.close())
  }
}

private[pyjoinopt] object WorkerPool {
  private val Patience = 50L
  private val LongestPause = 300L
}
