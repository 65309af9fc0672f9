package org.apache.spark.sql.pyjoinopt

import java.util.concurrent.{Callable, TimeUnit}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.FileStatus

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.execution.datasources.orc.OrcFileFormat
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.util.ThreadUtils

/**
 * The statistics of a table of files, from the footers of some of them.
 *
 * A footer holds the number of rows and, for each column, bounds and the number of nulls. Reading one costs
 * milliseconds near by and tens of milliseconds in an object store, so only some are read, all at the same time, until
 * a deadline; the rest is taken to be like those, byte for byte.
 *
 * Laws: only formats whose rows are all visible rows (a table format may hide some behind deletion files). A
 * partitioned table of the catalog is listed only if Spark does that without a job. What is late does not count.
 */
private[pyjoinopt] object FileStatistics {
  final case class Limits(maxFiles: Int, deadlineMillis: Long)

  private lazy val pool = ThreadUtils.newDaemonCachedThreadPool("pyjoinopt-footers", 8, 30)

  def read(session: Compat.Session, relation: LogicalRelation, limits: Limits): Option[NodeFacts] =
    relation.relation match {
      case files: HadoopFsRelation =>
        val until = System.nanoTime + TimeUnit.MILLISECONDS.toNanos(limits.deadlineMillis)
        for (reader <- reader(files.fileFormat); directories <- list(session, files, until)) yield {
          val all = directories.flatMap(_.files.map(_.fileStatus)).filter(_.getLen > 0)
          val conf = session.sessionState.newHadoopConfWithOptions(files.options)
          val footers = readSome(all, limits.maxFiles, until)(FileFooters.cached(_)(reader(_, conf)))
          facts(relation, files, all, footers, session.sessionState.conf.caseSensitiveAnalysis)
        }
      case _ => None
    }

  /** Exact classes: a subclass may hide rows. */
  private def reader(format: FileFormat): Option[(FileStatus, Configuration) => FileFooter] = format.getClass match {
    case c if c == classOf[ParquetFileFormat] => Some(ParquetFooter.read)
    case c if c == classOf[OrcFileFormat] => Some(OrcFooter.read)
    case _ => None
  }

  private def list(session: Compat.Session, files: HadoopFsRelation, until: Long): Option[Seq[PartitionDirectory]] =
    files.location match {
      case listed: PartitioningAwareFileIndex => Some(listed.listFiles(Nil, Nil).toList)
      case catalog: CatalogFileIndex if listsWithoutJob(session, catalog) =>
        await(pool.submit(() => catalog.listFiles(Nil, Nil).toList), until)
      case _ => None
    }

  private def listsWithoutJob(session: Compat.Session, index: CatalogFileIndex): Boolean =
    index.partitionSchema.isEmpty || Support.attempt(false) {
      val id = index.table.identifier
      val partitions = session.sessionState.catalog.externalCatalog.listPartitionNames(id.database.get, id.table, None)
      partitions.length <= session.sessionState.conf.parallelPartitionDiscoveryThreshold
    }

  /** The footers of up to `most` files, evenly chosen, that could be read in time, each with its file. */
  private def readSome(files: Seq[FileStatus], most: Int, until: Long)(
      read: FileStatus => FileFooter): Seq[(FileStatus, FileFooter)] = {
    val all = files.toIndexedSeq
    val count = math.min(math.max(most, 0), all.length)
    val chosen = (0 until count).map(i => all((i.toLong * all.length / count).toInt))
    val waiting = chosen.map(file => file -> pool.submit(new Callable[FileFooter] { override def call() = read(file) }))
    waiting.flatMap { case (file, future) => await(future, until).map(file -> _) }
  }

  private def await[T](future: java.util.concurrent.Future[T], until: Long): Option[T] =
    try Some(future.get(math.max(0, until - System.nanoTime), TimeUnit.NANOSECONDS))
    catch {
      case _: Exception =>
        future.cancel(true)
        None
    }

  private def facts(
      relation: LogicalRelation,
      files: HadoopFsRelation,
      all: Seq[FileStatus],
      footers: Seq[(FileStatus, FileFooter)],
      caseSensitive: Boolean): NodeFacts = {
    val bytes = Some(files.sizeInBytes.toDouble)
    val complete = footers.length == all.length
    val readBytes = footers.map(_._1.getLen.toDouble).sum
    val scale = if (complete) 1.0 else all.map(_.getLen.toDouble).sum / readBytes
    if (footers.isEmpty && all.nonEmpty) NodeFacts(None, bytes, "size")
    else {
      val rows = footers.map(_._2.rows.toDouble).sum * scale
      val partitionColumns = files.partitionSchema.fieldNames.toSet
      val columns = relation.output.filterNot(a => partitionColumns(a.name)).toList.flatMap { attribute =>
        column(attribute, footers.map(_._2), scale, caseSensitive).map(attribute -> _)
      }
      NodeFacts(Some(rows), bytes, "footers", complete, columns)
    }
  }

  private def column(
      attribute: Attribute,
      footers: Seq[FileFooter],
      scale: Double,
      caseSensitive: Boolean): Option[ColumnFacts] = {
    val found = footers.filter(_.rows > 0).map(_.column(attribute.name, caseSensitive))
    if (found.isEmpty || found.exists(_.isEmpty)) None
    else Some(found.flatten.reduce(FileFooter.merge)).map { merged =>
      val (min, max) = (merged.min.flatMap(fit(attribute, _)), merged.max.flatMap(fit(attribute, _)))
      ColumnFacts(min = min, max = max, nulls = merged.nulls.map(_ * scale))
    }
  }

  /** A bound in the form that the column's type has, whatever the file's own type. */
  private def fit(attribute: Attribute, bound: Any): Option[Any] = {
    import org.apache.spark.sql.types._
    (attribute.dataType, bound) match {
      case (_: IntegralType | DateType | TimestampType | TimestampNTZType, n: Long) => Some(n)
      case (_: FractionalType, n: Long) => Some(n.toDouble)
      case (_: FractionalType, n: Double) => Some(n)
      case (BooleanType, flag: Boolean) => Some(flag)
      case _ => None
    }
  }
}
