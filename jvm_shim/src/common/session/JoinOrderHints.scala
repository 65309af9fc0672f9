package org.apache.spark.sql.pyjoinopt

import java.lang.ref.WeakReference
import java.util.{IdentityHashMap, Locale}

import scala.collection.mutable

import org.apache.spark.sql.catalyst.QueryPlanningTracker
import org.apache.spark.sql.catalyst.analysis.{UnresolvedAttribute, UnresolvedHaving}
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, ExprId, Literal, OuterReference}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.{OUTER_REFERENCE, TreePattern, UNRESOLVED_HINT}

/**
 * A hint on a part of the query: optimise it, with a strategy or by a baseline if the hint names one, or keep its join
 * order. The author of the hint can find the report of the query by a mark.
 */
private[pyjoinopt] sealed abstract class JoinOrderHint(val name: String)
private[pyjoinopt] final case class Optimize(
    strategy: Option[String],
    baseline: Option[String],
    mark: Option[String])
    extends JoinOrderHint("OPTIMIZE_JOINS")
private[pyjoinopt] case object KeepOrder extends JoinOrderHint("KEEP_JOIN_ORDER")

/**
 * The place of a hint in the analysed plan. Its tree pattern is that of Spark's own hints: plans without hints are
 * skipped.
 */
private[pyjoinopt] final case class HintScope(hint: JoinOrderHint, child: LogicalPlan) extends UnaryNode {
  override def output: Seq[Attribute] = child.output
  override def maxRows: Option[Long] = child.maxRows
  final override val nodePatterns: Seq[TreePattern] = Seq(UNRESOLVED_HINT)
  override protected def withNewChildInternal(changed: LogicalPlan): HintScope = copy(child = changed)
}

/**
 * Resolves OPTIMIZE_JOINS and KEEP_JOIN_ORDER to a node of the plan: a DataFrame's hint to a node on top of it, a hint
 * in SQL to a node just above the FROM clause, because Spark resolves names across adjacent clauses of a SELECT.
 *
 * Laws: the plan below the node is unchanged, so cached data is found. An invalid parameter causes one warning, never
 * an error. Outer references are never below the node: Spark pulls them out of a subquery only through nodes of its
 * own.
 */
