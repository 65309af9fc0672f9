package org.apache.spark.sql.pyjoinopt

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}

/**
 * The expressions that a question brings along, over the columns of exported plans: predicates to try on samples, and
 * filters that decide which partitions are read.
 *
 * Law: a filter on partitions is evaluated in the driver, so it must be one that may be (see SamplePredicates), and if
 * one of several may not, none is: what is told must be of exactly the partitions that the whole question names.
 */
private[pyjoinopt] final class RequestExpressions(handle: Handle, request: JsonNode) {
  private val built: EditList[Expression] =
    new EditList[Expression]("expression", request.get("exprs"), handle.expressions)(builder.build(_))
  private val nodes: EditList[LogicalPlan] =
    new EditList[LogicalPlan]("node", Support.mapper.createArrayNode(), handle.nodes)(_ => Support.fail("no node"))
  private lazy val builder = new ExpressionBuilder(handle, built(_), nodes(_))
  EditList.buildAll(built, nodes)

  def apply(reference: JsonNode): Expression = built(reference)

  /** Filters on a relation's partition columns, under the names that these have in the table. */
  def partitions(relation: LogicalRelation, listed: JsonNode): Seq[Expression] = relation.relation match {
    case files: HadoopFsRelation if listed != null && listed.size > 0 =>
      val partitioned = files.partitionSchema.fieldNames.toSet
      val names = relation.output.zip(relation.relation.schema.fieldNames).collect {
        case (attribute, name) if partitioned(name) => attribute.exprId -> name
      }.toMap
      val filters = ExpressionBuilder.elements(listed).map(reference => SamplePredicates.safe(apply(reference)))
      val local = filters.flatten.filter(_.references.forall(a => names.contains(a.exprId)))
      if (local.length < filters.length) Nil
      else local.map(_.transform { case a: org.apache.spark.sql.catalyst.expressions.AttributeReference =>
        a.withName(names(a.exprId))
      })
    case _ => Nil
  }
}
