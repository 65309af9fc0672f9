package org.apache.spark.sql.pyjoinopt

import java.util.concurrent.{Callable, ExecutionException, Future, TimeUnit, TimeoutException}
import java.util.concurrent.atomic.AtomicLong

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.FileStatus
import org.apache.orc.OrcConf

import org.apache.spark.deploy.SparkHadoopUtil
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.execution.datasources.orc.OrcFileFormat
import org.apache.spark.sql.execution.datasources.parquet.{ParquetFileFormat, ParquetUtils}
import org.apache.spark.util.ThreadUtils

/**
 * The statistics of a table of files, from the footers of some files or from the first lines of a text file.
 *
 * A footer has the number of rows and, for each column, bounds and the NULL count; the sizes of dictionaries are
 * distinct counts. Reading a footer takes milliseconds from a local disk and tens of milliseconds from an object store.
 * So only some are read, concurrently and until a deadline, and the counts are scaled by bytes to all files. The values
 * of partition columns are in the paths, and partitions that the query filters out are pruned before any file is
 * opened.
 *
 * Laws: only formats all of whose rows are visible (a table format may delete rows by extra files). A partitioned
 * catalog table is listed only if Spark lists it without a job. A footer that comes too late does not count now, but is
 * cached for the next query; a footer that cannot be read is reported and does not count.
 */
