package org.apache.spark.sql.pyjoinopt

import org.apache.spark.sql.{SparkSession, SparkSessionExtensions}

/**
 * The door for whole sessions: `spark.sql.extensions=org.apache.spark.sql.pyjoinopt.PyJoinOptExtensions`.
 *
 * Every query's joins are ordered just before Spark's own cost-based rules, when filters are where they belong. The
 * hints OPTIMIZE_JOINS and KEEP_JOIN_ORDER are understood, and two SQL functions tell what is going on.
 *
 * Law: with `spark.pyjoinopt.enabled` set to false it is as if it were not there, hints aside.
 */
class PyJoinOptExtensions extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit = PyJoinOptExtensions.inject(extensions, enabled = true)
}

private[pyjoinopt] object PyJoinOptExtensions {

  /** Add the rules; `enabled` is what counts in sessions that do not set the key. */
  def inject(extensions: SparkSessionExtensions, enabled: Boolean): Unit = {
    extensions.injectPreCBORule(session => new OptimizeJoins(Compat.ours(session), enabled))
    extensions.injectPostHocResolutionRule(_ => ResolveOptimizeHints)
    extensions.injectTableFunction(SessionReports.function)
    extensions.injectFunction(SessionReports.version)
  }

  /** The rule of this session, if its extensions have it. */
  def ruleOf(session: Compat.Session): Option[OptimizeJoins] =
    session.extensions.buildPreCBORules(session).collectFirst { case rule: OptimizeJoins => rule }
}
