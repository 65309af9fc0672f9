package org.apache.spark.sql.pyjoinopt

import java.math.{BigDecimal => JavaDecimal, BigInteger}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.FileStatus
import org.apache.parquet.column.statistics.Statistics
import org.apache.parquet.hadoop.ParquetFileReader
import org.apache.parquet.hadoop.metadata.{BlockMetaData, ColumnChunkMetaData}
import org.apache.parquet.hadoop.util.HadoopInputFile
import org.apache.parquet.io.api.Binary
import org.apache.parquet.schema.LogicalTypeAnnotation
import org.apache.parquet.schema.LogicalTypeAnnotation._
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName

/**
 * Reads the footer of a Parquet file.
 *
 * Law: a column has bounds only if the file's type fixes their order and unit. Unsigned integers, text (whose bounds
 * may be truncated) and the old 96-bit timestamps have none.
 */
private[pyjoinopt] object ParquetFooter {

  val read: (FileStatus, Configuration) => FileFooter = (file, conf) => {
    val reader = ParquetFileReader.open(HadoopInputFile.fromStatus(file, conf))
    val blocks =
      try reader.getFooter.getBlocks.toArray(Array.empty[BlockMetaData]).toList
      finally reader.close()
    val looked = Support.attempt(Set.empty[BlockMetaData])(ParquetDictionaries.chosen(blocks).toSet)
    val columns = for {
      block <- blocks if block.getRowCount > 0
      chunk <- block.getColumns.toArray(Array.empty[ColumnChunkMetaData]).toList
      if chunk.getPath.size == 1
    } yield {
      val known = column(chunk)
      val places =
        if (!looked(block)) Some(Nil)
        else Support.attempt(Option.empty[List[DictionaryPlace]])(ParquetDictionaries.place(chunk, known))
      val lengths = Support.attempt(Option.empty[Long])(Compat.textBytes(chunk)).map(_.toDouble)
      chunk.getPath.toDotString ->
        known.copy(places = places, bytes = chunk.getTotalSize, text = text(chunk), lengths = lengths)
    }
    FileFooter(
      blocks.map(_.getRowCount).sum,
      columns.groupBy(_._1).map { case (name, chunks) => name -> chunks.map(_._2).reduce(FileFooter.merge) },
      blocks.map(block => FilePart(block.getStartingPos, block.getCompressedSize, block.getRowCount))
    )
  }

  private def column(chunk: ColumnChunkMetaData): FooterColumn = {
    val statistics: Statistics[_] = chunk.getStatistics
    if (statistics == null) FooterColumn(None, None, None, allNull = false)
    else {
      val annotation = chunk.getPrimitiveType.getLogicalTypeAnnotation
      val nulls = if (statistics.isNumNullsSet) Some(statistics.getNumNulls) else None
      def bounded(value: => Any) = if (statistics.hasNonNullValue) bound(value, annotation) else None
      FooterColumn(
        bounded(statistics.genericGetMin),
        bounded(statistics.genericGetMax),
        nulls.map(_.toDouble),
        allNull = nulls.contains(chunk.getValueCount),
        unit = annotation match {
          case _: DateLogicalTypeAnnotation => FooterColumn.days
          case _: TimestampLogicalTypeAnnotation => FooterColumn.micros
          case _ => ""
        }
      )
    }
  }

  /** The bytes of text: in plain encoding, the length of each value is stored before it and is subtracted. */
  private def text(chunk: ColumnChunkMetaData): Option[Double] =
    if (chunk.getPrimitiveType.getPrimitiveTypeName != PrimitiveTypeName.BINARY) None
    else {
      val lengths = if (chunk.hasDictionaryPage) 0 else 4 * chunk.getValueCount
      Some(math.max(0, chunk.getTotalUncompressedSize - lengths).toDouble)
    }

  private def bound(value: Any, annotation: LogicalTypeAnnotation): Option[Any] = (value, annotation) match {
    case (n: Number, decimal: DecimalLogicalTypeAnnotation) =>
      Some(JavaDecimal.valueOf(n.longValue, decimal.getScale).doubleValue)
    case (bytes: Binary, decimal: DecimalLogicalTypeAnnotation) =>
      Some(new JavaDecimal(new BigInteger(bytes.getBytes), decimal.getScale).doubleValue)
    case (_, int: IntLogicalTypeAnnotation) if !int.isSigned => None
    case (n: java.lang.Long, timestamp: TimestampLogicalTypeAnnotation) => Some(micros(n, timestamp.getUnit))
    case (n: Integer, null | _: IntLogicalTypeAnnotation | _: DateLogicalTypeAnnotation) => Some(n.toLong)
    case (n: java.lang.Long, null | _: IntLogicalTypeAnnotation) => Some(n.longValue)
    case (n: java.lang.Float, _) => NodeFacts.bound(n.floatValue)
    case (n: java.lang.Double, _) => NodeFacts.bound(n.doubleValue)
    case (flag: java.lang.Boolean, _) => Some(flag.booleanValue)
    case _ => None
  }

  private def micros(value: Long, unit: TimeUnit): Long = unit match {
    case TimeUnit.MILLIS => value * 1000
    case TimeUnit.MICROS => value
    case TimeUnit.NANOS => Math.floorDiv(value, 1000L)
  }
}
