package org.apache.spark.sql.pyjoinopt

import java.util.{Locale, WeakHashMap}
import java.util.concurrent.atomic.AtomicLong

import org.apache.spark.SparkContext
import org.apache.spark.sql.catalyst.QueryPlanningTracker
import org.apache.spark.sql.execution.{QueryExecution, SQLExecution}
import org.apache.spark.sql.util.QueryExecutionListener

/** What is recorded of queries that ended, as JSON; None if nothing is. */
private[pyjoinopt] trait EndedQueries {

  /** @param function the action that ran the query, such as collect */
  def succeeded(function: String, execution: QueryExecution, nanos: Long): Option[String]
  def failed(execution: QueryExecution, error: Exception): Option[String]

  /** A query was recorded. */
  def recorded(): Unit

  /** What recording may take in a session; None for any time. */
  def budget(session: Compat.Session): Option[FeedbackBudget] = None
}

/**
 * Spark's listener of one session: records queries that ended.
 *
 * Laws: a query never waits for the listener and never fails because of it. Only the last few queries are kept, as
 * text. They are kept when their session ends.
 */
private[pyjoinopt] final class Feedback(ended: EndedQueries, budget: Option[FeedbackBudget], record: String => Unit)
    extends QueryExecutionListener {
  override def onSuccess(function: String, execution: QueryExecution, nanos: Long): Unit = Support.attempt(()) {
    val started = System.nanoTime
    budget.foreach(_.earn(nanos))
    ended.succeeded(function, execution, nanos).foreach { query =>
      record(query)
      budget.foreach(_.spend((System.nanoTime - started).toDouble))
    }
  }

  override def onFailure(function: String, execution: QueryExecution, error: Exception): Unit =
    Support.attempt(())(ended.failed(execution, error).foreach(record))
}

/** The listeners of all sessions for one purpose, and the queries that they recorded. */
private[pyjoinopt] final class Listeners(ended: EndedQueries) {
  private val listeners = new WeakHashMap[Compat.Session, Feedback]
  private val queries = new RecentQueries

  /** Add a listener to a session, unless it has one. */
  def listen(session: Compat.Session): Unit = listeners.synchronized {
    if (!listeners.containsKey(session)) {
      val listener = new Feedback(
        ended,
        ended.budget(session),
        query => {
          queries.add(query)
          ended.recorded()
        })
      session.listenerManager.register(listener)
      listeners.put(session, listener)
    }
  }

  /** Remove the listener of a session. */
  def stop(session: Compat.Session): Unit = listeners.synchronized {
    Option(listeners.remove(session)).foreach(session.listenerManager.unregister(_))
  }

  /** The queries of all sessions that ended since the last call. */
  def take(): Seq[String] = queries.take()
}