private[pyjoinopt] object FileStatistics {

  /** `maxBytes`: once so many bytes have been read, no other file is opened. `until`: a value of `System.nanoTime`. */
  final case class Limits(maxFiles: Int, maxBytes: Long, until: Long)

  /**
   * The requested statistics of a relation: its columns, the columns whose dictionaries are counted, the sources, and
   * the filters on partitions.
   */
  final case class Wanted(
      columns: Attribute => Boolean,
      distinct: Attribute => Boolean,
      sources: String => Boolean,
      partitions: Seq[Expression] = Nil)

  lazy val pool = ThreadUtils.newDaemonCachedThreadPool("pyjoinopt-footers", 16, 30)

  /** Dictionaries are counted in at most so many files, and in so many row groups of all files together. */
  private val MaxDictionaries = 8

  /** Files that are being read. */
  private final case class Reading(files: Seq[(FileStatus, Future[FileFooter])], spent: AtomicLong)

  /** The footers that were read in time, the number of late ones, and the first error. */
  private final case class Outcome(footers: Seq[(FileStatus, FileFooter)], late: Int, problem: Option[String])

  /** Start to read. The returned function waits for the end and returns the statistics. */
  def begin(
      session: Compat.Session,
      relation: LogicalRelation,
      limits: Limits,
      wanted: Wanted): Option[() => NodeFacts] =
    relation.relation match {
      case files: HadoopFsRelation if DeltaStatistics.applies(files) && wanted.sources("footers") =>
        val known = pool.submit(() => DeltaStatistics.read(session, relation, wanted.columns))
        Some(() =>
          await(known, limits.until, giveUp = false) match {
            case Right(Some(facts)) => facts
            case Right(None) => NodeFacts(None, None, "size", note = Some("its log cannot be understood"))
            case Left(error) => NodeFacts(None, None, "size", note = Some(s"its log cannot be read: ${message(error)}"))
          })
      case files: HadoopFsRelation =>
        val footer = reader(files.fileFormat).filter(_ => wanted.sources("footers"))
        val text = footer.isEmpty && wanted.sources("text") && TextRows.applies(files)
        val listing = if (footer.isDefined || text) list(session, files, limits.until, wanted.partitions) else None
        listing.map { directories =>
          val all = filled(directories)
          val conf = session.sessionState.newHadoopConfWithOptions(files.options)
          val sensitive = session.sessionState.conf.caseSensitiveAnalysis
          val named = isNamed(session, files, conf)
          def identified(known: NodeFacts) = known.copy(
            files = Some(FileIdentity.of(relation, files, all)),
            pruned = wanted.partitions.nonEmpty)
          footer match {
            case Some(read) =>
              val names = if (named) relation.output.filter(wanted.distinct).map(_.name) else Nil
              val looked = math.max(1, all.length / MaxDictionaries)
              val most = math.max(1, MaxDictionaries / math.max(1, math.min(all.length, limits.maxFiles)))
              val reading = start(all, limits) { (file, at) =>
                val found = FileFooters.cached(file)(read(_, conf))
                if (at % looked == 0) Support.attempt(()) {
                  val own = names.flatMap(found.nameOf(_, sensitive))
                  dictionaries(files.fileFormat)(file, conf, found, own, most, limits.until)
                }
                found
              }
              val partitions = partitionColumns(files, directories)
              val columns = relation.output.filter(wanted.columns).filter(a => named || partitions.contains(a.name))
              () => identified(facts(columns, all, reading, limits.until, partitions, sensitive))
            case None =>
              // The largest file: Spark may write empty files, too, and the order of a listing is not fixed.
              val most = all.foldLeft(0L)((longest, file) => math.max(longest, file.getLen))
              val sampled = all.filter(_.getLen == most).sortBy(_.getPath.toString).headOption
                .map(file => pool.submit(() => TextRows.sample(file, files, conf)))
              () => identified(lines(all, sampled, limits.until))
          }
        }
      case _ => None
    }

  def identify(
      session: Compat.Session,
      relation: LogicalRelation,
      limits: Limits,
      partitions: Seq[Expression] = Nil): Option[FileIdentity] =
    relation.relation match {
      case files: HadoopFsRelation if DeltaStatistics.applies(files) =>
        await(pool.submit(() => DeltaStatistics.identify(session, relation, files)), limits.until).toOption.flatten
      case files: HadoopFsRelation =>
        list(session, files, limits.until, partitions).map { found =>
          FileIdentity.of(relation, files, filled(found))
        }
      case _ => None
    }

  /** The files of a listing that are not empty. */
  private def filled(directories: Seq[PartitionDirectory]): Seq[FileStatus] =
    directories.flatMap(_.files.map(_.fileStatus)).filter(_.getLen > 0)

  /** The reader of footers for exactly these classes: a subclass may filter rows. */
  private def reader(format: FileFormat): Option[(FileStatus, Configuration) => FileFooter] = format.getClass match {
    case c if c == classOf[ParquetFileFormat] => Some(ParquetFooter.read)
    case c if c == classOf[OrcFileFormat] => Some(OrcFooter.read)
    case _ => None
  }

  /** Whether the reader finds columns by name, not by field ids or by position. */
  private def isNamed(session: Compat.Session, files: HadoopFsRelation, conf: Configuration): Boolean =
    files.fileFormat.getClass match {
      case c if c == classOf[ParquetFileFormat] =>
        !session.sessionState.conf.parquetFieldIdReadEnabled || !ParquetUtils.hasFieldIds(files.dataSchema)
      case c if c == classOf[OrcFileFormat] => !OrcConf.FORCE_POSITIONAL_EVOLUTION.getBoolean(conf)
      case _ => true
    }

  private def dictionaries(format: FileFormat) =
    if (format.getClass == classOf[OrcFileFormat]) OrcDictionaries.count _ else ParquetDictionaries.count _

  /** Whether samples can be drawn from these files. */
  def reads(files: HadoopFsRelation): Boolean = hasFooters(files) || TextRows.applies(files)

  def hasFooters(files: HadoopFsRelation): Boolean = reader(files.fileFormat).isDefined

  /** The footers of some evenly spaced files that are read in time. */
  def footers(
      files: HadoopFsRelation,
      all: Seq[FileStatus],
      limits: Limits,
      conf: Configuration): Seq[(FileStatus, FileFooter)] =
    reader(files.fileFormat).toList.flatMap { read =>
      outcome(start(all, limits)((file, _) => FileFooters.cached(file)(read(_, conf))), limits.until).footers
    }

  /** The files of a relation, or of some of its partitions; None if listing them may take long. */
  def list(
      session: Compat.Session,
      files: HadoopFsRelation,
      until: Long,
      partitions: Seq[Expression] = Nil): Option[Seq[PartitionDirectory]] =
    files.location match {
      case _ if FileListing.isRefused(files) => None
      case listed: PartitioningAwareFileIndex => Some(listed.listFiles(partitions, Nil).toList)
      case catalog: CatalogFileIndex =>
        await(
          pool.submit(() =>
            if (FileListing.needsNoJob(session, catalog, partitions)) Some(catalog.listFiles(partitions, Nil).toList)
            else None),
          until).toOption.flatten
      case _ => None
    }

  /** Start to read some evenly spaced files; `read` gets the file and its position among these. */
  private def start(files: Seq[FileStatus], limits: Limits)(read: (FileStatus, Int) => FileFooter): Reading = {
    val all = files.toIndexedSeq
    val count = math.min(math.max(limits.maxFiles, 0), all.length)
    val spent = new AtomicLong
    val reading = (0 until count).map { i =>
      val file = all((i.toLong * all.length / count).toInt)
      file -> pool.submit(new Callable[FileFooter] {
        override def call(): FileFooter = {
          if (System.nanoTime >= limits.until || spent.get >= limits.maxBytes) throw new TimeoutException
          val bytes = SparkHadoopUtil.get.getFSBytesReadOnThreadCallback()
          try read(file, i)
          finally spent.addAndGet(bytes())
        }
      })
    }
    Reading(reading, spent)
  }

  private def outcome(reading: Reading, until: Long): Outcome = {
    val done = reading.files.map { case (file, future) => file -> await(future, until, giveUp = false) }
    val problems = done.collect { case (file, Left(error)) if !isLate(error) => file -> error }
    Outcome(
      done.collect { case (file, Right(footer)) => file -> footer },
      done.count(_._2.left.exists(isLate)),
      problems.headOption.map { case (file, error) =>
        s"${problems.length} of ${done.length} footers cannot be read: ${file.getPath.getName}: ${message(error)}"
      }
    )
  }

  /**
   * The result of a future, or its error or a timeout. `giveUp`: a late result is not needed, so the task is cancelled.
   */
  def await[T](future: Future[T], until: Long, giveUp: Boolean = true): Either[Throwable, T] =
    try Right(future.get(math.max(0, until - System.nanoTime), TimeUnit.NANOSECONDS))
    catch {
      case failed: ExecutionException => Left(failed.getCause)
      case error: Exception =>
        if (giveUp) future.cancel(true)
        Left(error)
    }

  private def isLate(error: Throwable): Boolean = error.isInstanceOf[TimeoutException]

  def message(error: Throwable): String =
    Support.cut(String.valueOf(error.getMessage).split("\n").head) match {
      case "null" => Support.className(error)
      case text => text
    }

  private def facts(
      output: Seq[Attribute],
      all: Seq[FileStatus],
      reading: Reading,
      until: Long,
      partitions: Map[String, ColumnFacts],
      caseSensitive: Boolean): NodeFacts = {
    val read = outcome(reading, until)
    val (footers, bytes) = (read.footers, reading.spent.get)
    val total = all.map(_.getLen.toDouble).sum
    val late = if (read.late > 0) Some(s"${read.late} footers came too late") else None
    val note = Seq(read.problem, late).flatten.reduceOption(_ + "; " + _)
    if (footers.isEmpty && all.nonEmpty) NodeFacts(None, Some(total), "size", note = note, read = bytes)
    else {
      val complete = footers.length == all.length
      val scale = if (complete) 1.0 else total / footers.map(_._1.getLen.toDouble).sum
      val columns = output.toList.flatMap { attribute =>
        partitions.get(attribute.name)
          .orElse(column(attribute, footers.map(_._2), scale, caseSensitive)).map(attribute -> _)
      }
      val rows = footers.map(_._2.rows.toDouble).sum * scale
      NodeFacts(Some(rows), Some(total), "footers", complete, columns, note = note, read = bytes)
    }
  }

  /** The statistics of partition columns, from the directories. */
  private def partitionColumns(
      files: HadoopFsRelation,
      directories: Seq[PartitionDirectory]): Map[String, ColumnFacts] = {
    val filled = directories.filter(_.files.exists(_.fileStatus.getLen > 0))
    files.partitionSchema.fields.zipWithIndex.map { case (field, i) =>
      val values = filled.map(_.values).filterNot(_.isNullAt(i)).map(_.get(i, field.dataType)).distinct
      val bounds = values.map(NodeFacts.bound)
      def extreme(upper: Boolean) = if (bounds.isEmpty) None else bounds.reduce(NodeFacts.extreme(_, _, upper))
      val nulls = if (filled.exists(_.values.isNullAt(i))) None else Some(0.0)
      field.name -> ColumnFacts(Some(values.length.toDouble), extreme(upper = false), extreme(upper = true), nulls)
    }.toMap
  }

  /** The rows of text files: their bytes divided by the width of the first lines. */
  private def lines(all: Seq[FileStatus], sampled: Option[Future[TextRows.Sample]], until: Long): NodeFacts = {
    val total = all.map(_.getLen.toDouble).sum
    val unknown = NodeFacts(None, Some(total), "size")
    sampled.fold(unknown.copy(rows = Some(0), exact = true, source = RowWidth)) { sample =>
      await(sample, until) match {
        case Right(sample) if sample.bytes > 0 && sample.rows > 0 =>
          val rows = math.rint(total / sample.bytes * sample.rows)
          unknown.copy(rows = Some(rows), source = RowWidth, read = sample.bytes.toLong)
        case Right(_) => unknown
        case Left(error) =>
          unknown.copy(note = Some(s"${all.head.getPath.getName} cannot be read: ${message(error)}"))
      }
    }
  }

  private val RowWidth = "size / row width"

  private def column(
      attribute: Attribute,
      footers: Seq[FileFooter],
      scale: Double,
      caseSensitive: Boolean): Option[ColumnFacts] = {
    val found = footers.filter(_.rows > 0).map(_.column(attribute.name, caseSensitive))
    if (found.isEmpty || found.exists(_.isEmpty)) None
    else Some(found.flatten.reduce(FileFooter.merge)).map { merged =>
      val (min, max) =
        (merged.min.flatMap(fit(attribute, merged.unit, _)), merged.max.flatMap(fit(attribute, merged.unit, _)))
      val rows = footers.map(_.rows.toDouble).sum
      val filled = rows - merged.nulls.getOrElse(0.0)
      def average(bytes: Double) = math.ceil(bytes / rows).toLong
      // Without the sum of lengths at least Spark's default size: a file may store repeated values only once.
      val length = merged.lengths.map(bytes => math.max(1L, average(bytes)))
        .orElse(merged.text.map(bytes => math.max(attribute.dataType.defaultSize.toLong, average(bytes))))
      ColumnFacts(merged.distinct.estimate(filled * scale), min, max, merged.nulls.map(_ * scale), length)
    }
  }

  /** A bound in the form of the column's type; None if the reader would convert the file's type to it. */
  private def fit(attribute: Attribute, unit: String, bound: Any): Option[Any] = {
    import org.apache.spark.sql.types._
    (attribute.dataType, bound, unit) match {
      case (_: IntegralType, n: Long, "") => Some(n)
      case (DateType, n: Long, FooterColumn.days) => Some(n)
      case (TimestampType | TimestampNTZType, n: Long, FooterColumn.micros) => Some(n)
      case (_: FractionalType, n: Long, "") => Some(n.toDouble)
      case (_: FractionalType, n: Double, _) => Some(n)
      case (BooleanType, flag: Boolean, _) => Some(flag)
      case _ => None
    }
  }
}
