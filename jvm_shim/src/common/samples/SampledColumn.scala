package org.apache.spark.sql.pyjoinopt

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.catalyst.plans.logical.{Histogram, HistogramBin}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** One column of a sample: the frequencies of its values. */
private[pyjoinopt] final class SampledColumn(rows: Array[UnsafeRow], ordinal: Int, dataType: DataType) {
  private val simple = dataType match {
    case BinaryType => false
    case _: AtomicType => true
    case _ => false
  }
  private lazy val counts: Map[Any, Int] =
    if (!simple) Map.empty
    else {
      val found = new mutable.HashMap[Any, Int]
      rows.foreach { row =>
        if (!row.isNullAt(ordinal)) {
          val value = row.get(ordinal, dataType)
          found.put(value, found.getOrElse(value, 0) + 1)
        }
      }
      found.toMap
    }

  /** A code for each row: equal for equal values, 0 for NULL; None if the values are not comparable. */
  def codes: Option[Array[Int]] =
    if (!simple) None
    else {
      val numbers = new mutable.HashMap[Any, Int]
      Some(rows.map { row =>
        if (row.isNullAt(ordinal)) 0 else numbers.getOrElseUpdate(row.get(ordinal, dataType), numbers.size + 1)
      })
    }

  def distinct: Int = counts.size

  /** The rows of the most frequent value; None if values that Spark takes as equal may differ here. */
  def most: Option[Double] =
    if (SampledColumn.hasPlainEquality(dataType)) Some(if (counts.isEmpty) 0.0 else counts.values.max.toDouble)
    else None

  /** Whether there are enough values to decide, all different. */
  def unique: Boolean = simple && counts.size >= SampledColumn.MinDistinct && counts.values.forall(_ == 1)

  /** The most common values, the most frequent first, each with its share of all rows. */
  def mostCommon: Seq[(Any, Double)] = {
    val least = math.max(SampledColumn.MinFrequency, rows.length / 1000)
    val frequent = counts.toList.filter(_._2 >= least).sortBy { case (value, n) => (-n, value.toString) }
    frequent.take(SampledColumn.MaxCommonValues).flatMap {
      case (text: UTF8String, n) => if (text.numBytes <= 200) Some(text.toString -> n.toDouble / rows.length) else None
      case (value, n) => NodeFacts.bound(value).map(_ -> n.toDouble / rows.length)
    }
  }

  /**
   * An equi-height histogram of the sample; the distinct counts of its bins are scaled so that they sum up to `ndv`.
   */
  def histogram(ndv: Double): Option[Histogram] = {
    val values = counts.toList.flatMap { case (value, n) =>
      NodeFacts.bound(value).collect { case x: Long => x.toDouble -> n; case x: Double => x -> n }
    }.sortBy(_._1)
    val sorted = values.flatMap { case (x, n) => List.fill(n)(x) }.toArray
    val count = math.min(SampledColumn.MaxBins, sorted.length / SampledColumn.MinRowsOfBin)
    if (count < 2) None
    else {
      val bins = (0 until count).map { i =>
        val (from, to) = ((i.toLong * sorted.length / count).toInt, ((i + 1L) * sorted.length / count).toInt)
        (sorted(from), sorted(to - 1), sorted.slice(from, to).distinct.length)
      }
      val (single, wide) = bins.partition(b => b._1 == b._2)
      val scale = math.max(1.0, (ndv - single.map(_._1).distinct.length) / math.max(1, wide.map(_._3).sum))
      Some(Histogram(
        sorted.length.toDouble / count,
        bins.map { case (low, high, n) =>
          HistogramBin(low, high, if (low == high) 1L else math.max(1L, (n * scale).round))
        }.toArray))
    }
  }
}

private[pyjoinopt] object SampledColumn {

  /**
   * Whether Spark and the JVM agree on equality: not for fractions (NaN equals itself) and for text with a collation.
   */
  def hasPlainEquality(dataType: DataType): Boolean = dataType match {
    case ByteType | ShortType | IntegerType | LongType | BooleanType | DateType | TimestampType | TimestampNTZType =>
      true
    case _: DecimalType => true
    case text => text == StringType
  }

  private val MinDistinct = 500
  private val MinFrequency = 5
  private val MaxCommonValues = 20
  private val MaxBins = 254
  private val MinRowsOfBin = 20
}
