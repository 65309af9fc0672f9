package org.apache.spark.sql.pyjoinopt

import java.util.{Collections, WeakHashMap}

import org.apache.spark.sql.SparkSessionExtensions

/**
 * The extension for whole sessions: `spark.sql.extensions=org.apache.spark.sql.pyjoinopt.PyJoinOptExtensions`.
 *
 * It orders the joins of every query just before Spark's own cost-based rules, after filters have been pushed down. It
 * also adds the hints OPTIMIZE_JOINS and KEEP_JOIN_ORDER and the SQL functions joinopt_report, joinopt_queries,
 * joinopt_baselines and joinopt_version.
 *
 * Law: with `spark.pyjoinopt.enabled` set to false it has no effect except for hints.
 */
class PyJoinOptExtensions extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit = {
    PyJoinOptExtensions.inject(extensions, enabled = true)
    JoinOrdersTab.ofApplication()
    Prestart.ofApplication()
  }
}

private[pyjoinopt] object PyJoinOptExtensions {

  private val tableFunctions = SessionReports.function +: StoreFunctions.all

  /** Add the rules; `enabled` is the default of `spark.pyjoinopt.enabled`. */
  def inject(extensions: SparkSessionExtensions, enabled: Boolean): Unit = {
    extensions.injectPreCBORule(session => new OptimizeJoins(Compat.ours(session), enabled))
    extensions.injectResolutionRule(_ => ResolveJoinOrderHints)
    extensions.injectOptimizerRule(_ => TakeHintScopes)
    tableFunctions.foreach(extensions.injectTableFunction)
    extensions.injectFunction(SessionReports.version)
    UnknownKeys.ofApplication()
  }

  /**
   * Add the rules to a running session, once. Spark reads the optimizer rules of extensions for every query, but the
   * analyser rules only once a session.
   */
  def into(session: Compat.Session): Unit = synchronized {
    if (ruleOf(session).isEmpty) inject(session.extensions, enabled = false)
    if (extended.add(session)) {
      val functions = new SparkSessionExtensions
      tableFunctions.foreach(functions.injectTableFunction)
      functions.injectFunction(SessionReports.version)
      functions.registerTableFunctions(session.sessionState.tableFunctionRegistry)
      functions.registerFunctions(session.sessionState.functionRegistry)
      LiveHints.into(session)
      JoinOrdersTab.attach(session.sparkContext)
    }
  }

  /** Running sessions to which functions and hints have been added. */
  private val extended = Collections.newSetFromMap(new WeakHashMap[Compat.Session, java.lang.Boolean])

  /** The rule of this session; None if its extensions lack it. */
  def ruleOf(session: Compat.Session): Option[OptimizeJoins] =
    session.extensions.buildPreCBORules(session).collectFirst { case rule: OptimizeJoins => rule }
}
