package org.apache.spark.sql.pyjoinopt

import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, V2WriteCommand}
import org.apache.spark.sql.catalyst.trees.TreePattern.JOIN
import org.apache.spark.sql.connector.write.RowLevelOperationTable
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, DataSourceV2ScanRelation}

/**
 * The queries inside MERGE, UPDATE and DELETE on tables with row-level operations.
 *
 * Law: a plan that reads the target table remains as Spark wrote it, including the join with the source: Spark counts
 * matches there, and filters groups of rows by it. The largest subplans that do not read the target are optimised like
 * queries.
 */
private[pyjoinopt] object RowLevelSources {
  private val commands = Set("ReplaceData", "WriteDelta")

  def isRowLevel(writing: V2WriteCommand): Boolean = commands(Support.className(writing))

  /** The plan with `optimized` applied to these subplans. */
  def rewritten(plan: LogicalPlan)(optimized: LogicalPlan => LogicalPlan): LogicalPlan =
    if (!plan.containsPattern(JOIN)) plan
    else if (!readsTarget(plan)) optimized(plan)
    else plan.mapChildren(rewritten(_)(optimized))

  private def readsTarget(plan: LogicalPlan): Boolean = {
    var found = false
    Support.preOrder(plan)(_.children) { node =>
      node match {
        case scan: DataSourceV2ScanRelation => found ||= isTarget(scan.relation)
        case relation: DataSourceV2Relation => found ||= isTarget(relation)
        case _ =>
      }
      !found
    }
    found
  }

  private def isTarget(relation: DataSourceV2Relation): Boolean = relation.table.isInstanceOf[RowLevelOperationTable]
}
