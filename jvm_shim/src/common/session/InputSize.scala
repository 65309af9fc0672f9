package org.apache.spark.sql.pyjoinopt

import org.apache.spark.sql.catalyst.catalog.HiveTableRelation
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, LogicalPlan, Range}
import org.apache.spark.sql.catalyst.trees.TreePattern.PLAN_EXPRESSION
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec
import org.apache.spark.sql.execution.columnar.InMemoryRelation
import org.apache.spark.sql.execution.datasources.{FileIndex, HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, DataSourceV2ScanRelation, FileScan}
import org.apache.spark.sql.internal.SQLConf

/**
 * How many bytes a query reads, and how long such a query may wait for its join order.
 *
 * The longer a query runs, the more a bad order costs, and the less a wait does. Two seconds are nothing to a query of
 * a few seconds; a query over many gigabytes runs for minutes, and to plan it as written because Python started late
 * would save seconds and lose minutes.
 *
 * Law: the size is found without I/O. Files count if Spark has listed them already, tables of the catalog by their
 * statistics, cached data by what it holds. A table of unknown size, such as one of another format, counts as `Unknown`.
 */
private[pyjoinopt] object InputSize {
  private val GiB = 1024.0 * 1024 * 1024

  /** What a stored table counts for whose size is not known (bytes): neither small nor large. */
  val Unknown: Double = 4 * GiB

  /** How long a query waits at least and at most (seconds). */
  private val Least = 2L
  private val Most = 60L

  /** Two seconds and one more for every GiB, at most a minute. In whole seconds, because messages name the time. */
  def milliseconds(bytes: Double): Long = 1000 * math.min(Most.toDouble, Least + math.floor(bytes / GiB)).toLong

  /** Of all leaves, those in subqueries included. */
  def of(plan: LogicalPlan): Double = {
    var bytes = 0.0
    Support.preOrder(plan)(below) { node =>
      bytes += Support.attempt(0.0)(own(node))
      true
    }
    bytes
  }

  private def below(node: LogicalPlan): Seq[LogicalPlan] = node match {
    case memory: InMemoryRelation if isLoaded(memory) => Nil
    case memory: InMemoryRelation => Support.attempt(Seq.empty[LogicalPlan])(toBeCached(memory))
    case _ if node.containsPattern(PLAN_EXPRESSION) =>
      node.children ++ Support.attempt(Seq.empty[LogicalPlan])(node.subqueries)
    case _ => node.children
  }

  private def isLoaded(memory: InMemoryRelation): Boolean = LeafDetails.materializedRows(memory).isDefined

  /** What this query still has to read to fill the cache. */
  private def toBeCached(memory: InMemoryRelation): Seq[LogicalPlan] = (memory.cacheBuilder.cachedPlan match {
    case adaptive: AdaptiveSparkPlanExec => adaptive.inputPlan.logicalLink
    case plan => plan.logicalLink
  }).toSeq

  private def own(node: LogicalPlan): Double = node match {
    case relation: LogicalRelation =>
      val listed = relation.relation match {
        case files: HadoopFsRelation => ofFiles(files.location)
        case _ => None
      }
      listed.orElse(relation.catalogTable.flatMap(_.stats).flatMap(s => known(s.sizeInBytes))).getOrElse(Unknown)
    case hive: HiveTableRelation =>
      hive.tableMeta.stats.map(_.sizeInBytes).orElse(hive.tableStats.map(_.sizeInBytes)).flatMap(known).getOrElse(Unknown)
    case scan: DataSourceV2ScanRelation =>
      scan.scan match {
        case files: FileScan => ofFiles(files.fileIndex).getOrElse(Unknown)
        case _ => Unknown
      }
    case _: DataSourceV2Relation => Unknown
    case memory: InMemoryRelation if isLoaded(memory) => known(memory.computeStats().sizeInBytes).getOrElse(0)
    case range: Range => range.computeStats().sizeInBytes.toDouble
    case local: LocalRelation => local.computeStats().sizeInBytes.toDouble
    case _ => 0
  }

  private def ofFiles(index: FileIndex): Option[Double] =
    if (FileListing.isListed(index)) known(index.sizeInBytes) else None

  /** Spark gives a table without statistics a size beyond any other. */
  private def known(bytes: BigInt): Option[Double] =
    Some(bytes).filter(_ < BigInt(SQLConf.get.defaultSizeInBytes)).map(_.toDouble)
}
