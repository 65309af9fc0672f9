package org.apache.spark.sql.pyjoinopt

import java.util.WeakHashMap

/**
 * How many of its queries a session with `spark.pyjoinopt.feedback=auto` records: so many that recording takes 1 % of
 * the time of its queries.
 *
 * {{{
 *   query 1   30 s      nothing has run yet: not recorded
 *   query 2   30 s      300 ms earned: recorded, in 6 ms
 *   then      200 ms    2 ms earned each: recorded while something is left of the 300 ms, then every third
 * }}}
 *
 * A query earns the time from its start to its end, whether it has joins or not. What recording takes is the time of the
 * listener, of the guard, and of the worker that learns from what it gets, though queries wait only for the guard.
 *
 * Law: what is spent exceeds what is earned by the cost of the recordings that are not yet accounted for, and of the
 * guard, at most.
 */
private[pyjoinopt] final class FeedbackBudget {
  private var earned = 0.0
  private var spent = 0.0
  private var recorded = 0L

  /** A query has run for so long. */
  def earn(nanos: Long): Unit = synchronized(earned += FeedbackBudget.Share * nanos)

  /** Recording, or the guard, has taken so long. A session that has spent too much pays back a few recordings at most. */
  def spend(nanos: Double): Unit = synchronized {
    spent = math.min(spent + nanos, earned + FeedbackBudget.MostOwed)
  }

  /** Whether one more query is recorded; if so, it counts as recorded. */
  def takeOne(): Boolean = synchronized {
    val cost = if (recorded == 0) FeedbackBudget.FirstCost else math.min(spent / recorded, FeedbackBudget.MostOwed)
    val affordable = earned >= spent + cost
    if (affordable) recorded += 1
    affordable
  }
}

private[pyjoinopt] object FeedbackBudget {
  private val Share = 0.01

  /** What the first recording is expected to take (nanoseconds): it creates tables in the store. */
  private val FirstCost = 20e6

  /** So much may be spent in advance (nanoseconds): a query of 20 s earns it. */
  private val MostOwed = 200e6

  private val budgets = new WeakHashMap[Compat.Session, FeedbackBudget]

  def of(session: Compat.Session): FeedbackBudget =
    budgets.synchronized(budgets.computeIfAbsent(session, _ => new FeedbackBudget))
}
