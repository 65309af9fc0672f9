package org.apache.spark.sql.pyjoinopt

import java.util.{IdentityHashMap, Locale, WeakHashMap}

import scala.collection.mutable

import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute
import org.apache.spark.sql.catalyst.expressions.{Expression, ExprId, Literal, SubqueryExpression}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.{PLAN_EXPRESSION, UNRESOLVED_HINT}

/** What a hint asks for: this part of the query to be optimised, with a strategy if one is named, or to be left. */
private[pyjoinopt] sealed trait JoinOrderHint
private[pyjoinopt] final case class Optimize(strategy: Option[String]) extends JoinOrderHint
private[pyjoinopt] case object KeepOrder extends JoinOrderHint

/**
 * Takes OPTIMIZE_JOINS and KEEP_JOIN_ORDER out of a query and remembers what they stood over.
 *
 * Between this rule and the optimizer's nearly every node is made anew, and whatever is tied to a node is lost. So a
 * hint is tied to the columns below it, whose ids last.
 *
 * Laws: the plan without the hint is the plan that the query would have without it, so cached data is found as ever.
 * What is remembered goes when the plan goes. A parameter that is not understood costs one warning.
 */
private[pyjoinopt] object ResolveOptimizeHints extends Rule[LogicalPlan] {
  private val strategies = Seq("auto", "spark", "heuristic", "none")

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (!plan.containsPattern(UNRESOLVED_HINT)) plan
    else plan.resolveOperatorsUp {
      case hint: UnresolvedHint if hint.child.resolved && names(hint.name.toUpperCase(Locale.ROOT)) =>
        hint.name.toUpperCase(Locale.ROOT) match {
          case "KEEP_JOIN_ORDER" =>
            if (hint.parameters.nonEmpty) warn(hint, "takes no parameters; they are ignored")
            JoinOrderHints.remember(hint.child, KeepOrder)
          case _ => JoinOrderHints.remember(hint.child, Optimize(strategy(hint)))
        }
        hint.child
    }

  private val names = Set("OPTIMIZE_JOINS", "KEEP_JOIN_ORDER")

  private def strategy(hint: UnresolvedHint): Option[String] = {
    val words = hint.parameters.map(word).toList
    val known = words.map(_.toLowerCase(Locale.ROOT)).filter(strategies.contains)
    if (known.length != words.length || known.length > 1) {
      warn(hint, s"takes one of ${strategies.mkString(", ")}, not (${words.mkString(", ")}); " +
        known.headOption.fold("it counts without a strategy")(s => s"$s is used"))
    }
    known.headOption
  }

  /** In SQL a word arrives as the name of a column, from df.hint as a string. */
  private def word(parameter: Any): String = parameter match {
    case name: UnresolvedAttribute => name.name
    case Literal(value, _) => String.valueOf(value)
    case expression: Expression => expression.sql
    case other => String.valueOf(other)
  }

  private def warn(hint: UnresolvedHint, text: String): Unit =
    OptimizeJoins.log.warn(s"The hint ${hint.name.toUpperCase(Locale.ROOT)} $text.")
}

/** Which joins of one plan stand under a hint. */
private[pyjoinopt] final class JoinOrderHints(query: LogicalPlan) {
  private val hints = new IdentityHashMap[Join, JoinOrderHint]
  // What each node's leaves have in common: None if nothing.
  private val common = new IdentityHashMap[LogicalPlan, Option[JoinOrderHint]]

  Support.postOrder(query)(_.children, common.containsKey) { node =>
    val found =
      if (node.children.isEmpty) JoinOrderHints.over(node)
      else {
        val below = node.children.map(common.get).distinct
        if (below.length == 1) below.head else None
      }
    common.put(node, found)
    node match {
      case join: Join => found.foreach(hints.put(join, _))
      case _ =>
    }
  }

  def isKept(join: Join): Boolean = hints.get(join) == KeepOrder

  def isToOptimize(join: Join): Boolean = hints.get(join).isInstanceOf[Optimize]

  val anyToOptimize: Boolean = !hints.isEmpty && {
    var found = false
    hints.values.forEach(hint => found ||= hint.isInstanceOf[Optimize])
    found
  }

  /** The strategy that a hint names; of several the one of the outermost join. */
  def strategy: Option[String] = {
    var found: Option[String] = None
    if (!hints.isEmpty) {
      query.foreach {
        case join: Join if found.isEmpty => hints.get(join) match {
          case Optimize(named) => found = named
          case _ =>
        }
        case _ =>
      }
    }
    found
  }
}

private[pyjoinopt] object JoinOrderHints {
  private val remembered = new WeakHashMap[ExprId, JoinOrderHint]

  def of(query: LogicalPlan): JoinOrderHints = new JoinOrderHints(query)

  /** Tie a hint to all columns that come up below it, in subqueries too; a hint further inside keeps its own. */
  def remember(plan: LogicalPlan, hint: JoinOrderHint): Unit = {
    val ids = new mutable.ArrayBuffer[ExprId]
    Support.preOrder(plan)(parts) { node =>
      Support.attempt(())(node.output.foreach(ids += _.exprId))
      true
    }
    remembered.synchronized(ids.foreach(remembered.putIfAbsent(_, hint)))
  }

  private def parts(node: LogicalPlan): Iterable[LogicalPlan] =
    if (!node.containsPattern(PLAN_EXPRESSION)) node.children
    else node.children ++ node.expressions.flatMap(_.collect { case s: SubqueryExpression => s.plan })

  private def over(leaf: LogicalPlan): Option[JoinOrderHint] = remembered.synchronized {
    if (remembered.isEmpty) None
    else leaf.output.iterator.map(a => remembered.get(a.exprId)).find(_ != null)
  }
}
