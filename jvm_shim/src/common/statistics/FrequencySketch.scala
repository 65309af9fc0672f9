package org.apache.spark.sql.pyjoinopt

import java.io.ByteArrayOutputStream
import java.nio.ByteBuffer
import java.util.Base64
import java.util.zip.DeflaterOutputStream

import com.fasterxml.jackson.core.JsonGenerator

import org.apache.spark.sql.{functions => f, Column}
import org.apache.spark.sql.types._

/**
 * How often the values of a column occur, in few counters: the sketch of Alon, Matias and Szegedy with hashed counters
 * (fast AGMS). `estimation/model/frequency_sketch.py` has the theory and the use.
 *
 * Each value has a sign and, in each of `Depth` rows, a counter among `Width`. A counter is the sum of the signs of its
 * rows, which is the difference of two of Spark's count-min sketches: of the values with either sign. The sum of the
 * two counts all rows of a counter, so its maximum is an upper bound of the rows with the most frequent value, in each
 * row of the sketch, whatever the hash functions are.
 *
 * Law: values of one `kind` that Spark takes as equal have the same counters in the sketches of all columns.
 */
private[pyjoinopt] final case class FrequencySketch(kind: String, rows: Long, most: Long, counters: Array[Long]) {

  def write(out: JsonGenerator): Unit = {
    out.writeObjectFieldStart("frequencies")
    out.writeStringField("kind", kind)
    out.writeNumberField("rows", rows)
    out.writeStringField("counters", Base64.getEncoder.encodeToString(compressed))
    out.writeEndObject()
  }

  private def compressed: Array[Byte] = {
    val numbers = ByteBuffer.allocate(counters.length * 8)
    counters.foreach(numbers.putLong(_))
    val bytes = new ByteArrayOutputStream
    val deflater = new DeflaterOutputStream(bytes)
    deflater.write(numbers.array)
    deflater.close()
    bytes.toByteArray
  }
}

private[pyjoinopt] object FrequencySketch {
  private val Depth = 5
  private val Width = 512

  /** Spark derives the width (2 / eps) and the depth (-log2 of 1 - confidence, rounded up) from these. */
  private val Eps = 2.0 / Width
  private val Confidence = 0.95
  private val Seed = 1
  private val SignSeed = 7919

  /** How many aggregates a column has. */
  val Aggregates = 2

  /** What values are compared as; None for types that are rarely keys, or whose equality is not that of their bytes. */
  def kind(dataType: DataType): Option[String] = dataType match {
    case _: IntegralType => Some("whole")
    case DateType => Some("date")
    case text if text == StringType => Some("text")
    case _ => None
  }

  /** The hash of a value that is not NULL: the same for equal values of one kind, in all relations. */
  def hash(column: Column, kind: String): Column = f.xxhash64(comparable(column, kind))

  /** Whether the sign of a value is negative. */
  def isNegative(column: Column, kind: String): Column = f.xxhash64(f.lit(SignSeed), comparable(column, kind)) < 0

  private def comparable(column: Column, kind: String): Column =
    if (kind == "whole") column.cast(LongType) else column

  /** The two of Spark's sketches that make one, from the hash of a value, which is NULL for NULL, and its sign. */
  def aggregates(hash: Column, isNegative: Column): List[Column] =
    for (wanted <- List(!isNegative, isNegative))
      yield f.count_min_sketch(f.when(wanted, hash), f.lit(Eps), f.lit(Confidence), f.lit(Seed))

  /** The sketch of a column, from the two that Spark has serialised; None if they have another shape. */
  def read(kind: String, positive: Array[Byte], negative: Array[Byte]): Option[FrequencySketch] =
    for ((a, rowsOfA) <- table(positive); (b, rowsOfB) <- table(negative)) yield {
      val all = a.zip(b).map { case (x, y) => x + y }
      val most = all.grouped(Width).map(_.max).min
      FrequencySketch(kind, rowsOfA + rowsOfB, most, a.zip(b).map { case (x, y) => x - y })
    }

  /** The counters and the number of rows: version, rows, depth, width, a number for each row, counters by row. */
  private def table(sketch: Array[Byte]): Option[(Array[Long], Long)] = {
    val in = ByteBuffer.wrap(sketch)
    val fits = sketch.length == 20 + 8 * Depth * (Width + 1)
    if (!fits || in.getInt() != 1) None
    else {
      val rows = in.getLong()
      if (in.getInt() != Depth || in.getInt() != Width) None
      else {
        val at = 20 + 8 * Depth
        Some((Array.tabulate(Depth * Width)(i => in.getLong(at + 8 * i)), rows))
      }
    }
  }
}
