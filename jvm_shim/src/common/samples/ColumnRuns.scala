package org.apache.spark.sql.pyjoinopt

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.StructType
import org.apache.spark.unsafe.types.UTF8String

/**
 * Counts runs of equal values in the first rows of a piece of the files, column by column. The lines of an order are
 * stored together, and all of them have its customer.
 *
 * NULL neither begins nor ends a run.
 */
private[pyjoinopt] final class ColumnRuns(columns: StructType) {
  private val types = columns.fields.map(_.dataType)
  private val compared = types.indices.filter(i => SampledColumn.hasPlainEquality(types(i))).toArray
  private val last = new Array[Any](types.length)
  private val rows, runs = new Array[Int](types.length)
  private var seen = 0

  def add(row: InternalRow): Unit =
    if (seen < ColumnRuns.MaxRows) {
      seen += 1
      var at = 0
      while (at < compared.length) {
        val i = compared(at)
        if (!row.isNullAt(i)) {
          val value = row.get(i, types(i))
          rows(i) += 1
          if (value != last(i)) {
            runs(i) += 1
            last(i) = value match {
              case text: UTF8String => text.clone() // the reader uses its buffer again
              case other => other
            }
          }
        }
        at += 1
      }
    }
}

private[pyjoinopt] object ColumnRuns {

  /** Rows of a piece that are compared. */
  private val MaxRows = 4096

  /** Of each column the average length of the runs of some pieces. */
  def mean(pieces: Seq[ColumnRuns]): Seq[Double] =
    pieces.headOption.toList.flatMap(_.types.indices).map { i =>
      val runs = pieces.map(_.runs(i).toDouble).sum
      if (runs > 0) pieces.map(_.rows(i).toDouble).sum / runs else 1.0
    }
}
