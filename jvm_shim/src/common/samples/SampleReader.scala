package org.apache.spark.sql.pyjoinopt

import java.util.SplittableRandom
import java.util.concurrent.Callable

import scala.collection.mutable

import org.apache.hadoop.fs.FileStatus
import org.apache.hadoop.io.compress.{CompressionCodecFactory, SplittableCompressionCodec}

import org.apache.spark.deploy.SparkHadoopUtil
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, UnsafeRow}
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StructType

/**
 * Draws a sample of a table of files in the driver, without a Spark job.
 *
 * It reads a few pieces of the files, spread evenly over all rows: row groups of Parquet, stripes of ORC, ranges of
 * text. They are read by the reader of Spark's own scan, with its settings, casts and defaults of missing columns. The
 * number of rows of a piece is proportional to its share of all rows. They are drawn by reservoir sampling: at any
 * time, the rows kept are a uniform sample of those read so far. A small table is read whole if that is wanted.
 *
 * A random sample bounds the share of rows that fulfil a condition, whatever the order of the rows. Its places are drawn
 * independently, at one random row in each of as many equal parts of all rows, and read to their ends, so that each of
 * their rows has the same chance. The draw depends on the identity of the files only. It needs the rows of every piece,
 * and many pieces; where these are too many or too large there is none.
 *
 * Laws: formats and listings as for FileStatistics. The number of pieces, bytes and values is bounded for any size of
 * the table, and only the requested columns are read.
 */
