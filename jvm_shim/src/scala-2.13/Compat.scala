package org.apache.spark.sql.pyjoinopt

import scala.collection.mutable
import scala.xml.Node

import jakarta.servlet.http
import org.apache.parquet.hadoop.metadata.ColumnChunkMetaData

import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.expressions.{CommonExpressionDef, CommonExpressionRef, Expression}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.classic
import org.apache.spark.sql.execution.columnar.InMemoryRelation
import org.apache.spark.ui.{SparkUITab, UIUtils}

/**
 * The differences between Spark 3.5 and Spark 4: the side of Spark 4 (Scala 2.13).
 *
 * Every other file of the shim compiles unchanged against both. Law: no version test anywhere else, and only members
 * whose signature is the same over 4.0 to 4.3, because one jar serves them all.
 */
private[pyjoinopt] object Compat {
  type Session = classic.SparkSession
  type AnyDataset = classic.Dataset[_]
  type Rows = classic.Dataset[Row]

  type HttpServlet = http.HttpServlet
  type HttpServletRequest = http.HttpServletRequest
  type HttpServletResponse = http.HttpServletResponse

  val scalaVersion = "2.13"

  /** The tag by which `df["a"]` finds the plan of the DataFrame it was taken from. */
  val datasetIdTag: TreeNodeTag[mutable.HashSet[Long]] = classic.Dataset.DATASET_ID_TAG

  def ours(session: SparkSession): Session = session.asInstanceOf[Session]

  def ofRows(session: Session, plan: LogicalPlan): Rows = classic.Dataset.ofRows(session, plan)

  /** The in-memory relation by which Spark replaces exactly this plan, if it is cached. */
  def cachedData(session: Session, plan: LogicalPlan): Option[InMemoryRelation] =
    session.sharedState.cacheManager.lookupCachedData(session, plan).map(_.cachedRepresentation)

  /** Whether the result is NULL if a child's is; for this node alone. */
  def nullIntolerant(expression: Expression): Boolean = expression.nullIntolerant

  /** Whether evaluation, including that of children, may raise an error that Spark must not move. */
  def throwable(expression: Expression): Boolean = expression.throwable

  /** The id of a common expression, in its definition and in references. */
  def commonId(expression: Expression): Option[Long] = expression match {
    case definition: CommonExpressionDef => Some(definition.id.id)
    case used: CommonExpressionRef => Some(used.id.id)
    case _ => None
  }

  /** The bytes of the texts of a column, without those of lengths and dictionaries, if the file has them. */
  def textBytes(chunk: ColumnChunkMetaData): Option[Long] =
    Option(chunk.getSizeStatistics).map(_.getUnencodedByteArrayDataBytes).filter(_.isPresent).map(_.get.longValue)

  /** A page of Spark's UI. Spark 4.2 and 4.3 have more switches at the end of this method; all are off. */
  def headerSparkPage(request: HttpServletRequest, title: String, content: => Seq[Node], tab: SparkUITab): Seq[Node] = {
    val method = UIUtils.getClass.getMethods.find(_.getName == "headerSparkPage").get
    val known = Seq[AnyRef](request, title, () => content, tab, None)
    val switches = Seq.fill(method.getParameterCount - known.size)(java.lang.Boolean.FALSE)
    method.invoke(UIUtils, known ++ switches: _*).asInstanceOf[Seq[Node]]
  }
}
