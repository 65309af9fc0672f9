package org.apache.spark.sql.pyjoinopt

import java.util.IdentityHashMap

import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.catalyst.analysis.MultiInstanceRelation
import org.apache.spark.sql.catalyst.expressions.{
  Alias,
  Attribute,
  AttributeReference,
  EqualTo,
  Expression,
  NamedExpression,
  Not,
  ReplicateRows,
  WindowExpression
}
import org.apache.spark.sql.catalyst.plans.{ExistenceJoin, LeftAnti, LeftSemi}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.pyjoinopt.SkipAnalysis
import org.apache.spark.sql.catalyst.util._
import org.apache.spark.sql.execution.dynamicpruning.PartitionPruning
import org.apache.spark.sql.types.BooleanType

/**
 * Builds the plan that a list of edits describes, over the numbered nodes of an export.
 *
 * Laws: nodes without edits remain the same objects, so Spark's analyser, cache and statistics find them. A copied node
 * keeps its tags, except the tag by which `df["a"]` finds columns by position if their positions have changed. The
 * nullability of columns in an expression of the export is updated for its new place. A plan becomes a DataFrame only
 * after PlanChecks.
 */
private[pyjoinopt] final class PlanRebuilder(handle: Handle, edits: JsonNode) {

  private val outputs = new RebuiltOutputs(handle)
  private val columns = new RebuiltColumns(outputs)
  private val exported = new IdentityHashMap[LogicalPlan, LogicalPlan]
  handle.nodes.foreach(node => exported.put(node, node))
  private val expressions: EditList[Expression] =
    new EditList[Expression]("expression", edits.get("exprs"), handle.expressions)(expressionBuilder.build(_))
  private val nodes: EditList[LogicalPlan] = new EditList[LogicalPlan]("node", edits.get("nodes"), handle.nodes)(built)
  private lazy val expressionBuilder = new ExpressionBuilder(handle, expressions(_), nodes(_))

  /** The plan of `root`, not yet analysed. */
  def plan(root: JsonNode = edits.get("root")): LogicalPlan = {
    EditList.buildAll(expressions, nodes)
    nodes(root)
  }

  def dataset(): Compat.Rows = {
    val rebuilt = CommonTableIds.renewed(handle.session, plan(), exported.containsKey(_))
    val checks = new PlanChecks(handle, outputs, columns)
    checks.before(rebuilt)
    val dataset =
      try Compat.ofRows(handle.session, SkipAnalysis(rebuilt))
      catch {
        case NonFatal(error) =>
          throw new PyJoinOptShimException(s"Spark refuses the plan: ${error.getMessage}", error)
        case error: StackOverflowError =>
          throw new PyJoinOptShimException("The plan is too deep for Spark's analyser: start Java with -Xss16m.", error)
      }
    checks.after(dataset.queryExecution.analyzed, mayWiden = edits.path("mayWiden").asBoolean(false))
    TrialPlanning.ofAnalysed(handle.session, dataset.queryExecution.analyzed)
    PredicateSubqueries.forget(dataset.queryExecution.analyzed)
    dataset
  }

  /** The plan that replaces the exported one in a running optimizer: with the same checks, but without a new query. */
  def optimizing(): LogicalPlan = {
    val rebuilt = plan()
    val checks = new PlanChecks(handle, outputs, columns)
    checks.before(rebuilt)
    checks.afterOptimizing(rebuilt)
    TrialPlanning.ofOptimizing(rebuilt)
    rebuilt
  }

  private def built(entry: JsonNode): LogicalPlan = {
    val bare = build(entry)
    val node = if (exported.containsKey(bare)) bare else columns.refreshed(bare)
    outputs(node)
    node
  }

  private def build(entry: JsonNode): LogicalPlan = {
    def node(i: Int): LogicalPlan = nodes(entry.get(i))
    def expression(i: Int): Expression = expressions(entry.get(i))
    def optional(i: Int): Option[Expression] = if (absent(entry.path(i))) None else Some(expression(i))
    entry.path(0).asText match {
      case "Join" =>
        val (left, right) = (hint(entry.path(5).path(0)), hint(entry.path(5).path(1)))
        val condition = optional(4).map(expressionBuilder.current(_, Seq(node(1), node(2))))
        val join = Join(node(1), node(2), NodeDetails.joinType(entry.path(3).asText), condition, JoinHint(left, right))
        if (entry.path(6).asBoolean(false) && !prunesPartitions(join)) pinned(join) else join
      case "Subquery" =>
        val predicate = Some(node(2)).collect { case join: Join => join }.flatMap(PredicateSubqueries.predicateOf)
        Filter(predicate.getOrElse(Support.fail(s"${node(2).nodeName} was no subquery")), node(1))
      case "JoinLike" =>
        node(1) match {
          case join: Join =>
            val joinType = if (absent(entry.path(4))) join.joinType else NodeDetails.joinType(entry.path(4).asText)
            val hints =
              if (absent(entry.path(6))) join.hint
              else JoinHint(hint(entry.path(6).path(0)), hint(entry.path(6).path(1)))
            tagged(join, Join(node(2), node(3), joinType, optional(5), hints))
          case other => Support.fail(s"${other.nodeName} is no join")
        }
      case "Filter" => Filter(expressionBuilder.current(expression(2), Seq(node(1))), node(1))
      case "Project" => hiding(Project(named(entry.get(2), node(1)), node(1)), entry.path(3))
      case "Output" => output(node(1), node(2))
      case "Copy" => copy(node(1), ExpressionBuilder.elements(entry.get(2)).map(nodes(_)))
      case "Exprs" =>
        val children = ExpressionBuilder.elements(entry.get(2)).map(nodes(_))
        val pairs = ExpressionBuilder.elements(entry.get(3)).map(p => expressions(p.get(0)) -> expressions(p.get(1)))
        val original = node(1)
        tagged(original, replace(copy(original, children), pairs))
      case "MightContain" =>
        val column = expressionBuilder.current(expression(3), Seq(node(1)))
        BloomFilters.filter(node(1), column, node(2), entry.path(4).asLong)
      case "Distinct" => Distinct(node(1))
      case "Union" => Union(ExpressionBuilder.elements(entry.get(1)).map(nodes(_)))
      case "LocalLimit" => LocalLimit(expression(2), node(1))
      case "GlobalLimit" => GlobalLimit(expression(2), node(1))
      case "Aggregate" => aggregate(entry, node(1))
      case "ReplicateRows" =>
        val columns = ExpressionBuilder.elements(entry.get(3)).map(expressionBuilder.column)
        val put = columns.map(c => expressionBuilder.current(c, Seq(node(1))).asInstanceOf[Attribute])
        Generate(ReplicateRows(current(entry.get(2), node(1))), Nil, outer = false, None, put, node(1))
      case "Again" =>
        node(1) match {
          case relation: MultiInstanceRelation =>
            val another = relation.newInstance()
            expressionBuilder.defineAll(ExpressionBuilder.elements(entry.get(2)).map(_.asInt), another.output)
            another
          case other => Support.fail(s"${other.nodeName} cannot be read again")
        }
      case "Columns" =>
        narrowed(node(1), ExpressionBuilder.elements(entry.get(2)).map(n => handle.attribute(n.asInt(-1))))
      case "NewWindow" =>
        named(entry.get(2), node(1)) match {
          case calls @ Alias(first: WindowExpression, _) :: _ =>
            new Window(calls, first.windowSpec.partitionSpec, Nil, node(1))
          case _ => Support.fail("A window has no function")
        }
      case "Window" =>
        node(2) match {
          case window: Window =>
            tagged(window, window.copy(windowExpressions = named(entry.get(3), node(1)), child = node(1)))
          case other => Support.fail(s"${other.nodeName} is no window")
        }
      case "Expand" =>
        node(2) match {
          case expand: Expand =>
            val projections = ExpressionBuilder.elements(entry.get(3)).map(current(_, node(1)))
            val below = node(1).output.map(a => a.exprId -> a).toMap
            val output = ExpressionBuilder.elements(entry.get(4)).map(expressionBuilder.column).map { column =>
              expand.output.find(_.exprId == column.exprId).getOrElse(below.getOrElse(column.exprId, column))
            }
            tagged(expand, expand.copy(projections = projections, output = output, child = node(1)))
          case other => Support.fail(s"${other.nodeName} is no expand")
        }
      case "Generate" =>
        node(2) match {
          case generate: Generate =>
            val unrequired = ExpressionBuilder.elements(entry.get(3)).map(_.asInt)
            tagged(generate, generate.copy(unrequiredChildIndex = unrequired, child = node(1)))
          case other => Support.fail(s"${other.nodeName} is no generate")
        }
      case other => Support.fail(s"There is no kind of node $other")
    }
  }

  /** A semi or anti join as an existence join with a filter, which no rule of Spark's moves. */
  private def pinned(join: Join): LogicalPlan = {
    val exists = AttributeReference("exists", BooleanType, nullable = false)()
    val predicate = join.joinType match {
      case LeftSemi => exists
      case LeftAnti => Not(exists)
      case other => Support.fail(s"A join of type $other cannot be pinned")
    }
    Project(join.left.output, Filter(predicate, join.copy(joinType = ExistenceJoin(exists))))
  }

  /** Whether Spark may prune partitions of the left side by keys of the right one; not with an existence join. */
  private def prunesPartitions(join: Join): Boolean = join.condition.exists(_.exists {
    case EqualTo(one, other) =>
      Seq(one, other).exists(key =>
        key.references.nonEmpty && key.references.subsetOf(join.left.outputSet) &&
          PartitionPruning.getFilterableTableScan(key, join.left).isDefined)
    case _ => false
  })

  /** A reference to a common table expression with fewer columns, like its new definition. */
  private def narrowed(node: LogicalPlan, columns: List[Attribute]): LogicalPlan = node match {
    case reference: CTERelationRef =>
      val kept = columns.map(_.exprId).toSet
      val output = reference.output.filter(a => kept(a.exprId))
      val arguments = reference.productIterator.map(a => if (a == reference.output) output else a)
      reference.makeCopy(arguments.map(_.asInstanceOf[AnyRef]).toArray)
    case other => Support.fail(s"${other.nodeName} refers to no common table expression")
  }

  /** A new aggregate, or a copy of the numbered one, with this grouping and these result expressions. */
  private def aggregate(entry: JsonNode, child: LogicalPlan): LogicalPlan = {
    val (grouping, result) = (current(entry.get(2), child), named(entry.get(3), child))
    if (absent(entry.path(4))) Aggregate(grouping, result, child)
    else
      nodes(entry.get(4)) match {
        case old: Aggregate =>
          tagged(old, old.copy(groupingExpressions = grouping, aggregateExpressions = result, child = child))
        case other => Support.fail(s"${other.nodeName} is no aggregate")
      }
  }

  private def current(list: JsonNode, child: LogicalPlan): List[Expression] =
    ExpressionBuilder.elements(list).map(e => expressionBuilder.current(expressions(e), Seq(child)))

  private def absent(value: JsonNode): Boolean = value.isMissingNode || value.isNull

  private def hint(name: JsonNode): Option[HintInfo] =
    if (absent(name)) None else Some(NodeDetails.hint(name.asText, handle.nodes))

  private def named(list: JsonNode, child: LogicalPlan): List[NamedExpression] = {
    val listed = current(list, child)
    lazy val columns = child.output.map(a => a.exprId -> a).toMap
    listed.map {
      case attribute: Attribute => columns.getOrElse(attribute.exprId, attribute)
      case named: NamedExpression => named
      case other => Support.fail(s"${other.nodeName} has no name, so it cannot be a column")
    }
  }

  /** Restores the columns that a join with USING hides: `b["k"]` finds them, `*` does not. */
  private def hiding(project: Project, numbers: JsonNode): Project = {
    val ids = ExpressionBuilder.elements(numbers).map(n => handle.attribute(n.asInt(-1)).exprId).toSet
    val hidden = project.child.output.filter(a => ids(a.exprId)).map(_.markAsQualifiedAccessOnly())
    if (hidden.nonEmpty) project.setTagValue(Project.hiddenOutputTag, hidden)
    project
  }

  /** `child`, under a projection to the output of `original` if the outputs differ. */
  private def output(child: LogicalPlan, original: LogicalPlan): LogicalPlan = {
    val columns = original.output
    def same(a: Attribute, b: Attribute): Boolean =
      a.exprId == b.exprId && a.name == b.name && a.qualifier == b.qualifier && a.dataType == b.dataType &&
        a.nullable == b.nullable && a.metadata == b.metadata
    val present = child.output
    if (present.length == columns.length && present.zip(columns).forall { case (a, b) => same(a, b) }) child
    else {
      val project = Project(columns, child)
      original.getTagValue(Compat.datasetIdTag).foreach(ids => project.setTagValue(Compat.datasetIdTag, ids.clone()))
      project
    }
  }

  private def copy(node: LogicalPlan, children: List[LogicalPlan]): LogicalPlan =
    if (children.length != node.children.length)
      Support.fail(s"${node.nodeName} has ${node.children.length} children, not ${children.length}")
    else tagged(node, node.withNewChildren(children))

  private def replace(node: LogicalPlan, pairs: Seq[(Expression, Expression)]): LogicalPlan = {
    val replacements = new IdentityHashMap[Expression, Expression]
    pairs.foreach { case (old, changed) => replacements.put(old, changed) }
    val used = new IdentityHashMap[Expression, Expression]
    val changed = node.mapExpressions { e =>
      val replacement = replacements.get(e)
      if (replacement == null) e
      else {
        used.put(e, e)
        replacement
      }
    }
    if (used.size != replacements.size) Support.fail(s"${node.nodeName} does not hold all of these expressions")
    changed
  }

  /** Copies the tags. Spark adds to the set of DataFrame ids and shares it with copies; here a copy gets its own. */
  private def tagged(original: LogicalPlan, changed: LogicalPlan): LogicalPlan = {
    if (changed ne original) {
      changed.copyTagsFrom(original)
      changed.getTagValue(Compat.datasetIdTag).foreach { ids =>
        val same = outputs.same(changed, original)
        if (same) changed.setTagValue(Compat.datasetIdTag, ids.clone()) else changed.unsetTagValue(Compat.datasetIdTag)
      }
    }
    changed
  }
}
