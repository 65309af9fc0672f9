package org.apache.spark.sql.pyjoinopt

import java.util.{Collections, WeakHashMap}

import org.apache.spark.sql.SparkSessionExtensions

/**
 * The door for whole sessions: `spark.sql.extensions=org.apache.spark.sql.pyjoinopt.PyJoinOptExtensions`.
 *
 * Every query's joins are ordered just before Spark's own cost-based rules, when filters are where they belong. The
 * hints OPTIMIZE_JOINS and KEEP_JOIN_ORDER are understood, and two SQL functions tell what is going on.
 *
 * Law: with `spark.pyjoinopt.enabled` set to false it is as if it were not there, hints aside.
 */
class PyJoinOptExtensions extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit = {
    PyJoinOptExtensions.inject(extensions, enabled = true)
    Prestart.ofApplication()
  }
}

private[pyjoinopt] object PyJoinOptExtensions {

  /** Add the rules; `enabled` is what counts in sessions that do not set the key. */
  def inject(extensions: SparkSessionExtensions, enabled: Boolean): Unit = {
    extensions.injectPreCBORule(session => new OptimizeJoins(Compat.ours(session), enabled))
    extensions.injectResolutionRule(_ => ResolveJoinOrderHints)
    extensions.injectOptimizerRule(_ => TakeHintScopes)
    extensions.injectTableFunction(SessionReports.function)
    extensions.injectFunction(SessionReports.version)
    UnknownKeys.ofApplication()
  }

  /**
   * Add the rules to a session that runs already, once. Spark asks for the rules of its optimizer with every query, but
   * for those of its analyser only once a session.
   */
  def into(session: Compat.Session): Unit = synchronized {
    if (ruleOf(session).isEmpty) inject(session.extensions, enabled = false)
    if (told.add(session)) {
      val functions = new SparkSessionExtensions
      functions.injectTableFunction(SessionReports.function)
      functions.injectFunction(SessionReports.version)
      functions.registerTableFunctions(session.sessionState.tableFunctionRegistry)
      functions.registerFunctions(session.sessionState.functionRegistry)
      LiveHints.into(session)
    }
  }

  /** Live sessions that know our functions. */
  private val told = Collections.newSetFromMap(new WeakHashMap[Compat.Session, java.lang.Boolean])

  /** The rule of this session, if its extensions have it. */
  def ruleOf(session: Compat.Session): Option[OptimizeJoins] =
    session.extensions.buildPreCBORules(session).collectFirst { case rule: OptimizeJoins => rule }
}
