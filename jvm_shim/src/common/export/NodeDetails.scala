package org.apache.spark.sql.pyjoinopt

import com.fasterxml.jackson.core.JsonGenerator

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, IntegerLiteral}
import org.apache.spark.sql.catalyst.plans.{ExistenceJoin, JoinType}
import org.apache.spark.sql.catalyst.plans.logical._

/**
 * Exports details of some kinds of plan nodes beyond children, output and expressions.
 *
 * Law: nodes are matched by type and read by accessor, never by constructor pattern: the constructors of many nodes
 * gain an argument with each version of Spark, the accessors remain.
 */
private[pyjoinopt] final class NodeDetails(
    attributes: AttributeTable,
    expressionNumber: Expression => Int,
    out: JsonGenerator,
    keep: Join => Option[String] = _ => None,
    hidden: Project => Seq[Attribute] = _ => Nil) {

  def write(node: LogicalPlan): Unit = node match {
    case join: Join => writeJoin(join)
    case filter: Filter => out.writeNumberField("cond", expressionNumber(filter.condition))
    case project: Project =>
      numbers("list", project.projectList)
      val columnsBelow = hidden(project)
      if (columnsBelow.nonEmpty) columns("hidden", columnsBelow)
    case aggregate: Aggregate =>
      numbers("group", aggregate.groupingExpressions)
      numbers("agg", aggregate.aggregateExpressions)
    case alias: SubqueryAlias => out.writeStringField("name", alias.alias)
    case view: View =>
      out.writeStringField("name", view.desc.identifier.unquotedString)
      out.writeBooleanField("temp", view.isTempView)
    case hint: ResolvedHint => out.writeStringField("hint", HintInfos.name(Some(hint.hints)))
    case hint: UnresolvedHint => out.writeStringField("name", hint.name)
    case limit: GlobalLimit => writeLimit(limit.limitExpr)
    case limit: LocalLimit => writeLimit(limit.limitExpr)
    case sample: Sample =>
      out.writeNumberField("fraction", sample.upperBound - sample.lowerBound)
      out.writeBooleanField("replacement", sample.withReplacement)
    case union: Union =>
      out.writeBooleanField("byName", union.byName)
      out.writeBooleanField("allowMissing", union.allowMissingCol)
    case deduplicate: Deduplicate =>
      columns("keys", deduplicate.keys)
    case operation: Intersect => out.writeBooleanField("all", operation.isAll)
    case operation: Except => out.writeBooleanField("all", operation.isAll)
    case definition: CTERelationDef => out.writeNumberField("cte", definition.id)
    case reference: CTERelationRef => out.writeNumberField("cte", reference.cteId)
    case generate: Generate =>
      out.writeNumberField("generator", expressionNumber(generate.generator))
      columns("generated", generate.generatorOutput)
      counts("unrequired", generate.unrequiredChildIndex)
      out.writeBooleanField("outer", generate.outer)
      writeReads(node)
    case expand: Expand =>
      out.writeArrayFieldStart("projections")
      expand.projections.foreach(projection => listed(projection))
      out.writeEndArray()
      writeReads(node)
    case window: Window =>
      counts("parts", Seq(window.windowExpressions.size, window.partitionSpec.size, window.orderSpec.size))
      writeReads(node)
    case sort: Sort => out.writeBooleanField("global", sort.global)
    case other if other.children.nonEmpty => writeReads(other)
    case _ =>
  }

  /** The columns that a node reads, if Spark defines them otherwise than by the node's expressions. */
  private def writeReads(node: LogicalPlan): Unit = {
    val reads = Support.attempt(Set.empty[Int])(node.references.iterator.map(attributes.number).toSet)
    val seen = Support.attempt(Set.empty[Int])(node.expressions.flatMap(_.references).map(attributes.number).toSet)
    if (reads != seen) counts("reads", reads.toSeq.sorted)
  }

  private def writeJoin(join: Join): Unit = {
    out.writeStringField("t", Support.className(join.joinType))
    out.writeFieldName("cond")
    join.condition.fold(out.writeNull())(c => out.writeNumber(expressionNumber(c)))
    out.writeArrayFieldStart("hint")
    val hints = Seq(join.hint.leftHint, join.hint.rightHint).map(HintInfos.name)
    val mark = if (hints.forall(_ == null)) keep(join) else None
    mark.fold(hints)(Seq(_, null)).foreach(out.writeString)
    out.writeEndArray()
    if (PredicateSubqueries.predicateOf(join).isDefined) out.writeBooleanField("early", true)
    join.joinType match {
      case existence: ExistenceJoin => out.writeNumberField("exists", attributes.number(existence.exists))
      case _ =>
    }
  }

  private def writeLimit(limit: Expression): Unit = {
    out.writeFieldName("limit")
    limit match {
      case IntegerLiteral(rows) => out.writeNumber(rows)
      case _ => out.writeNull()
    }
  }

  private def columns(field: String, listed: Iterable[Attribute]): Unit = {
    out.writeArrayFieldStart(field)
    listed.foreach(attribute => out.writeNumber(attributes.number(attribute)))
    out.writeEndArray()
  }

  private def numbers(field: String, expressions: Iterable[Expression]): Unit = {
    out.writeFieldName(field)
    listed(expressions)
  }

  private def listed(expressions: Iterable[Expression]): Unit = {
    out.writeStartArray()
    expressions.foreach(e => out.writeNumber(expressionNumber(e)))
    out.writeEndArray()
  }

  private def counts(field: String, values: Iterable[Int]): Unit = {
    out.writeArrayFieldStart(field)
    values.foreach(out.writeNumber(_: Int))
    out.writeEndArray()
  }
}

private[pyjoinopt] object NodeDetails {

  private val strategies: Map[String, JoinStrategyHint] =
    (JoinStrategyHint.strategies + NO_BROADCAST_HASH).map(s => Support.className(s) -> s).toMap

  /** Marks of joins that must not be moved, because of a hint or for lack of one. They are no hints to Spark. */
  val Keep = "KEEP_JOIN_ORDER"
  val NotRequested = "NOT_ASKED"

  /** The hint with a name: a strategy, or the hint of a node of the plan. */
  def hint(name: String, nodes: Iterable[LogicalPlan]): HintInfo =
    if (name == Keep || name == NotRequested) HintInfos.empty
    else strategies.get(name).map(strategy => HintInfos.of(Some(strategy)))
      .orElse(HintInfos.named(name, nodes))
      .getOrElse(Support.fail(
        s"There is no join strategy $name; there are ${strategies.keys.toSeq.sorted.mkString(", ")}."))

  def joinType(name: String): JoinType = {
    import org.apache.spark.sql.catalyst.plans._
    name match {
      case "Inner" => Inner
      case "Cross" => Cross
      case "LeftOuter" => LeftOuter
      case "RightOuter" => RightOuter
      case "FullOuter" => FullOuter
      case "LeftSemi" => LeftSemi
      case "LeftAnti" => LeftAnti
      case other => Support.fail(s"A join of type $other cannot be made, only copied.")
    }
  }
}
