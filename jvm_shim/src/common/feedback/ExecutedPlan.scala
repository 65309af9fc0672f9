package org.apache.spark.sql.pyjoinopt

import java.util.IdentityHashMap

import com.fasterxml.jackson.core.JsonGenerator

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BloomFilterMightContain, DynamicPruning, Expression}
import org.apache.spark.sql.catalyst.plans.ExistenceJoin
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanExec, QueryStageExec}
import org.apache.spark.sql.execution.exchange.{Exchange, ReusedExchangeExec}
import org.apache.spark.sql.execution.joins.{BaseJoinExec, HashJoin, SortMergeJoinExec}
import org.apache.spark.sql.execution.metric.SQLMetric

/**
 * The executed physical plan of a query with Spark's own metrics, as JSON.
 *
 * Wrappers (adaptive execution, its stages, code generation) are skipped, so that the result is one tree of operators,
 * in post-order:
 *
 *  - `c` is the class, `k` the numbers of the children;
 *  - `t` describes the operator, for people;
 *  - `m` are the metrics that are not 0, and the number of rows; times in milliseconds;
 *  - `o` are the ids of a leaf's columns, as in the analysed plan;
 *  - `limited`: it may have ended early, because a limit above it was reached;
 *  - `reduced`: a runtime filter removed rows that the written query keeps here, or it replaces operators that were not
 *    run;
 *  - `marks`: an existence join, which keeps all rows of its left side.
 *
 * Law: only `run` runs a plan, and a plan that has not run to its end has no result.
 */
