package org.apache.spark.sql.pyjoinopt

import com.fasterxml.jackson.core.JsonGenerator

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{ColumnStat, Histogram, Statistics}
import org.apache.spark.sql.types.Decimal

/**
 * The statistics of a column. Bounds are Long for integers, dates (days) and timestamps (microseconds), Double for
 * fractions and decimals, or Boolean; text has none. `mostCommon` are the most common values (text as String), each
 * with its share of all rows; `most` bounds the rows with the most common value, if all rows were counted.
 * `frequencies` summarises how often values occur; `keyThreshold` is that of the column's KeySample.
 */
private[pyjoinopt] final case class ColumnFacts(
    ndv: Option[Double] = None,
    min: Option[Any] = None,
    max: Option[Any] = None,
    nulls: Option[Double] = None,
    avgLen: Option[Long] = None,
    maxLen: Option[Long] = None,
    histogram: Option[Histogram] = None,
    mostCommon: Seq[(Any, Double)] = Nil,
    most: Option[Double] = None,
    frequencies: Option[FrequencySketch] = None,
    keyThreshold: Option[Long] = None)

/**
 * The statistics of a node's output, and their source. `files` are the files that the node reads, `whole` those without
 * its filters on partition columns; `pruned`: the statistics are those after these filters. `note` is a weakness of the
 * statistics, `read` the number of bytes that were read for them. `keys` are the declared keys of the table.
 *
 * Law: an unknown number is absent, never a default. `exact`: all rows were counted.
 */
private[pyjoinopt] final case class NodeFacts(
    rows: Option[Double],
    bytes: Option[Double],
    source: String,
    exact: Boolean = false,
    columns: Seq[(Attribute, ColumnFacts)] = Nil,
    files: Option[FileIdentity] = None,
    note: Option[String] = None,
    read: Long = 0,
    pruned: Boolean = false,
    whole: Option[FileIdentity] = None,
    keys: Seq[Seq[String]] = Nil) {

  def write(out: JsonGenerator, number: Attribute => Option[Int]): Unit = {
    out.writeStartObject()
    NodeFacts.writeOption(out, "rows", rows)
    NodeFacts.writeOption(out, "bytes", bytes)
    out.writeStringField("source", source)
    out.writeBooleanField("exact", exact)
    note.foreach(text => out.writeStringField("note", Support.cut(text, 500)))
    if (read > 0) out.writeNumberField("read", read)
    if (pruned) out.writeBooleanField("pruned", true)
    for ((field, identity) <- Seq("files" -> files, "whole" -> whole); known <- identity) {
      out.writeFieldName(field)
      known.write(out)
    }
    if (keys.nonEmpty) {
      out.writeArrayFieldStart("keys")
      keys.foreach { key =>
        out.writeStartArray()
        key.foreach(out.writeString)
        out.writeEndArray()
      }
      out.writeEndArray()
    }
    out.writeObjectFieldStart("columns")
    for ((attribute, facts) <- columns; n <- number(attribute)) {
      out.writeObjectFieldStart(n.toString)
      facts.ndv.foreach(out.writeNumberField("ndv", _))
      facts.min.foreach(NodeFacts.writeBound(out, "min", _))
      facts.max.foreach(NodeFacts.writeBound(out, "max", _))
      facts.nulls.foreach(out.writeNumberField("nulls", _))
      facts.avgLen.foreach(out.writeNumberField("avgLen", _))
      facts.maxLen.foreach(out.writeNumberField("maxLen", _))
      facts.most.foreach(out.writeNumberField("most", _))
      facts.frequencies.foreach(_.write(out))
      facts.keyThreshold.foreach(out.writeNumberField("keyThreshold", _))
      facts.histogram.foreach(NodeFacts.writeBins(out, _))
      if (facts.mostCommon.nonEmpty) NodeFacts.writeMostCommon(out, facts.mostCommon)
      out.writeEndObject()
    }
    out.writeEndObject()
    out.writeEndObject()
  }
}

private[pyjoinopt] object NodeFacts {

  def of(statistics: Statistics, source: String, exact: Boolean = false): NodeFacts =
    NodeFacts(
      statistics.rowCount.map(_.toDouble),
      Some(statistics.sizeInBytes.toDouble),
      source,
      exact,
      statistics.attributeStats.toList.map { case (attribute, stat) => attribute -> column(stat) }
    )

  private def column(stat: ColumnStat): ColumnFacts =
    ColumnFacts(
      stat.distinctCount.map(_.toDouble),
      stat.min.flatMap(bound),
      stat.max.flatMap(bound),
      stat.nullCount.map(_.toDouble),
      stat.avgLen,
      stat.maxLen,
      stat.histogram
    )

  /** The bound of a value in Catalyst's internal form. */
  def bound(value: Any): Option[Any] = value match {
    case n: Byte => Some(n.toLong)
    case n: Short => Some(n.toLong)
    case n: Int => Some(n.toLong)
    case n: Long => Some(n)
    case n: Float if !n.isNaN && !n.isInfinite => Some(n.toDouble)
    case n: Double if !n.isNaN && !n.isInfinite => Some(n)
    case n: Decimal => Some(n.toDouble)
    case flag: Boolean => Some(flag)
    case _ => None
  }

  /** The lower (or, with `upper`, the higher) of two bounds; none if they are of different kinds. */
  def extreme(a: Option[Any], b: Option[Any], upper: Boolean): Option[Any] = (a, b) match {
    case (Some(x: Long), Some(y: Long)) => Some(if (upper) math.max(x, y) else math.min(x, y))
    case (Some(x: Double), Some(y: Double)) => Some(if (upper) math.max(x, y) else math.min(x, y))
    case (Some(x: Boolean), Some(y: Boolean)) => Some(if (upper) x || y else x && y)
    case _ => None
  }

  private def writeOption(out: JsonGenerator, field: String, value: Option[Double]): Unit = {
    out.writeFieldName(field)
    value.fold(out.writeNull())(out.writeNumber(_: Double))
  }

  /** The rows of a bin, and for each bin the lowest value, the highest value and the distinct count. */
  private def writeBins(out: JsonGenerator, histogram: Histogram): Unit = {
    out.writeNumberField("height", histogram.height)
    out.writeArrayFieldStart("bins")
    for (bin <- histogram.bins) {
      out.writeStartArray()
      out.writeNumber(bin.lo)
      out.writeNumber(bin.hi)
      out.writeNumber(bin.ndv)
      out.writeEndArray()
    }
    out.writeEndArray()
  }

  private def writeMostCommon(out: JsonGenerator, mostCommon: Seq[(Any, Double)]): Unit = {
    out.writeArrayFieldStart("heavy")
    mostCommon.foreach { case (value, share) =>
      out.writeStartObject()
      value match {
        case text: String => out.writeStringField("value", text)
        case other => writeBound(out, "value", other)
      }
      out.writeNumberField("share", share)
      out.writeEndObject()
    }
    out.writeEndArray()
  }

  private def writeBound(out: JsonGenerator, field: String, value: Any): Unit = value match {
    case n: Long => out.writeNumberField(field, n)
    case n: Double => out.writeNumberField(field, n)
    case flag: Boolean => out.writeBooleanField(field, flag)
    case _ =>
  }
}
