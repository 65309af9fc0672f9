package org.apache.spark.sql.pyjoinopt

import java.util.IdentityHashMap

import scala.collection.mutable

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{
  AggregateExpression,
  AggregateFunction,
  Complete,
  Count,
  Max,
  Sum
}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.types.{BooleanType, DecimalType}

/**
 * Builds the new expressions of an edit message. All others are referred to by number and are not changed.
 *
 * Law: an alias keeps its id and name, an attribute is that of the child's output, and a subquery keeps its output
 * columns.
 */
private[pyjoinopt] final class ExpressionBuilder(
    handle: Handle,
    expression: JsonNode => Expression,
    plan: JsonNode => LogicalPlan) {

  def build(entry: JsonNode): Expression = {
    def at(i: Int): Expression = expression(entry.get(i))
    def all(i: Int): List[Expression] = ExpressionBuilder.elements(entry.get(i)).map(expression)
    entry.path(0).asText match {
      case "And" => And(at(1), at(2))
      case "Or" => Or(at(1), at(2))
      case "Not" => Not(at(1))
      case "EqualTo" => EqualTo(at(1), at(2))
      case "EqualNullSafe" => EqualNullSafe(at(1), at(2))
      case "LessThan" => LessThan(at(1), at(2))
      case "LessThanOrEqual" => LessThanOrEqual(at(1), at(2))
      case "GreaterThan" => GreaterThan(at(1), at(2))
      case "GreaterThanOrEqual" => GreaterThanOrEqual(at(1), at(2))
      case "IsNotNull" => IsNotNull(at(1))
      case "IsNull" => IsNull(at(1))
      case "Coalesce" => Coalesce(if (entry.path(1).isArray) all(1) else (1 until entry.size).map(at).toList)
      case "True" => Literal.TrueLiteral
      case "False" => Literal.FalseLiteral
      case "Literal" => literal(entry.path(1).asText, entry.path(2))
      case "If" => If(at(1), at(2), at(3))
      case "Add" => new Add(at(1), at(2)) // its default arguments are of different types in 4.0 and 4.3
      case "Sum" => new Sum(at(1))
      case "Count" => Count(at(1))
      case "Max" => Max(at(1))
      case "Times" => RepeatedValue(at(1), at(2))
      case "UnscaledValue" => UnscaledValue(at(1))
      case "MakeDecimal" =>
        at(2).dataType match {
          case decimal: DecimalType => new MakeDecimal(at(1), decimal.precision, decimal.scale)
          case other => Support.fail(s"${other.sql} is no type of decimals")
        }
      case "AverageOf" => AverageOfResults(at(1), at(2), at(3))
      case "CastLike" => new Cast(at(1), at(2).dataType, None)
      case "AggregateExpression" =>
        at(1) match {
          case function: AggregateFunction =>
            AggregateExpression(function, Complete, isDistinct = false, if (entry.size > 2) Some(at(2)) else None)
          case other => Support.fail(s"${other.nodeName} is no aggregate function")
        }
      case "WindowExpression" =>
        val whole = SpecifiedWindowFrame(RowFrame, UnboundedPreceding, UnboundedFollowing)
        WindowExpression(at(1), WindowSpecDefinition((2 until entry.size).map(at), Nil, whole))
      case "Filtered" =>
        (at(1), all(2)) match {
          case (old: AggregateExpression, List(function: AggregateFunction, condition)) =>
            old.copy(aggregateFunction = function, filter = Some(condition))
          case (other, _) => Support.fail(s"${other.nodeName} is no aggregate function to filter the rows of")
        }
      case "NewAlias" => newAlias(at(1), entry.path(2).asText, entry.path(3).asInt(-1), entry.path(4))
      case "As" =>
        val old = attribute(entry.path(2).asInt(-1))
        Alias(at(1), old.name)(exprId = old.exprId, qualifier = old.qualifier, explicitMetadata = Some(old.metadata))
      case "Attr" => attribute(entry.path(1).asInt(-1))
      case "Copy" => ExpressionBuilder.withChildren(at(1), all(2))
      case "Alias" =>
        at(2) match {
          case alias: Alias => ExpressionBuilder.withChildren(alias, List(at(1)))
          case other => Support.fail(s"${other.nodeName} is no alias")
        }
      case "Plan" =>
        at(1) match {
          case subquery: SubqueryExpression =>
            val changed = withPlan(subquery, plan(entry.get(2)))
            if (entry.path(3).isArray) ExpressionBuilder.withChildren(changed, all(3)) else changed
          case other => Support.fail(s"${other.nodeName} holds no plan")
        }
      case other => Support.fail(s"There is no kind of expression $other")
    }
  }

  private val used = new IdentityHashMap[Expression, Attribute]
  private val made = new mutable.HashMap[Int, Attribute]

  private def attribute(number: Int): Attribute = {
    val found =
      if (number >= handle.attributes.length) made.getOrElse(number, throw EditList.NotYet)
      else handle.attribute(number)
    used.put(found, found)
    found
  }

  /** The attribute with a number. */
  def column(number: JsonNode): Attribute = attribute(number.asInt(-1))

  /** Define the numbers by which later entries refer to these columns. */
  def defineAll(numbers: Seq[Int], columns: Seq[Attribute]): Unit = {
    if (numbers.size != columns.size) Support.fail(s"There are ${columns.size} columns, not ${numbers.size}")
    numbers.zip(columns).foreach { case (number, column) => define(number, column) }
  }

  private def define(number: Int, column: Attribute): Unit = {
    if (number < handle.attributes.length || made.contains(number)) Support.fail(s"Attribute $number exists already")
    made.put(number, column)
  }

  /** An alias with a new id; later entries refer to its column by this number. */
  private def newAlias(child: Expression, name: String, number: Int, like: JsonNode): Alias = {
    val metadata = if (like.isIntegralNumber) Some(expression(like)) else None
    val alias = metadata match {
      case Some(old: Alias) => Alias(child, name)(qualifier = old.qualifier, explicitMetadata = old.explicitMetadata)
      case _ => Alias(child, name)()
    }
    define(number, alias.toAttribute)
    alias
  }

  private def literal(dataType: String, value: JsonNode): Literal = dataType match {
    case "boolean" if value.isNull => Literal(null, BooleanType)
    case "boolean" => Literal(value.asBoolean)
    case "int" => Literal(value.asInt)
    case "bigint" => Literal(value.asLong)
    case other => Support.fail(s"A literal of type $other is not made, only copied")
  }

  /**
   * The expression with the attributes that edits wrote replaced by those of `children`: above an outer join or a union
   * a column may be nullable, or its type wider, than where the export defined it.
   */
  def current(expression: Expression, children: Seq[LogicalPlan]): Expression =
    if (used.isEmpty || !expression.exists(used.containsKey)) expression
    else {
      val columns = children.flatMap(_.output).map(a => a.exprId -> a).toMap
      expression.transform { case a: Attribute if used.containsKey(a) => columns.getOrElse(a.exprId, a) }
    }

  /** Except for an EXISTS, the enclosing query may refer to the output of the subquery's plan. */
  private def withPlan(subquery: SubqueryExpression, plan: LogicalPlan): SubqueryExpression = {
    val same = plan.output.map(_.exprId) == subquery.plan.output.map(_.exprId)
    if (!same && !subquery.isInstanceOf[Exists]) Support.fail("The plan of a subquery has other columns than before")
    subquery.withNewPlan(plan)
  }
}

private[pyjoinopt] object ExpressionBuilder {

  def elements(list: JsonNode): List[JsonNode] = {
    val found = new mutable.ListBuffer[JsonNode]
    if (list != null) list.forEach(found += _)
    found.toList
  }

  def withChildren(expression: Expression, children: List[Expression]): Expression =
    if (children.length == expression.children.length) expression.withNewChildren(children)
    else Support.fail(s"${expression.nodeName} has ${expression.children.length} children, not ${children.length}")
}