private[pyjoinopt] object ExecutedPlan {

  /** The operators of a query; None if it has not run. */
  def json(execution: QueryExecution): Option[String] = {
    val plan = execution.executedPlan
    if (hasRun(plan)) Some(Support.json(write(_, bare(plan)))) else None
  }

  /**
   * Run a new query of the same plan to its end, without keeping rows: its operators and times. It is planned inside
   * its execution, as any query, so that listeners get the same times.
   */
  def run(session: Compat.Session, plan: LogicalPlan): String = {
    val started = System.nanoTime
    val execution = Compat.ofRows(session, plan).queryExecution
    var planned = started
    SQLExecution.withNewExecutionId(execution, Some("pyjoinopt analyze")) {
      val physical = execution.executedPlan
      planned = System.nanoTime
      physical.execute().foreachPartition((rows: Iterator[InternalRow]) => rows.foreach(_ => ()))
    }
    val ended = System.nanoTime
    Support.json { out =>
      out.writeStartObject()
      out.writeNumberField("planning", (planned - started) / 1e9)
      out.writeNumberField("seconds", (ended - started) / 1e9)
      out.writeNumberField("ours", Feedback.secondsOfOurs(execution.tracker))
      out.writeFieldName("operators")
      write(out, bare(execution.executedPlan))
      out.writeEndObject()
    }
  }

  /** Whether a plan has run: an adaptive plan has a flag, of another plan some metric must not be 0. */
  private def hasRun(plan: SparkPlan): Boolean = plan match {
    case adaptive: AdaptiveSparkPlanExec => adaptive.isFinalPlan
    case other =>
      var ran = false
      Support.preOrder(bare(other))(children) { node => ran ||= node.metrics.values.exists(_.value > 0); !ran }
      ran
  }

  /** The operator inside wrappers; an adaptive plan that is not final is returned itself. */
  private def bare(plan: SparkPlan): SparkPlan = bare(plan, running = false)

  /** @param running whether an adaptive plan that is not final counts as what it is now */
  def bare(plan: SparkPlan, running: Boolean): SparkPlan = {
    var inner = plan
    var wrapped = true
    while (wrapped) inner = inner match {
      case adaptive: AdaptiveSparkPlanExec if running || adaptive.isFinalPlan => adaptive.executedPlan
      case stage: QueryStageExec => stage.plan
      case codegen: WholeStageCodegenExec => codegen.child
      case input: InputAdapter => input.child
      case other => wrapped = false; other
    }
    inner
  }

  private def children(plan: SparkPlan): Seq[SparkPlan] = plan.children.map(bare)

  private def write(out: JsonGenerator, root: SparkPlan): Unit = {
    val limited = earlyEnders(root)
    val numbers = new IdentityHashMap[SparkPlan, Int]
    out.writeStartArray()
    Support.postOrder(root)(children, numbers.containsKey) { node =>
      numbers.put(node, numbers.size)
      out.writeStartObject()
      out.writeStringField("c", Support.className(node).stripSuffix("Exec"))
      out.writeArrayFieldStart("k")
      children(node).foreach(child => out.writeNumber(numbers.get(child)))
      out.writeEndArray()
      writeMetrics(out, node)
      if (node.children.isEmpty) {
        out.writeArrayFieldStart("o")
        node.output.foreach(attribute => out.writeNumber(attribute.exprId.id))
        out.writeEndArray()
      }
      detail(node).foreach(text => out.writeStringField("t", Support.cut(text)))
      if (limited.containsKey(node)) out.writeBooleanField("limited", true)
      if (isReduced(node)) out.writeBooleanField("reduced", true)
      if (marks(node)) out.writeBooleanField("marks", true)
      out.writeEndObject()
    }
    out.writeEndArray()
  }

  /** An existence join keeps all rows and marks those with a match; the filter above it drops the others. */
  def marks(node: SparkPlan): Boolean = node match {
    case join: BaseJoinExec => join.joinType.isInstanceOf[ExistenceJoin]
    case _ => false
  }

  /** A description for people: the keys of a join, the condition of a filter, the name of a table. */
  private def detail(node: SparkPlan): Option[String] = Support.attempt(Option.empty[String])(node match {
    case scan: FileSourceScanExec => Some(tableName(scan))
    case filter: FilterExec => Some(filter.condition.sql)
    case join: HashJoin =>
      val side = join.buildSide.toString.stripPrefix("Build").toLowerCase
      Some(s"${equalities(join.leftKeys, join.rightKeys)}, build $side")
    case join: SortMergeJoinExec => Some(equalities(join.leftKeys, join.rightKeys))
    case join: BaseJoinExec => join.condition.map(_.sql)
    case _ => None
  })

  private def tableName(scan: FileSourceScanExec): String =
    scan.tableIdentifier.map(_.table).orElse(scan.relation.location.rootPaths.headOption.map(_.getName)).getOrElse("")

  private def equalities(left: Seq[Expression], right: Seq[Expression]): String =
    left.zip(right).map { case (a, b) => s"${a.sql} = ${b.sql}" }.mkString(" AND ")

  private def writeMetrics(out: JsonGenerator, node: SparkPlan): Unit = {
    val counted = node match {
      case reused: ReusedExchangeExec => reused.child.metrics
      case other => other.metrics
    }
    out.writeObjectFieldStart("m")
    counted.foreach { case (name, metric) =>
      if (metric.value > 0 || name == Rows) {
        val nanos = metric.metricType == "nsTiming"
        out.writeNumberField(name, if (nanos) metric.value / 1000000 else metric.value)
      }
    }
    out.writeEndObject()
  }

  /**
   * The rows that the operators of a plan have counted, by the ids of their metrics. The next execution of the same plan
   * sets the metrics to 0, so they are read when this one has ended.
   */
  def counts(plan: SparkPlan): Map[Long, Long] = {
    val seen = new IdentityHashMap[SparkPlan, Option[SQLMetric]]
    Support.postOrder(bare(plan))(children, seen.containsKey)(node => seen.put(node, node.metrics.get(Rows)))
    seen.values.toArray(Array.empty[Option[SQLMetric]]).flatten.map(metric => metric.id -> metric.value).toMap
  }

  /** Whether all inputs of a plan were read: each has counted a row. One that was not read has 0 rows, too. */
  def isRead(plan: SparkPlan, counts: Map[Long, Long]): Boolean = {
    val seen = new IdentityHashMap[SparkPlan, Boolean]
    var read = true
    Support.postOrder(bare(plan))(children, seen.containsKey) { node =>
      seen.put(node, true)
      if (node.children.isEmpty) read &&= node.metrics.get(Rows).exists(metric => counts.getOrElse(metric.id, 0L) > 0)
    }
    read
  }

  /** Whether an operator of a plan that has ended may have ended early, because a limit above it was reached. */
  def limited(plan: SparkPlan): SparkPlan => Boolean = earlyEnders(bare(plan)).containsKey(_)

  /** The operators below a limit, unless an operator in between reads all of its input first. */
  private def earlyEnders(root: SparkPlan): IdentityHashMap[SparkPlan, SparkPlan] = {
    val found = new IdentityHashMap[SparkPlan, SparkPlan]
    Support.preOrder(root)(children) { node =>
      if (node.isInstanceOf[LimitExec] || (found.containsKey(node) && !readsAll(node)))
        children(node).foreach(child => found.put(child, child))
      true
    }
    found
  }

  private def readsAll(node: SparkPlan): Boolean = node match {
    case _: Exchange | _: SortExec => true
    case _ => Support.className(node).contains("Aggregate")
  }

  def isReduced(node: SparkPlan): Boolean = node match {
    case reused: ReusedExchangeExec => leaves(reused.child) != 1
    case _ if node.children.isEmpty && standsForOthers(Support.className(node)) => true
    case _ => node.expressions.exists(madeAtRunTime)
  }

  val Rows = "numOutputRows"

  private def standsForOthers(leaf: String): Boolean = leaf == "EmptyRelationExec" || leaf == "LocalTableScanExec"

  private def leaves(plan: SparkPlan): Int = {
    var count = 0
    Support.preOrder(bare(plan))(children) { node =>
      if (node.children.isEmpty) count += (if (isReduced(node)) 2 else 1)
      true
    }
    count
  }

  private def madeAtRunTime(expression: Expression): Boolean =
    expression.exists(e => e.isInstanceOf[DynamicPruning] || e.isInstanceOf[BloomFilterMightContain])
}
