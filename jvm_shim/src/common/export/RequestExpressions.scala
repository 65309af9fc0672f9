package org.apache.spark.sql.pyjoinopt

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.catalyst.expressions.{AttributeReference, Expression}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}

/**
 * The expressions of a request, over the columns of an exported plan: predicates to evaluate on samples, and filters
 * that select partitions.
 *
 * Law: partition filters are evaluated in the driver, so they must be safe (see SamplePredicates). If one of them is
 * not, none is used: the statistics must be those of exactly the partitions that all filters together select.
 */
private[pyjoinopt] final class RequestExpressions(handle: Handle, request: JsonNode) {
  private val built: EditList[Expression] =
    new EditList[Expression]("expression", request.get("exprs"), handle.expressions)(builder.build(_))
  private val nodes: EditList[LogicalPlan] =
    new EditList[LogicalPlan]("node", Support.mapper.createArrayNode(), handle.nodes)(_ => Support.fail("no node"))
  private lazy val builder = new ExpressionBuilder(handle, built(_), nodes(_))
  EditList.buildAll(built, nodes)

  def apply(reference: JsonNode): Expression = built(reference)

  /** Filters on a relation's partition columns, with the names of these in the table. */
  def partitions(relation: LogicalRelation, listed: JsonNode): Seq[Expression] = relation.relation match {
    case files: HadoopFsRelation if listed != null && listed.size > 0 =>
      val partitioned = files.partitionSchema.fieldNames.toSet
      val names = relation.output.zip(relation.relation.schema.fieldNames).collect {
        case (attribute, name) if partitioned(name) => attribute.exprId -> name
      }.toMap
      val filters = ExpressionBuilder.elements(listed).map(reference => SamplePredicates.safe(apply(reference)))
      val local = filters.flatten.filter(_.references.forall(a => names.contains(a.exprId)))
      if (local.length < filters.length) Nil
      else local.map(_.transform { case a: AttributeReference =>
        a.withName(names(a.exprId))
      })
    case _ => Nil
  }
}
