package org.apache.spark.sql.pyjoinopt

import java.time.{Instant, LocalDate, LocalDateTime, ZonedDateTime, ZoneId, ZoneOffset}
import java.time.format.{DateTimeFormatter, DateTimeFormatterBuilder}
import java.time.temporal.{ChronoUnit, TemporalAccessor}

import scala.util.Try

import org.apache.spark.sql.catalyst.plans.logical.{Histogram, HistogramBin}
import org.apache.spark.sql.types._

/**
 * The statistics of one column of `pg_stats` in the form of this project.
 *
 * PostgreSQL has the most common values with their shares, and an equi-height histogram of all other values. Here the
 * histogram is of all values. Both parts together are a distribution: a mass at each common value, and the same mass
 * for each bucket, spread evenly over it. Its quantiles are the bounds of the bins.
 */
private[pyjoinopt] object PostgresColumn {

  def facts(column: PostgresStatistics.Column, dataType: DataType, rows: Double): ColumnFacts = {
    val read = reader(dataType)
    val common = column.common.zip(column.shares).flatMap { case (text, share) => read(text).map(_ -> share) }
    val bounds = column.bounds.flatMap(read(_))
    val filled = 1 - column.nulls
    val distinct =
      if (column.distinct > 0) Some(column.distinct)
      else if (column.distinct < 0) Some(-column.distinct * rows)
      else None
    val isRead = common.length == column.common.length && bounds.length == column.bounds.length
    val ordered = if (isRead) (common.map(_._1) ++ bounds).flatMap(number).sorted else Array.empty[Double]
    def bound(value: Double): Any = if (isWhole(dataType)) value.toLong else value
    ColumnFacts(
      distinct,
      ordered.headOption.map(bound),
      ordered.lastOption.map(bound),
      Some(column.nulls * rows),
      Some(math.max(1L, column.width.round)),
      histogram =
        if (ordered.isEmpty) None
        else histogram(
          common.toSeq.flatMap { case (value, share) => number(value).map(_ -> share) },
          bounds.flatMap(number).toSeq,
          filled,
          distinct.getOrElse(1.0),
          rows),
      mostCommon = common.take(MaxCommonValues).toSeq
    )
  }

  private val MaxCommonValues = 100
  private val Bins = 100

  /**
   * An equi-height histogram of all values.
   *
   * @param points common values, each with its share of all rows
   * @param bounds of buckets with equally many of the other rows
   * @param filled the share of rows that are not NULL
   * @param distinct the number of distinct values
   */
  def histogram(
      points: Seq[(Double, Double)],
      bounds: Seq[Double],
      filled: Double,
      distinct: Double,
      rows: Double): Option[Histogram] = {
    val buckets = math.max(0, bounds.length - 1)
    val rest = math.max(0.0, filled - points.map(_._2).sum)
    val sorted = bounds.sorted.toArray
    val steps = (points.map(_._1) ++ bounds).distinct.sorted.toArray
    val at = points.groupBy(_._1).map { case (value, same) => value -> same.map(_._2).sum }
    // The mass and the distinct values up to a step, without and with the common value there.
    val spread = steps.map(bucketsUpTo(sorted, _) / math.max(1, buckets))
    val common = steps.scanLeft(0.0)((sum, x) => sum + at.getOrElse(x, 0.0))
    val counted = steps.scanLeft(0.0)((sum, x) => sum + (if (at.contains(x)) 1 else 0))
    val others = math.max(0.0, distinct - at.size)
    val total = common.last + (if (buckets > 0) rest else 0.0)
    if (steps.length < 2 || total <= 0) None
    else {
      def below(i: Int) = common(i) + rest * spread(i)
      def through(i: Int) = common(i + 1) + rest * spread(i)
      val quantiles = (0 to Bins).map { k =>
        val wanted = total * k / Bins
        val i = steps.indices.find(through(_) >= wanted - 1e-12).getOrElse(steps.length - 1)
        if (i == 0 || below(i) <= wanted) (steps(i), counted(i + 1) + others * spread(i))
        else {
          val part = (wanted - through(i - 1)) / (below(i) - through(i - 1))
          val inside = spread(i - 1) + part * (spread(i) - spread(i - 1))
          (steps(i - 1) + part * (steps(i) - steps(i - 1)), counted(i) + others * inside)
        }
      }
      val bins = quantiles.zip(quantiles.tail).map { case ((low, before), (high, now)) =>
        HistogramBin(low, high, if (low == high) 1L else math.max(1L, (now - before).round))
      }
      Some(Histogram(rows * filled / Bins, bins.toArray))
    }
  }

  /** How many buckets are below a value, with the part of the one that it is in. */
  private def bucketsUpTo(bounds: Array[Double], value: Double): Double = {
    val above = bounds.indexWhere(_ > value)
    if (bounds.length < 2 || above == 0) 0.0
    else if (above < 0) bounds.length - 1.0
    else above - 1 + (value - bounds(above - 1)) / (bounds(above) - bounds(above - 1))
  }

  private def number(value: Any): Option[Double] = value match {
    case n: Long => Some(n.toDouble)
    case n: Double => Some(n)
    case _ => None
  }

  private def isWhole(dataType: DataType): Boolean = dataType match {
    case ByteType | ShortType | IntegerType | LongType | DateType | TimestampType | TimestampNTZType => true
    case _ => false
  }

  /** PostgreSQL's text of a value -> the value of a bound, or a text. Infinity, NaN and years before Christ are left out. */
  private def reader(dataType: DataType): String => Option[Any] = dataType match {
    case ByteType | ShortType | IntegerType | LongType => text => Try(text.toLong).toOption
    case FloatType | DoubleType | _: DecimalType => text =>
        Try(text.toDouble).toOption.filter(x => !x.isNaN && !x.isInfinite)
    case BooleanType => text => Map("t" -> true, "f" -> false).get(text)
    case DateType => text => Try(LocalDate.parse(text).toEpochDay).toOption
    case TimestampType => text => Try(moment(text, ZoneId.systemDefault)).toOption
    case TimestampNTZType => text => Try(moment(text, ZoneOffset.UTC)).toOption
    case StringType => Some(_)
    case _ => _ => None
  }

  private val Moment = new DateTimeFormatterBuilder().append(DateTimeFormatter.ISO_LOCAL_DATE).appendLiteral(' ')
    .append(DateTimeFormatter.ISO_LOCAL_TIME).optionalStart().appendOffset("+HH:mm", "+00").optionalEnd().toFormatter

  private def moment(text: String, zone: ZoneId): Long = {
    val parsed =
      Moment.parseBest(text, ZonedDateTime.from(_: TemporalAccessor), LocalDateTime.from(_: TemporalAccessor))
    val instant = parsed match {
      case local: LocalDateTime => local.atZone(zone).toInstant
      case other => Instant.from(other)
    }
    ChronoUnit.MICROS.between(Instant.EPOCH, instant)
  }
}