private[pyjoinopt] object ResolveJoinOrderHints extends Rule[LogicalPlan] {
  private val names = Set("OPTIMIZE_JOINS", "KEEP_JOIN_ORDER")
  private val strategies = Seq("auto", "spark", "heuristic", "none")
  private val Mark = "mark="
  private val Baseline = "baseline="
  private val BaselineName = "[A-Za-z0-9_][A-Za-z0-9_.-]*"
  private val BaselineNames = s"$BaselineName(,$BaselineName)*"

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (!plan.containsPattern(UNRESOLVED_HINT)) plan
    else plan.resolveOperatorsUp {
      case hint: UnresolvedHint if names(name(hint)) =>
        val meant = if (name(hint) == "KEEP_JOIN_ORDER") keep(hint) else optimize(hint)
        scoped(meant, hint.child)
      case scope: HintScope if isCorrelated(scope.child) => lowered(scope)
    }

  /** The plan with the node moved below outer references; without the node if both sides of a join have them. */
  private def lowered(scope: HintScope): LogicalPlan = {
    var above = List.empty[LogicalPlan]
    var node = scope.child
    while (isCorrelated(node) && node.children.size == 1) {
      above ::= node
      node = node.children.head
    }
    val below =
      if (!isCorrelated(node)) HintScope(scope.hint, node)
      else {
        OptimizeJoins.log.warn(s"The hint ${scope.hint.name} is ignored where joins refer to the query further out.")
        node
      }
    above.foldLeft(below)(over)
  }

  private def isCorrelated(plan: LogicalPlan): Boolean = plan.containsPattern(OUTER_REFERENCE) && {
    var found = false
    Support.preOrder(plan)(_.children) { node =>
      found ||= node.expressions.exists(_.exists(_.isInstanceOf[OuterReference]))
      !found && node.containsPattern(OUTER_REFERENCE)
    }
    found
  }

  private def over(below: LogicalPlan, node: LogicalPlan): LogicalPlan = {
    val changed = node.withNewChildren(Seq(below))
    changed.copyTagsFrom(node)
    changed
  }

  /** The node below the clauses of a SELECT that was just parsed; an analysed plan is not taken apart. */
  private def scoped(hint: JoinOrderHint, child: LogicalPlan): LogicalPlan = {
    var clauses = List.empty[LogicalPlan]
    var node = child
    while (isClause(node)) {
      clauses ::= node
      node = node.children.head
    }
    val inside = if (node.resolved && node.isStreaming) node else HintScope(hint, node)
    clauses.foldLeft(inside)(over)
  }

  private def isClause(node: LogicalPlan): Boolean = !node.analyzed &&
    node.getTagValue(LogicalPlan.PLAN_ID_TAG).isEmpty && (node match {
      case _: Project | _: Filter | _: Aggregate | _: Distinct | _: Generate | _: Window | _: UnresolvedHaving |
          _: WithWindowDefinition | _: UnresolvedHint | _: ResolvedHint => true
      case _ => false
    })

  private def name(hint: UnresolvedHint): String = hint.name.toUpperCase(Locale.ROOT)

  private def keep(hint: UnresolvedHint): JoinOrderHint = {
    if (hint.parameters.nonEmpty) warn(hint, "takes no parameters; they are ignored")
    KeepOrder
  }

  private def optimize(hint: UnresolvedHint): Optimize = {
    val (marks, unmarked) = hint.parameters.map(word).toList.partition(_.startsWith(Mark))
    val (baselines, words) = unmarked.partition(_.toLowerCase(Locale.ROOT).startsWith(Baseline))
    val named = baselines.map(_.substring(Baseline.length).trim)
    val (usable, others) = named.partition(_.matches(BaselineNames))
    if (others.nonEmpty || usable.size > 1)
      warn(
        hint,
        s"takes names of baselines as baseline=NAME, not (${named.mkString(", ")})" +
          usable.headOption.fold("")(name => s"; $name is used"))
    val known = words.map(_.toLowerCase(Locale.ROOT)).filter(strategies.contains)
    if (known.length != words.length || known.length > 1) {
      warn(
        hint,
        s"takes one of ${strategies.mkString(", ")}, not (${words.mkString(", ")}); " +
          known.headOption.fold("it counts without a strategy")(s => s"$s is used")
      )
    }
    Optimize(known.headOption, usable.headOption, marks.headOption.map(_.substring(Mark.length)))
  }

  /** A parameter as text: in SQL a word is parsed as the name of a column, df.hint passes a string. */
  private def word(parameter: Any): String = parameter match {
    case name: UnresolvedAttribute => name.name
    case Literal(value, _) => String.valueOf(value)
    case expression: Expression => expression.sql
    case other => String.valueOf(other)
  }

  private def warn(hint: UnresolvedHint, text: String): Unit =
    OptimizeJoins.log.warn(s"The hint ${name(hint)} $text.")
}

/**
 * Removes these nodes, early in the optimizer, so that filters and limits move as without them.
 *
 * Between this rule and OptimizeJoins nearly every node is copied, and information on nodes is lost. So a hint is bound
 * to the columns below it, whose ids remain the same. Other queries over the same view have columns with the same ids. So
 * the hint is bound to the thread, too, and to the query by Spark's tracker of it: a query may be planned while another
 * is planned in the same thread, and a query that fails leaves its hints behind.
 */
