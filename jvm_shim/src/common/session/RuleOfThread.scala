package org.apache.spark.sql.pyjoinopt

/**
 * What the session's rule does with the queries that this thread plans. `compare`, `tune` and `explain_joins` run plans
 * as they are, in sessions whose rule would change them.
 *
 * A local property belongs to one thread, so queries of other threads are planned as usual, and no setting changes.
 */
private[pyjoinopt] object RuleOfThread {

  /** `bridge/rule_of_thread.py` sets it. */
  private val Property = "pyjoinopt.rule"

  /** Nothing is planned. */
  private val Off = "off"

  /** Nothing is changed; if the session records runs, these are recorded as runs of the query as written. */
  private val Written = "written"

  def isOff(session: Compat.Session): Boolean = property(session) match {
    case Off => true
    case Written => !PlanningRequest.records(session)
    case _ => false
  }

  /** The mode of the queries of this thread, if one is given. */
  def mode(session: Compat.Session): Option[String] = property(session) match {
    case Written => Some("report")
    case _ => None
  }

  private def property(session: Compat.Session): String =
    Option(session.sparkContext.getLocalProperty(Property)).getOrElse("")
}
