package org.apache.spark.sql.pyjoinopt

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.FileStatus
import org.apache.orc._

/**
 * Reads the footer of an ORC file. Statistics are numbered by the position of a column in the tree of types, where 0 is
 * the row itself.
 *
 * Law: as for Parquet. Timestamps have no bounds here, because the file has them in the writer's time zone.
 */
private[pyjoinopt] object OrcFooter {

  val read: (FileStatus, Configuration) => FileFooter = (file, conf) => {
    val reader = OrcFile.createReader(file.getPath, OrcFile.readerOptions(conf))
    try {
      val (rows, schema, statistics) = (reader.getNumberOfRows, reader.getSchema, reader.getStatistics)
      val columns =
        if (schema.getCategory != TypeDescription.Category.STRUCT) Nil
        else (0 until schema.getFieldNames.size).map { i =>
          schema.getFieldNames.get(i) -> column(statistics(schema.getChildren.get(i).getId), rows)
        }
      val stripes = reader.getStripes.toArray(Array.empty[StripeInformation]).toList
      FileFooter(rows, columns.toMap, stripes.map(s => FilePart(s.getOffset, s.getLength, s.getNumberOfRows)))
    } finally reader.close()
  }

  private def column(statistics: ColumnStatistics, rows: Long): FooterColumn = {
    val values = statistics.getNumberOfValues
    val (min, max) = if (values == 0) (None, None) else bounds(statistics)
    val text = statistics match {
      case s: StringColumnStatistics => Some(s.getSum.toDouble)
      case s: BinaryColumnStatistics => Some(s.getSum.toDouble)
      case _ => None
    }
    val unit = if (statistics.isInstanceOf[DateColumnStatistics]) FooterColumn.days else ""
    FooterColumn(min, max, Some((rows - values).toDouble), allNull = values == 0, text = text, unit = unit)
  }

  private def bounds(statistics: ColumnStatistics): (Option[Any], Option[Any]) = statistics match {
    case s: IntegerColumnStatistics => (Some(s.getMinimum), Some(s.getMaximum))
    case s: DateColumnStatistics => (Some(s.getMinimumDayOfEpoch), Some(s.getMaximumDayOfEpoch))
    case s: DoubleColumnStatistics => (NodeFacts.bound(s.getMinimum), NodeFacts.bound(s.getMaximum))
    case s: DecimalColumnStatistics =>
      (Some(s.getMinimum.bigDecimalValue.doubleValue), Some(s.getMaximum.bigDecimalValue.doubleValue))
    case s: BooleanColumnStatistics => (Some(s.getFalseCount == 0), Some(s.getTrueCount > 0))
    case _ => (None, None)
  }
}
