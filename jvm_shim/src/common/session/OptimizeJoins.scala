package org.apache.spark.sql.pyjoinopt

import java.util.ArrayDeque

import scala.util.control.NonFatal

import org.slf4j.LoggerFactory

import org.apache.spark.sql.catalyst.plans.{FullOuter, LeftOuter, RightOuter}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.JOIN
import org.apache.spark.sql.execution.command.DataWritingCommand

/**
 * The optimizer rule of the session extension: sends a plan with several joins to a worker and replaces it by the
 * result.
 *
 * It runs in Spark's batch before the cost-based rules: aliases and views are removed, cached data is in place, and
 * filters are pushed down. Spark optimises the plan of a subquery separately, before the enclosing query, so this rule
 * gets subqueries as plans of their own and does not enter them from above.
 *
 * Laws: a query never fails because of this rule; on an error it logs one WARN and returns the plan unchanged. A plan
 * with fewer than three relations and no outer join is returned unchanged without a worker, unless it reads large files,
 * for which a hint may be worth it; and so is a query that is planned while another is planned. Of a command only the query that it writes is optimised.
 */
private[pyjoinopt] final class OptimizeJoins(session: Compat.Session, enabledByDefault: Boolean)
    extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = {
    val result = ordered(plan)
    if (!plan.isInstanceOf[Subquery] && !OptimizeJoins.inside.get) PlanLog.write(session)
    result
  }

  private def ordered(plan: LogicalPlan): LogicalPlan = {
    val hints = TakeHintScopes.ofThisPlan()
    if (!OptimizeJoins.hasJoins(plan) || OptimizeJoins.inside.get || plan.isStreaming || isOff) plan
    else plan match {
      case subquery: Subquery => around(subquery, hints)
      case writing: DataWritingCommand => around(writing, hints)
      case writing: V2WriteCommand if RowLevelSources.isRowLevel(writing) =>
        RowLevelSources.rewritten(writing)(optimized(_, hints, Some(writing)))
      case writing: V2WriteCommand => around(writing, hints)
      case _: Command => plan
      case query => optimized(query, hints)
    }
  }

  /** Whether every query of this session is optimised. */
  def enabled: Boolean = ApplicationSettings.setting(session, OptimizeJoins.Enabled)
    .getOrElse(enabledByDefault.toString).trim.equalsIgnoreCase("true")

  /** Whether nothing is planned, whatever hints request. */
  private def isOff: Boolean =
    RuleOfThread.isOff(session) || ApplicationSettings.setting(session, OptimizeJoins.Mode).exists(_.trim == "off")

  private def around(node: LogicalPlan, hints: List[TakeHintScopes.Taken]): LogicalPlan = {
    val before = node.children
    val writer = Some(node).filter(!_.isInstanceOf[Subquery])
    val after = before.map(optimized(_, hints, writer))
    if (before.zip(after).forall { case (a, b) => a eq b }) node else node.withNewChildren(after)
  }

  /** @param writer the command that writes the rows of the query */
  private def optimized(
      query: LogicalPlan,
      taken: List[TakeHintScopes.Taken],
      writer: Option[LogicalPlan] = None): LogicalPlan =
    if (!OptimizeJoins.isCandidate(query)) query
    else {
      if (!enabled && !new JoinOrderHints(query, taken).anyToOptimize) query
      else {
        OptimizeJoins.inside.set(true)
        val started = System.nanoTime
        PlanEvents.begin(session.sparkContext)
        try {
          PlanMetrics.seen.inc()
          new PlanningRequest(session, query, taken, everything = enabled, writer).run()
        } catch {
          case NonFatal(error) => fallBack(query, error, started)
          case error @ (_: LinkageError | _: StackOverflowError) => fallBack(query, error, started)
        } finally {
          OptimizeJoins.inside.set(false)
          Feedback.planned(session.sparkContext, System.nanoTime - started)
          PlanEvents.end("cancelled") // unless it has ended
        }
      }
    }

  private def fallBack(query: LogicalPlan, error: Throwable, started: Long): LogicalPlan = {
    Support.attempt(())(PlanMetrics.count("failed"))
    Support.attempt(())(PlanLog.add(PlanEnd("failed", (System.nanoTime - started) / 1000000)))
    Workers.warnOnce(String.valueOf(error.getMessage), error)
    query
  }
}

private[pyjoinopt] object OptimizeJoins {
  val Enabled = "spark.pyjoinopt.enabled"
  private val Mode = "spark.pyjoinopt.mode"
  val log = LoggerFactory.getLogger("org.apache.spark.sql.pyjoinopt")

  private val inside = new ThreadLocal[Boolean] {
    override def initialValue(): Boolean = false
  }

  /** Whether a plan has a join, or a subquery that becomes one. */
  private def hasJoins(plan: LogicalPlan): Boolean = plan.containsPattern(JOIN) || PredicateSubqueries.contains(plan)

  /** The size of the files of two relations whose join may be worth a hint (bytes); `plan_statistics.py` has it, too. */
  private val LargePair = 64L << 20

  /** Whether a query has three relations or more, or an outer join, or large files, and no command inside. */
  private def isCandidate(query: LogicalPlan): Boolean = {
    val waiting = new ArrayDeque[LogicalPlan]
    waiting.push(query)
    var (joins, outer, command) = (0, false, false)
    while (!waiting.isEmpty && !command) {
      waiting.pop() match {
        case _: Command => command = true
        case node if hasJoins(node) =>
          node match {
            case filter: Filter => joins += PredicateSubqueries.count(filter)
            case join: Join =>
              joins += 1
              outer ||= join.joinType == LeftOuter || join.joinType == RightOuter || join.joinType == FullOuter
            case _ =>
          }
          node.children.foreach(waiting.push)
        case _ =>
      }
    }
    !command && (joins > 1 || outer || joins == 1 && InputSize.ofListedFiles(query) >= LargePair)
  }
}
