package org.apache.spark.sql.pyjoinopt

import java.util.concurrent.Callable

import scala.collection.mutable
import scala.util.Random

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
 * time, the rows kept are a uniform sample of those read so far.
 *
 * Laws: formats and listings as for FileStatistics. The number of pieces, bytes and values is bounded for any size of
 * the table, and only the requested columns are read.
 */
private[pyjoinopt] object SampleReader {

  /**
   * How many `rows` to draw of some partitions, from at most so many `pieces`, `bytes`, `values` (rows times columns).
   */
  final case class Budget(
      rows: Int,
      pieces: Int,
      bytes: Long,
      values: Long,
      until: Long,
      partitions: Seq[Expression] = Nil)

  final case class Drawn(files: FileIdentity, sample: Option[RelationSample], read: Long, note: Option[String])

  private final case class Piece(
      file: FileStatus,
      partition: InternalRow,
      start: Long,
      length: Long,
      weight: Double,
      bytes: Double)

  private final case class Read(rows: Seq[UnsafeRow], seen: Long, ended: Boolean, bytes: Long)

  def read(session: Compat.Session, relation: LogicalRelation, wanted: Set[String], budget: Budget): Option[Drawn] =
    relation.relation match {
      case files: HadoopFsRelation if FileStatistics.reads(files) =>
        FileStatistics.list(session, files, budget.until, budget.partitions).map { directories =>
          val listed = for (directory <- directories; file <- directory.files if file.fileStatus.getLen > 0)
            yield (file.fileStatus, directory.values)
          val identity = FileIdentity.of(relation, files, listed.map(_._1))
          draw(session, files, listed, wanted, budget)(identity)
        }
      case _ => None
    }

  private def draw(
      session: Compat.Session,
      files: HadoopFsRelation,
      listed: Seq[(FileStatus, InternalRow)],
      wanted: Set[String],
      budget: Budget)(identity: FileIdentity): Drawn = {
    val partitioned = files.partitionSchema.fieldNames.toSet
    val required = StructType(files.dataSchema.filter(f => wanted(f.name) && !partitioned(f.name)))
    val columns = StructType(required ++ files.partitionSchema)
    val (pieces, all) = cut(session, files, listed, budget, required.fieldNames.toSeq)
    val chosen = choose(pieces, budget)
    val open = new FileRows(session, files, required)
    val conf = session.sessionState.conf.clone()
    val weights = chosen.map(_._2).sum
    val waiting = chosen.map { case (piece, weight) =>
      val quota = math.ceil(budget.rows * weight / weights).toInt
      val most = math.max(quota.toLong, (budget.values * weight / weights / (columns.length + 1)).toLong)
      FileStatistics.pool.submit(new Callable[Read] {
        override def call(): Read = SQLConf.withExistingConf(conf)(one(open, piece, quota, most, columns, budget.until))
      })
    }
    val done = waiting.map(FileStatistics.await(_, budget.until))
    val problem = done.collectFirst { case Left(error) => error }
    val read = done.collect { case Right(read) => read }
    val rows = read.flatMap(_.rows).toArray
    val seen = read.map(_.seen).sum
    val whole = all && chosen.length == pieces.length && problem.isEmpty && read.forall(_.ended)
    val complete = whole && rows.length == seen
    val places = if (whole) 0 else read.length
    val sample =
      if (rows.isEmpty && !complete) None else Some(new RelationSample(columns, rows, seen, complete, places))
    val note = problem.map(error => s"part of the sample cannot be read: ${FileStatistics.message(error)}")
    if (note.isDefined) sample.foreach(_.stored = true) // incomplete, so it must not be stored
    Drawn(identity, sample, read.map(_.bytes).sum, note)
  }

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
      val limits = FileStatistics.Limits(MaxFooters, budget.bytes, budget.until)
      val footers = FileStatistics.footers(files, listed.map(_._1), limits, conf)
      val partitions = listed.toMap
      val sensitive = session.sessionState.conf.caseSensitiveAnalysis
      val shares = footers.map { case (_, footer) => footer.share(columns, sensitive) }
      val pieces = for (((file, footer), share) <- footers.zip(shares); part <- footer.parts if part.rows > 0)
        yield Piece(file, partitions(file), part.start, part.length, part.rows.toDouble, part.length * share)
      (pieces, footers.length == listed.length)
    }

  private val MaxFooters = 64

  /** The size of the rows that are kept of one piece (bytes). */
  private val MaxBytesOfPiece = 4L << 20

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
      val times = new mutable.LinkedHashMap[Int, Double]
      var (at, end) = (0, pieces.head.weight)
      (0 until count).foreach { i =>
        val position = (i + 0.5) * total / count
        while (end < position && at < pieces.length - 1) {
          at += 1
          end += pieces(at).weight
        }
        times.put(at, times.getOrElse(at, 0.0) + 1)
      }
      times.toList.map { case (i, n) => pieces(i) -> n }
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
      until: Long): Read = {
    val bytes = SparkHadoopUtil.get.getFSBytesReadOnThreadCallback()
    val rows = open(piece.file, piece.partition, piece.start, piece.length)
    val closes = rows match {
      case closeable: AutoCloseable => Some(closeable)
      case _ => None
    }
    try {
      val copy = RelationSample.copier(columns)
      val random = new Random(piece.file.getPath.getName.hashCode * 31L + piece.start)
      val kept = new mutable.ArrayBuffer[UnsafeRow]
      var (seen, held, places) = (0L, 0L, quota)
      def keep(row: InternalRow): UnsafeRow = {
        val copied = copy(row)
        held += copied.getSizeInBytes
        if (held > MaxBytesOfPiece && kept.length < places) places = kept.length + 1 // few rows, but wide ones
        copied
      }
      def enough = closes.isDefined && (seen >= most || seen % 1024 == 0 && System.nanoTime >= until)
      while (!enough && rows.hasNext) {
        val row = rows.next()
        if (kept.length < places) kept += keep(row)
        else {
          val place = (random.nextDouble() * (seen + 1)).toLong
          if (place < places) kept(place.toInt) = keep(row)
        }
        seen += 1
      }
      Read(kept.toList, seen, ended = !rows.hasNext, bytes())
    } finally closes.foreach(_.close())
  }
}
