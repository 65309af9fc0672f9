package org.apache.spark.sql.pyjoinopt

import org.apache.spark.sql.catalyst.analysis.Analyzer
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule

/**
 * Adds pyjoinopt's hints to a session that has analysed queries before.
 *
 * A session's analyser is created once. It has the rules of extensions in a field that it reads for every query, and
 * only reflection can add a rule to that field.
 *
 * Law: if reflection fails, the session is not changed, and drops these hints like all unknown ones.
 */
private[pyjoinopt] object LiveHints {
  private val Field = "extendedResolutionRules"

  def into(session: Compat.Session): Unit = {
    val analyzer = session.sessionState.analyzer
    if (!hasHints(analyzer)) {
      Support.attempt(())(extend(analyzer))
      if (!hasHints(analyzer)) {
        OptimizeJoins.log.warn("The hints OPTIMIZE_JOINS and KEEP_JOIN_ORDER are ignored in this session, which has " +
          "analysed queries before: use spark.newSession(), or df.optimize_joins().")
      }
    }
  }

  private def hasHints(analyzer: Analyzer): Boolean = analyzer.extendedResolutionRules.contains(ResolveJoinOrderHints)

  private def extend(analyzer: Analyzer): Unit = {
    val rules: Seq[Rule[LogicalPlan]] = analyzer.extendedResolutionRules :+ ResolveJoinOrderHints
    val fields = Iterator.iterate[Class[_]](analyzer.getClass)(_.getSuperclass).takeWhile(_ != null)
      .flatMap(_.getDeclaredFields).filter(_.getName == Field).toList
    fields.foreach { field =>
      field.setAccessible(true)
      field.set(analyzer, rules)
    }
  }
}
