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
 * The number of bytes that a query reads, and how long such a query may wait for its join order.
 *
 * The longer a query runs, the more a bad join order costs, and the less a wait matters. A query over many gigabytes
 * runs for minutes: planning it as written because Python started late would save seconds and lose minutes.
 *
 * Law: the size is determined without I/O. Files count if Spark has listed them already, catalog tables by their
 * statistics, cached data by its size. A table of unknown size, for example of another format, counts as `Unknown`.
 */
private[pyjoinopt] object InputSize {
  private val GiB = 1024.0 * 1024 * 1024

  /** The assumed size of a table of unknown size (bytes): neither small nor large. */
  val Unknown: Double = 4 * GiB

  /** The shortest and the longest wait of a query (seconds). */
  private val MinSeconds = 2L
  private val MaxSeconds = 60L

  /** Two seconds plus one for every GiB, at most a minute. Whole seconds, because messages contain the time. */
  def milliseconds(bytes: Double): Long =
    1000 * math.min(MaxSeconds.toDouble, MinSeconds + math.floor(bytes / GiB)).toLong

  /** The size of all leaves, including those in subqueries. */
  def of(plan: LogicalPlan): Double = {
    var bytes = 0.0
    Support.preOrder(plan)(below) { node =>
      bytes += Support.attempt(0.0)(own(node))
      true
    }
    bytes
  }

  /** The size of the files that Spark has listed, those of subqueries left out. */
  def ofListedFiles(plan: LogicalPlan): Double = plan.collect {
    case relation: LogicalRelation => relation.relation match {
        case files: HadoopFsRelation => Support.attempt(0.0)(ofFiles(files.location).getOrElse(0.0))
        case _ => 0.0
      }
  }.sum

  private def below(node: LogicalPlan): Seq[LogicalPlan] = node match {
    case memory: InMemoryRelation if isLoaded(memory) => Nil
    case memory: InMemoryRelation => Support.attempt(Seq.empty[LogicalPlan])(toBeCached(memory))
    case _ if node.containsPattern(PLAN_EXPRESSION) =>
      node.children ++ Support.attempt(Seq.empty[LogicalPlan])(node.subqueries)
    case _ => node.children
  }

  private def isLoaded(memory: InMemoryRelation): Boolean = LeafDetails.materializedRows(memory).isDefined

  /** The plans that this query still has to run to fill the cache. */
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
      hive.tableMeta.stats.map(_.sizeInBytes).orElse(hive.tableStats.map(_.sizeInBytes)).flatMap(known).getOrElse(
        Unknown)
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

  /** None for the default size, which Spark assigns to a table without statistics. */
  private def known(bytes: BigInt): Option[Double] =
    Some(bytes).filter(_ < BigInt(SQLConf.get.defaultSizeInBytes)).map(_.toDouble)
}
