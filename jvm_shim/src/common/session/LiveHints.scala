package org.apache.spark.sql.pyjoinopt

import org.apache.spark.sql.catalyst.analysis.Analyzer
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule

/**
 * Makes a session understand our hints that has analysed queries before.
 *
 * A session's analyser is made once, and holds the rules of extensions in a field that it reads again with every query.
 * Nothing but reflection gets one more rule into that field.
 *
 * Law: where that is not to be had, the session stays as it is, and drops the hints as it drops all that it does not know.
 */
private[pyjoinopt] object LiveHints {
  private val Field = "extendedResolutionRules"

  def into(session: Compat.Session): Unit = {
    val analyzer = session.sessionState.analyzer
    if (!knows(analyzer)) {
      Support.attempt(())(extend(analyzer))
      if (!knows(analyzer)) {
        OptimizeJoins.log.warn("The hints OPTIMIZE_JOINS and KEEP_JOIN_ORDER are ignored in this session, which has " +
          "analysed queries before: use spark.newSession(), or df.optimize_joins().")
      }
    }
  }

  private def knows(analyzer: Analyzer): Boolean = analyzer.extendedResolutionRules.contains(ResolveJoinOrderHints)

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
