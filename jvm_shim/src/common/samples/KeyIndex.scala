package org.apache.spark.sql.pyjoinopt

import java.util.HashMap

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.types._

/**
 * The row of each value of a key, which may have several columns. A row with NULL in one of them has no value.
 *
 * It serves estimates, so a key need not be perfect: of a hundred rows one may share its value with another row, such as
 * the hour of a day that has twenty-five.
 *
 * Integers of any width are compared as numbers. Keys that were numbered one by one are looked up in an array.
 */
private[pyjoinopt] trait KeyIndex {

  /** The number of the row with this value, or -1. The value of several columns is a list. */
  def apply(value: Any): Int
}

private[pyjoinopt] object KeyIndex {

  /** The index of some columns; None if these are no key, or if values that Spark takes as equal may differ here. */
  def of(rows: Array[UnsafeRow], columns: Seq[(Int, DataType)]): Option[KeyIndex] =
    if (columns.isEmpty || !columns.forall(c => SampledColumn.hasPlainEquality(c._2))) None
    else
      columns match {
        case Seq((ordinal, dataType)) if isInteger(dataType) || dataType == DateType =>
          numbered(rows, ordinal, dataType).getOrElse(hashed(rows, columns))
        case _ => hashed(rows, columns)
      }

  /** The value of some columns of a row in the form that indexes have; null if one of them is NULL. */
  def value(row: InternalRow, columns: Seq[(Int, DataType)]): Any = columns match {
    case Seq((ordinal, dataType)) => value(row, ordinal, dataType)
    case _ =>
      val values = columns.map { case (ordinal, dataType) => value(row, ordinal, dataType) }.toList
      if (values.contains(null)) null else values
  }

  def value(row: InternalRow, ordinal: Int, dataType: DataType): Any =
    if (row.isNullAt(ordinal)) null
    else
      dataType match {
        case ByteType => row.getByte(ordinal).toLong
        case ShortType => row.getShort(ordinal).toLong
        case IntegerType | DateType => row.getInt(ordinal).toLong
        case LongType => row.getLong(ordinal)
        case other => row.get(ordinal, other)
      }

  /** Whether values of both types may be compared through an index. */
  def comparable(one: DataType, other: DataType): Boolean = one == other || isInteger(one) && isInteger(other)

  private def isInteger(dataType: DataType): Boolean = dataType match {
    case ByteType | ShortType | IntegerType | LongType => true
    case _ => false
  }

  /** An index of numbers in a narrow range, which is None if they are no key; no result if there are wide gaps. */
  private def numbered(rows: Array[UnsafeRow], ordinal: Int, dataType: DataType): Option[Option[KeyIndex]] = {
    val values = rows.iterator.filter(!_.isNullAt(ordinal)).map(value(_, ordinal, dataType).asInstanceOf[Long])
    var (least, most) = (Long.MaxValue, Long.MinValue)
    values.foreach { x =>
      least = math.min(least, x)
      most = math.max(most, x)
    }
    val width = most.toDouble - least + 1
    if (width > MaxGaps * (rows.length + 1.0)) None
    else {
      val places = new Array[Int](math.max(0, width).toInt)
      var repeated = 0
      rows.indices.foreach { i =>
        if (!rows(i).isNullAt(ordinal)) {
          val at = (value(rows(i), ordinal, dataType).asInstanceOf[Long] - least).toInt
          if (places(at) != 0) repeated += 1
          places(at) = i + 1
        }
      }
      def index: KeyIndex = {
        case x: Long if x >= least && x <= most => places((x - least).toInt) - 1
        case _ => -1
      }
      Some(if (isKey(repeated, rows.length)) Some(index) else None)
    }
  }

  private def hashed(rows: Array[UnsafeRow], columns: Seq[(Int, DataType)]): Option[KeyIndex] = {
    val places = new HashMap[Any, Int](rows.length * 2)
    var repeated = 0
    rows.indices.foreach { i =>
      val key = value(rows(i), columns)
      if (key != null) {
        val before = places.size
        places.put(key, i)
        if (places.size == before) repeated += 1
      }
    }
    if (isKey(repeated, rows.length)) Some(x => if (x == null) -1 else places.getOrDefault(x, -1)) else None
  }

  private def isKey(repeated: Int, rows: Int): Boolean = repeated <= rows / 100

  /** Width of the range for each value of a numbered key. */
  private val MaxGaps = 8
}