private[pyjoinopt] object TakeHintScopes extends Rule[LogicalPlan] {
  final case class Taken(hint: JoinOrderHint, columns: Set[ExprId])

  private final case class Waiting(query: WeakReference[AnyRef], taken: Taken)

  private val waiting = new ThreadLocal[List[Waiting]] {
    override def initialValue(): List[Waiting] = Nil
  }

  private object NoQuery

  private def query: AnyRef = QueryPlanningTracker.get.getOrElse(NoQuery)

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (!plan.containsPattern(UNRESOLVED_HINT)) plan
    else plan.transformUp { case scope: HintScope =>
      waiting.set(waiting.get :+ Waiting(new WeakReference(query), Taken(scope.hint, columns(scope.child))))
      scope.child
    }

  /** The hints of the plan that this thread optimises, inner hints first. They are removed here. */
  def ofThisPlan(): List[Taken] = {
    val all = waiting.get
    if (all.isEmpty) Nil
    else {
      val now = query
      val (ours, others) = all.partition(_.query.get eq now)
      val alive = others.filter(_.query.get != null)
      if (alive.isEmpty) waiting.remove() else waiting.set(alive)
      ours.map(_.taken)
    }
  }

  private def columns(plan: LogicalPlan): Set[ExprId] = {
    val ids = new mutable.HashSet[ExprId]
    Support.preOrder(plan)(CachedPlans.parts) { node =>
      Support.attempt(())(node.output.foreach(ids += _.exprId))
      true
    }
    ids.toSet
  }
}

/** Finds the joins of one plan that are under a hint: those all of whose leaves are below it. */
private[pyjoinopt] final class JoinOrderHints(query: LogicalPlan, taken: List[TakeHintScopes.Taken]) {
  private val hints = new IdentityHashMap[Join, TakeHintScopes.Taken]

  if (taken.nonEmpty) {
    val common = new IdentityHashMap[LogicalPlan, Option[TakeHintScopes.Taken]]
    Support.postOrder(query)(_.children, common.containsKey) { node =>
      val found =
        if (node.children.isEmpty) taken.find(t => node.output.exists(a => t.columns(a.exprId)))
        else shared(node.children.flatMap(child => common.get(child)).toList, node.children.size)
      common.put(node, found)
      node match {
        case join: Join => found.foreach(hints.put(join, _))
        case _ =>
      }
    }
  }

  /**
   * The hint of all sides of a node. If one is under an inner hint and another under a hint around both, the outer one.
   */
  private def shared(below: List[TakeHintScopes.Taken], sides: Int): Option[TakeHintScopes.Taken] =
    if (below.length < sides) None
    else below.distinct match {
      case List(one) => Some(one)
      case several =>
        val outer = several.maxBy(_.columns.size)
        if (several.forall(_.columns.subsetOf(outer.columns))) Some(outer) else None
    }

  def isKept(join: Join): Boolean = hintOf(join).contains(KeepOrder)

  def isToOptimize(join: Join): Boolean = hintOf(join).exists(_.isInstanceOf[Optimize])

  private def hintOf(join: Join): Option[JoinOrderHint] = Option(hints.get(join)).map(_.hint)

  lazy val anyToOptimize: Boolean = {
    var any = false
    hints.values.forEach(t => any ||= t.hint.isInstanceOf[Optimize])
    any
  }
}

private[pyjoinopt] object JoinOrderHints {

  /** The strategy of the hints; if several name one, that of the outermost. */
  def strategy(taken: List[TakeHintScopes.Taken]): Option[String] =
    taken.map(_.hint).collect { case Optimize(Some(name), _, _) => name }.lastOption

  /** The baselines of the hints, the innermost first. */
  def baselines(taken: List[TakeHintScopes.Taken]): List[String] =
    taken.map(_.hint).collect { case Optimize(_, Some(name), _) => name }.distinct

  /** The marks of the hints, by which joinopt_report finds the report. */
  def marks(taken: List[TakeHintScopes.Taken]): List[String] =
    taken.map(_.hint).collect { case Optimize(_, _, Some(mark)) => mark }

  /** For an analysed plan, in which hints are nodes: a function from a join to its mark if its order must be kept. */
  def keptBelowScopes(plan: LogicalPlan): Join => Option[String] = {
    val kept = new IdentityHashMap[LogicalPlan, LogicalPlan]
    Support.preOrder(plan)(_.children) { node =>
      node match {
        case HintScope(KeepOrder, _) => Support.preOrder(node)(_.children) { below => kept.put(below, below); true }
        case _ =>
      }
      true
    }
    join => if (kept.containsKey(join)) Some(NodeDetails.Keep) else None
  }
}
