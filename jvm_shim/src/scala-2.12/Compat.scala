package org.apache.spark.sql.pyjoinopt

import scala.collection.mutable
import scala.xml.Node

import javax.servlet.http
import org.apache.parquet.hadoop.metadata.ColumnChunkMetaData

import org.apache.spark.sql.{Dataset, Row, SparkSession}
import org.apache.spark.sql.catalyst.expressions.{Expression, NullIntolerant}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.columnar.InMemoryRelation
import org.apache.spark.ui.{SparkUITab, UIUtils}

/**
 * The differences between Spark 3.5 and Spark 4: the side of Spark 3.5 (Scala 2.12).
 *
 * Every other file of the shim compiles unchanged against both. Law: no version test anywhere else.
 */
private[pyjoinopt] object Compat {
  type Session = SparkSession
  type AnyDataset = Dataset[_]
  type Rows = Dataset[Row]

  type HttpServlet = http.HttpServlet
  type HttpServletRequest = http.HttpServletRequest
  type HttpServletResponse = http.HttpServletResponse

  val scalaVersion = "2.12"

  /** The tag by which `df["a"]` finds the plan of the DataFrame it was taken from. */
  val datasetIdTag: TreeNodeTag[mutable.HashSet[Long]] = Dataset.DATASET_ID_TAG

  def ours(session: SparkSession): Session = session

  def ofRows(session: Session, plan: LogicalPlan): Rows = Dataset.ofRows(session, plan)

  /** The in-memory relation by which Spark replaces exactly this plan, if it is cached. */
  def cachedData(session: Session, plan: LogicalPlan): Option[InMemoryRelation] = {
    val normalized = session.sessionState.planNormalizationRules.foldLeft(plan)((p, rule) => rule(p))
    session.sharedState.cacheManager.lookupCachedData(normalized).map(_.cachedRepresentation)
  }

  /** Whether the result is NULL if a child's is; for this node alone. */
  def nullIntolerant(expression: Expression): Boolean = expression.isInstanceOf[NullIntolerant]

  /** Spark 3.5 has no such property: it moves every predicate. */
  def throwable(expression: Expression): Boolean = false

  /** Spark 3.5 has no common expressions. */
  def commonId(expression: Expression): Option[Long] = None

  /** The bytes of the texts of a column, without those of lengths and dictionaries: the reader does not have them. */
  def textBytes(chunk: ColumnChunkMetaData): Option[Long] = None

  /** A page of Spark's UI. */
  def headerSparkPage(request: HttpServletRequest, title: String, content: => Seq[Node], tab: SparkUITab): Seq[Node] =
    UIUtils.headerSparkPage(request, title, content, tab)
}
