package org.apache.spark.sql.pyjoinopt

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.execution.datasources._

/**
 * Decides which files can be listed without a Spark job.
 *
 * Spark's own indexes have the listing that was made when the table was opened. A partitioned catalog table is listed
 * again: in this thread, unless it has many partitions or one of its folders has many subfolders; then Spark starts a
 * job. An index of another library may do anything, so it is not called, not even for its size.
 */
private[pyjoinopt] object FileListing {
  private val spark = "org.apache.spark.sql.execution."
  private val listed = Set(
    s"${spark}datasources.InMemoryFileIndex",
    s"${spark}datasources.PrunedInMemoryFileIndex",
    s"${spark}datasources.CatalogFileIndex",
    s"${spark}streaming.MetadataLogFileIndex",
    s"${spark}streaming.runtime.MetadataLogFileIndex"
  )

  /** The reason why a relation's files cannot be listed while a query is planned; None if they can. */
  def refusal(files: HadoopFsRelation): Option[String] =
    if (isListed(files.location) || DeltaStatistics.applies(files)) None
    else Some(s"its files are not listed: nobody knows what ${Support.className(files.location)} does for that")

  /** Whether an index is Spark's own and has the size of its files without I/O. */
  def isListed(index: FileIndex): Boolean = listed(index.getClass.getName)

  def isRefused(files: HadoopFsRelation): Boolean = refusal(files).isDefined

  /** The bytes of a relation's files, if they are available without I/O. */
  def size(files: HadoopFsRelation): Option[Double] =
    if (isRefused(files)) None
    else if (DeltaStatistics.applies(files)) DeltaStatistics.size(files)
    else Support.attempt(Option.empty[Double])(Some(files.sizeInBytes.toDouble))

  /** Whether Spark lists a catalog table without a job. Queries the catalog and lists folders. */
  def needsNoJob(session: Compat.Session, index: CatalogFileIndex, partitions: Seq[Expression]): Boolean =
    Support.attempt(false) {
      val most = session.sessionState.conf.parallelPartitionDiscoveryThreshold
      val (id, catalog) = (index.table.identifier, session.sessionState.catalog)
      val folders =
        if (index.partitionSchema.isEmpty) Some(index.rootPaths)
        else if (partitions.isEmpty &&
          catalog.externalCatalog.listPartitionNames(id.database.get, id.table, None).length > most) None
        else {
          val found =
            if (partitions.nonEmpty) catalog.listPartitionsByFilter(id, partitions) else catalog.listPartitions(id)
          Some(found.flatMap(_.storage.locationUri).map(new Path(_)))
        }
      folders.exists(paths =>
        paths.length <= most && {
          val conf = session.sessionState.newHadoopConf()
          paths.forall(isShallow(_, conf, most))
        })
    }

  /** Whether no folder has more than `most` subfolders. */
  private def isShallow(root: Path, conf: Configuration, most: Int): Boolean = {
    val fileSystem = root.getFileSystem(conf)
    var waiting = List(root)
    while (waiting.nonEmpty) {
      val inside = Support.attempt(List.empty[Path])(
        fileSystem.listStatus(waiting.head).toList.filter(_.isDirectory).map(_.getPath))
      if (inside.length > most) return false
      waiting = inside ::: waiting.tail
    }
    true
  }
}