private[pyjoinopt] object SampleReader {

  /**
   * How many `rows` to draw of some partitions, from at most so many `pieces`, `bytes`, `values` (rows times columns).
   * Of a table with at most `wholeRows`, all of them.
   */
  final case class Budget(
      rows: Int,
      pieces: Int,
      bytes: Long,
      values: Long,
      until: Long,
      partitions: Seq[Expression] = Nil,
      wholeRows: Int = 0,
      random: Boolean = false)

  final case class Drawn(files: FileIdentity, sample: Option[RelationSample], read: Long, note: Option[String])

  private final case class Piece(
      file: FileStatus,
      partition: InternalRow,
      start: Long,
      length: Long,
      weight: Double,
      bytes: Double)

  private final case class Read(rows: Seq[UnsafeRow], seen: Long, ended: Boolean, bytes: Long, runs: ColumnRuns)

  /** A sample with the first columns of which the table is small enough to be read whole; else with the very first. */
  def read(
      session: Compat.Session,
      relation: LogicalRelation,
      tries: Seq[Set[String]],
      budget: Budget): Option[Drawn] =
    relation.relation match {
      case files: HadoopFsRelation if FileStatistics.reads(files) =>
        FileStatistics.list(session, files, budget.until, budget.partitions).map { directories =>
          val listed = for (directory <- directories; file <- directory.files if file.fileStatus.getLen > 0)
            yield (file.fileStatus, directory.values)
          val identity = FileIdentity.of(relation, files, listed.map(_._1))
          draw(session, files, listed, tries, budget)(identity)
        }
      case _ => None
    }

  private def draw(
      session: Compat.Session,
      files: HadoopFsRelation,
      listed: Seq[(FileStatus, InternalRow)],
      columnSets: Seq[Set[String]],
      budget: Budget)(identity: FileIdentity): Drawn = {
    val partitioned = files.partitionSchema.fieldNames.toSet
    val tries = columnSets.map(names => StructType(files.dataSchema.filter(f => names(f.name) && !partitioned(f.name))))
    val (pieces, all) = cut(session, files, listed, budget, tries.head.fieldNames.toSeq)
    def isWhole(required: StructType) = all && pieces.map(_.bytes).sum <= budget.bytes &&
      pieces.map(_.weight).sum <= wholeRows(files, required, budget)
    val whole = tries.exists(isWhole)
    val required = tries.find(isWhole).getOrElse(tries.head)
    val columns = StructType(required ++ files.partitionSchema)
    val isRandom = budget.random && !whole && all && !TextRows.applies(files)
    val chosen =
      if (whole) pieces.map(p => p -> p.weight)
      else if (!budget.random) choose(pieces, budget)
      else if (isRandom) chooseRandomly(pieces, columns.length + 1, budget, identity.id)
      else Nil
    val open = new FileRows(session, files, required)
    val conf = session.sessionState.conf.clone()
    val weights = chosen.map(_._2).sum
    // The first rows of a few row groups do not represent all rows.
    def isShort = !TextRows.applies(files) && pieces.map(_.weight).sum * (columns.length + 1) <= MaxValues
    val toTheEnd = isRandom || chosen.length == pieces.length && isShort
    val waiting = chosen.map { case (piece, weight) =>
      val quota = if (whole) piece.weight.toInt else math.ceil(budget.rows * weight / weights).toInt
      val most =
        if (toTheEnd) Long.MaxValue
        else math.max(quota.toLong, (budget.values * weight / weights / (columns.length + 1)).toLong)
      FileStatistics.pool.submit(new Callable[Read] {
        override def call(): Read =
          SQLConf.withExistingConf(conf)(one(open, piece, quota, most, columns, budget.until, whole))
      })
    }
    val done = waiting.map(FileStatistics.await(_, budget.until))
    val problem = done.collectFirst { case Left(error) => error }
    val read = done.collect { case Right(read) => read }
    val rows = read.flatMap(_.rows).toArray
    val seen = read.map(_.seen).sum
    val ended = all && chosen.length == pieces.length && problem.isEmpty && read.forall(_.ended)
    val complete = ended && rows.length == seen
    val places = if (ended) 0 else read.length
    val starts = if (ended) Array.empty[Int] else read.map(_.rows.length).scanLeft(0)(_ + _).init.toArray
    val design =
      if (!isRandom || problem.nonEmpty || chosen.isEmpty) None
      else designOf(chosen.zip(read), if (chosen.length == pieces.length) 0 else weights.toInt)
    val useless = if (budget.random) design.isEmpty else rows.isEmpty
    val sample =
      if (useless && !complete) None
      else Some(new RelationSample(
        columns,
        rows,
        seen,
        complete,
        places,
        starts,
        design,
        ColumnRuns.mean(read.map(_.runs))))
    val note = problem.map(error => s"part of the sample cannot be read: ${FileStatistics.message(error)}").orElse {
      if (budget.random && design.isEmpty && !complete)
        Some("no random sample, which needs many places or would take too long")
      else None
    }
    if (problem.isDefined) sample.foreach(_.stored = true) // incomplete, so it must not be stored
    Drawn(identity, sample, read.map(_.bytes).sum, note)
  }

  /** How many rows a table may have to be read whole; none of text, whose rows are not known before. */
  private def wholeRows(files: HadoopFsRelation, columns: StructType, budget: Budget): Double =
    if (TextRows.applies(files)) 0 else math.min(budget.wholeRows, MaxWholeValues / (columns.length + 1))

  /** Rows times columns of a table all of whose row groups are sampled to their ends. */
  private val MaxValues = 8000000.0

  /** Rows times columns of a table that is read whole. */
  private val MaxWholeValues = 1500000.0

  // -- pieces ----------------------------------------------------------------------------------------------------

  /** The pieces of the files, and whether they cover all files. */
  private def cut(
      session: Compat.Session,
      files: HadoopFsRelation,
      listed: Seq[(FileStatus, InternalRow)],
      budget: Budget,
      columns: Seq[String]): (Seq[Piece], Boolean) =
    if (TextRows.applies(files)) textRanges(session, files, listed, budget)
    else {
      val conf = session.sessionState.newHadoopConfWithOptions(files.options)
      val most = if (budget.random) MaxFootersOfRandom else MaxFooters
      val limits = FileStatistics.Limits(most, budget.bytes, budget.until)
      val footers = FileStatistics.footers(files, listed.map(_._1), limits, conf)
      val partitions = listed.toMap
      val sensitive = session.sessionState.conf.caseSensitiveAnalysis
      val shares = footers.map { case (_, footer) => footer.share(columns, sensitive) }
      val pieces = for (((file, footer), share) <- footers.zip(shares); part <- footer.parts if part.rows > 0)
        yield Piece(file, partitions(file), part.start, part.length, part.rows.toDouble, part.length * share)
      (pieces, footers.length == listed.length)
    }

  private val MaxFooters = 64
  private val MaxFootersOfRandom = 1024

  /** The size of the rows that are kept of one piece (bytes). */
  private val MaxBytesOfPiece = 4L << 20

  /** The same of a piece of a table that is read whole. */
  private val MaxBytesOfWhole = 32L << 20

  /** Ranges of text files, evenly over all bytes; none of large files whose compression cannot be split. */
  private def textRanges(
      session: Compat.Session,
      files: HadoopFsRelation,
      listed: Seq[(FileStatus, InternalRow)],
      budget: Budget): (Seq[Piece], Boolean) = {
    val codecs = new CompressionCodecFactory(session.sessionState.newHadoopConfWithOptions(files.options))
    def packed(file: FileStatus) =
      Option(codecs.getCodec(file.getPath)).exists(!_.isInstanceOf[SplittableCompressionCodec])
    def piece(file: FileStatus, values: InternalRow, start: Long, length: Long, weight: Double) =
      Piece(file, values, start, math.min(length, file.getLen - start), weight, math.min(length, file.getLen).toDouble)
    val length = math.max(MinTextRange, budget.bytes / 64 / budget.pieces)
    val usable = listed.filter { case (file, _) => !packed(file) || file.getLen <= length }
    val total = usable.map(_._1.getLen).sum
    val all = usable.length == listed.length
    if (total <= length * budget.pieces && usable.length <= budget.pieces)
      (usable.map { case (file, values) => piece(file, values, 0, file.getLen, file.getLen.toDouble) }, all)
    else {
      val ends = usable.map(_._1.getLen).scanLeft(0L)(_ + _).tail.toIndexedSeq
      val pieces = (0 until budget.pieces).map { i =>
        val position = ((i + 0.5) * total / budget.pieces).toLong
        val at = ends.indexWhere(_ > position)
        val (file, values) = usable(at)
        val begin = position - (ends(at) - file.getLen)
        piece(file, values, if (packed(file)) 0 else math.max(0, math.min(begin, file.getLen - length)), length, 1)
      }
      (pieces.groupBy(p => (p.file.getPath, p.start)).values.map(_.head).toList, false)
    }
  }

  private val MinTextRange = 16L * 1024

  /**
   * Some of the pieces, each with its weight in the sample: evenly over all rows, as many as the budget of bytes
   * allows.
   */
  private def choose(pieces: Seq[Piece], budget: Budget): Seq[(Piece, Double)] =
    Iterator.iterate(budget.pieces)(_ / 2).takeWhile(_ >= 1).map(evenly(pieces, _)).toList match {
      case tries => tries.find(_.map(_._1.bytes).sum <= budget.bytes).getOrElse(tries.last)
    }

  private def evenly(pieces: Seq[Piece], count: Int): Seq[(Piece, Double)] =
    if (pieces.length <= count) pieces.map(p => p -> p.weight)
    else {
      val total = pieces.map(_.weight).sum
      drawn(pieces, (0 until count).map(i => (i + 0.5) * total / count))
    }

  /** The pieces with the rows at some positions, in ascending order, and how many of these each has. */
  private def drawn(pieces: Seq[Piece], positions: Seq[Double]): Seq[(Piece, Double)] = {
    val times = new mutable.LinkedHashMap[Int, Double]
    var (at, end) = (0, pieces.head.weight)
    positions.foreach { position =>
      while (end < position && at < pieces.length - 1) {
        at += 1
        end += pieces(at).weight
      }
      times.put(at, times.getOrElse(at, 0.0) + 1)
    }
    times.toList.map { case (i, n) => pieces(i) -> n }
  }

  /** With fewer draws the bound is of no use. */
  private val MinDraws = 48

  /**
   * All pieces, if they are few enough, or so many draws of pieces as the budget allows; each with its weight. None if
   * it allows too few. How many are drawn must not depend on which ones are: it is decided by the expected expense.
   */
  private def chooseRandomly(
      pieces: Seq[Piece],
      columns: Int,
      budget: Budget,
      seed: String): Seq[(Piece, Double)] = {
    val total = pieces.map(_.weight).sum
    def fits(bytes: Double, rows: Double) = bytes <= budget.bytes && rows * columns <= budget.values
    val (bytes, rows) = pieces.map(p => (p.bytes * p.weight / total, p.weight * p.weight / total)).unzip
    val draws = Iterator.iterate(budget.pieces)(_ * 7 / 8).takeWhile(_ >= MinDraws)
      .find(n => fits(bytes.sum * n, rows.sum * n))
    if (pieces.length <= draws.getOrElse(budget.pieces) && fits(pieces.map(_.bytes).sum, total))
      pieces.map(p => p -> p.weight)
    else draws.toList.flatMap { count =>
      val random = new SplittableRandom(hash(seed))
      drawn(pieces, (0 until count).map(i => (i + random.nextDouble()) * total / count))
    }
  }

  private def hash(text: String): Long = text.foldLeft(1125899906842597L)((h, c) => 31 * h + c)

  /** Whether every row of the places that were read had the same chance, and by how much places weigh differently. */
  private def designOf(read: Seq[((Piece, Double), Read)], draws: Int): Option[SampleDesign] = {
    val (weights, rows) = (read.map(_._1._2).sum, read.map(_._2.rows.length).sum)
    val whole = read.forall { case ((piece, _), r) => r.ended && r.seen == piece.weight.toLong && r.rows.nonEmpty }
    if (!whole) None
    else {
      val stretch = read.map { case ((_, weight), r) => weight / weights * rows / r.rows.length }.max
      Some(SampleDesign(draws, stretch))
    }
  }

  // -- rows ------------------------------------------------------------------------------------------------------

  /**
   * Rows of one piece. A reader of columnar files can be closed at any row. A reader of text closes its file at the end
   * of its range only, which is short.
   */
  private def one(
      open: FileRows,
      piece: Piece,
      quota: Int,
      most: Long,
      columns: StructType,
      until: Long,
      whole: Boolean): Read = {
    val bytes = SparkHadoopUtil.get.getFSBytesReadOnThreadCallback()
    val rows = open(piece.file, piece.partition, piece.start, piece.length)
    val closes = rows match {
      case closeable: AutoCloseable => Some(closeable)
      case _ => None
    }
    try {
      val copy = RelationSample.copier(columns)
      val random = new SplittableRandom(piece.file.getPath.getName.hashCode * 31L + piece.start)
      val kept = new mutable.ArrayBuffer[UnsafeRow]
      var (seen, copiedBytes, mostRows) = (0L, 0L, quota)
      val mostBytes = if (whole) MaxBytesOfWhole else MaxBytesOfPiece
      def keep(row: InternalRow): UnsafeRow = {
        val copied = copy(row)
        copiedBytes += copied.getSizeInBytes
        if (copiedBytes > mostBytes && kept.length < mostRows) mostRows = kept.length + 1 // wide rows: fewer are kept
        copied
      }
      val runs = new ColumnRuns(columns)
      def enough = closes.isDefined && (seen >= most || seen % 1024 == 0 && System.nanoTime >= until)
      while (!enough && rows.hasNext) {
        val row = rows.next()
        runs.add(row)
        if (kept.length < mostRows) kept += keep(row)
        else {
          val place = (random.nextDouble() * (seen + 1)).toLong
          if (place < mostRows) kept(place.toInt) = keep(row)
        }
        seen += 1
      }
      Read(kept.toList, seen, ended = !rows.hasNext, bytes(), runs)
    } finally closes.foreach(_.close())
  }
}