private[pyjoinopt] object Feedback {

  /**
   * For DataFrames that a driver optimised by calls: each query with its operators. The first run of a DataFrame's own
   * query has its number, too, and its times if it can be compared with others.
   */
  val ofCalls = new Listeners(new EndedQueries {
    override def succeeded(function: String, execution: QueryExecution, nanos: Long): Option[String] = {
      val number = takeNumber(execution.tracker)
      ExecutedPlan.json(execution).map { operators =>
        val timed = if (function == Iterates) "" else s"${times(execution, nanos)},"
        s"""{${number.fold("")(query => s""""query":$query,$timed""")}"operators":$operators}"""
      }
    }

    override def failed(execution: QueryExecution, error: Exception): Option[String] =
      takeNumber(execution.tracker).map(query => s"""{"query":$query,${failure(execution, error)}"operators":[]}""")

    override def recorded(): Unit = () // Python takes them
  })

  private val calls = new WeakHashMap[QueryPlanningTracker, Option[Long]]

  /**
   * A number for the first run of a DataFrame's own query; None if it may have run before, since later runs reuse
   * results of its stages, and if the rule of its session plans it once more.
   */
  def expectRun(session: Compat.Session, execution: QueryExecution): Option[Long] = calls.synchronized {
    val tracker = execution.tracker
    val hasRun = calls.containsKey(tracker) || tracker.phases.contains(QueryPlanningTracker.PLANNING)
    if (hasRun || PyJoinOptExtensions.ruleOf(session).exists(_.enabled)) None
    else {
      val number = Some(last.incrementAndGet())
      calls.put(tracker, number)
      RunningQueries.watch(session.sparkContext, tracker)
      number
    }
  }

  /** The number of a query that ends for the first time. */
  private def takeNumber(tracker: QueryPlanningTracker): Option[Long] =
    calls.synchronized(if (calls.containsKey(tracker)) calls.put(tracker, None) else None)
      .filter(_ => numbered(tracker).isEmpty)

  /** For the workers: each query that was planned under a number, with its times and operators. */
  val ofSessions = new Listeners(new EndedQueries {
    override def succeeded(function: String, execution: QueryExecution, nanos: Long): Option[String] =
      for {
        planned <- numbered(execution.tracker) if planned.record
        operators <- ExecutedPlan.json(execution)
      } yield {
        val timed = if (function == Iterates) "" else s"${times(execution, nanos)},"
        s"""{"query":${planned.query},"parts":${planned.part},$timed"operators":$operators}"""
      }

    override def failed(execution: QueryExecution, error: Exception): Option[String] =
      numbered(execution.tracker).filter(planned => planned.record || isOutOfMemory(error)).map { planned =>
        s"""{"query":${planned.query},"parts":${planned.part},${failure(execution, error)}"operators":[]}"""
      }

    override def recorded(): Unit = Workers.deliverFeedback()

    override def budget(session: Compat.Session): Option[FeedbackBudget] = Some(FeedbackBudget.of(session))
  })

  /**
   * When the query ended (seconds since the epoch), how long it, its planning, our part of that and its tasks took, and
   * the time that its longest task took more than others of its stage (seconds). Planning is part of the first of these
   * times. If the query was planned before its execution, as by EXPLAIN or in a Thrift server, it is not, and counts as 0.
   */
  private def times(execution: QueryExecution, nanos: Long): String = {
    val planning = if (numbered(execution.tracker).exists(_.before)) 0L
    else execution.tracker.phases.filter { case (name, _) =>
      name == QueryPlanningTracker.OPTIMIZATION || name == QueryPlanningTracker.PLANNING
    }.values.map(_.durationMs).sum
    val tasks = RunningQueries.tasksOf(execution.tracker).fold("") { times =>
      s""","taskSeconds":${times.milliseconds / 1e3},"skew":${times.skew / 1e3}"""
    }
    val ours = s""","ours":${secondsOfOurs(execution.tracker)}"""
    s""""ended":${System.currentTimeMillis / 1e3},"seconds":${nanos / 1e9},"planning":${planning / 1e3}$ours$tasks"""
  }

  /** Times of a query that ran out of memory. Another one that failed, or was cancelled, has none: it has had its first run. */
  private def failure(execution: QueryExecution, error: Throwable): String =
    if (isOutOfMemory(error)) s"""${times(execution, 0)},"failed":"memory",""" else ""

  /** An action that ends before its rows are read. */
  private val Iterates = "toLocalIterator"

  /** How Spark and cluster managers say that an operator needed more memory than there is. */
  private val memoryErrors = Seq(
    "outofmemoryerror",
    "not enough memory to build and broadcast",
    "cannot broadcast the table",
    "exceeding memory limits",
    "exceeding physical memory limits")

  private def isOutOfMemory(error: Throwable): Boolean =
    Iterator.iterate(error)(_.getCause).takeWhile(_ != null).take(MostCauses).exists { cause =>
      val text = s"${cause.getClass.getName} ${cause.getMessage}".toLowerCase(Locale.ROOT)
      memoryErrors.exists(text.contains(_))
    }

  private val MostCauses = 20

  /**
   * The number of a query, and how many of its plans were sent to workers: those of subqueries come first.
   *
   * @param record whether its run is recorded, if it succeeds
   * @param nanos that our rule took for these plans during the query's execution
   * @param before whether it was planned before its execution
   */
  final case class Numbered(query: Long, part: Int, record: Boolean, nanos: Long = 0, before: Boolean = false)

  private val numbers = new WeakHashMap[QueryPlanningTracker, Numbered]
  private val last = new AtomicLong

  /** Our rule took so long for a plan of the query that this thread plans. */
  def planned(context: SparkContext, nanos: Long): Unit = QueryPlanningTracker.get.foreach { tracker =>
    val before = context.getLocalProperty(SQLExecution.EXECUTION_ID_KEY) == null
    numbers.synchronized {
      Option(numbers.get(tracker)).foreach { found =>
        val added = if (before) found.copy(before = true) else found.copy(nanos = found.nanos + nanos)
        numbers.put(tracker, added)
      }
    }
  }

  /** What our rule took for the plans of a query that has a number. */
  def secondsOfOurs(tracker: QueryPlanningTracker): Double = numbered(tracker).fold(0.0)(_.nanos / 1e9)

  private def numbered(tracker: QueryPlanningTracker): Option[Numbered] =
    numbers.synchronized(Option(numbers.get(tracker)))

  /**
   * The number of the query that this thread plans, and of this plan of it. It belongs to the query's tracker, which
   * Spark passes from planning to the listeners. Columns cannot identify a query: two queries over one view have the
   * same.
   *
   * @param record whether a query that begins is recorded
   */
  def nextPlanOfThisQuery(record: => Boolean): Option[Numbered] = QueryPlanningTracker.get.map { tracker =>
    numbers.synchronized {
      val before = Option(numbers.get(tracker)).getOrElse(Numbered(last.incrementAndGet(), 0, record))
      val next = before.copy(part = before.part + 1)
      numbers.put(tracker, next)
      next
    }
  }
}
