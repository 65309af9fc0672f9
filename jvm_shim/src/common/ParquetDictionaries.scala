package org.apache.spark.sql.pyjoinopt

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.FileStatus
import org.apache.parquet.column.Encoding
import org.apache.parquet.format.Util
import org.apache.parquet.hadoop.ParquetFileReader
import org.apache.parquet.hadoop.metadata.{BlockMetaData, ColumnChunkMetaData}
import org.apache.parquet.hadoop.util.HadoopInputFile
import org.apache.parquet.io.api.Binary

/**
 * How many different values text columns have, from the dictionaries of Parquet files.
 *
 * A column chunk that is encoded with a dictionary begins with it, and the dictionary's header says how many values it
 * has: exactly those of the row group. Reading a header costs some tens of bytes; the values stay unread.
 *
 * From one row group to all of them: where values repeat, each row group has nearly all of them, unless row groups hold
 * ranges of their own (a sorted column); where they hardly repeat, there are more in proportion.
 *
 * Law: what is told of a table that is one row group is a count. Chunks that fell back to another encoding tell nothing.
 */
private[pyjoinopt] object ParquetDictionaries {

  /** One row group: how many rows, and of each column how many values, between which. */
  final case class Group(rows: Double, columns: Map[String, (Double, Option[(Binary, Binary)])], bytes: Long = 0)

  def read(file: FileStatus, conf: Configuration, wanted: String => Boolean): Option[Group] = {
    val input = HadoopInputFile.fromStatus(file, conf)
    val reader = ParquetFileReader.open(input)
    val blocks =
      try reader.getFooter.getBlocks.toArray(Array.empty[BlockMetaData]).toList.filter(_.getRowCount > 0)
      finally reader.close()
    if (blocks.isEmpty) None
    else {
      val block = blocks.maxBy(_.getRowCount)
      val chunks = block.getColumns.toArray(Array.empty[ColumnChunkMetaData]).toList
        .filter(c => c.getPath.size == 1 && wanted(c.getPath.toDotString) && encoded(c)).take(MostColumns)
      val stream = input.newStream()
      try {
        val found = chunks.flatMap { chunk =>
          stream.seek(chunk.getDictionaryPageOffset)
          val header = Util.readPageHeader(stream)
          if (!header.isSetDictionary_page_header) None
          else Some(chunk.getPath.toDotString -> (header.getDictionary_page_header.getNum_values.toDouble, bounds(chunk)))
        }
        Some(Group(block.getRowCount.toDouble, found.toMap))
      } finally stream.close()
    }
  }

  private val MostColumns = 32

  private def encoded(chunk: ColumnChunkMetaData): Boolean =
    chunk.getDictionaryPageOffset > 0 && (Option(chunk.getEncodingStats) match {
      case Some(stats) => stats.hasDictionaryPages && !stats.hasNonDictionaryEncodedPages
      case None => !chunk.getEncodings.contains(Encoding.PLAIN)
    })

  private def bounds(chunk: ColumnChunkMetaData): Option[(Binary, Binary)] =
    Option(chunk.getStatistics).filter(_.hasNonNullValue).flatMap { statistics =>
      (statistics.genericGetMin: Any, statistics.genericGetMax: Any) match {
        case (min: Binary, max: Binary) => Some((min.copy, max.copy))
        case _ => None
      }
    }

  /** Different values of a column in a table of so many rows, by some of its row groups. */
  def distinct(groups: Seq[Group], column: String, rows: Double): Option[Double] = {
    val known = groups.map(g => g.columns.get(column).map { case (values, bounds) => (g.rows, values, bounds) })
    if (known.isEmpty || known.exists(_.isEmpty)) None
    else {
      val found = known.flatten
      val most = found.map(_._2).max
      val looked = found.map(_._1).sum
      if (looked >= rows && found.length == 1) Some(most)
      else if (apart(found.flatMap(_._3)) && found.length > 1) Some(math.min(rows, found.map(_._2).sum * rows / looked))
      else if (found.forall { case (inGroup, values, _) => values <= Repeated * inGroup }) Some(most)
      else Some(math.min(rows, most * rows / found.map(_._1).max))
    }
  }

  /** Values repeat if there are no more different ones than this share of the rows. */
  private val Repeated = 0.1

  /** Do ranges of values not overlap? */
  private def apart(ranges: Seq[(Binary, Binary)]): Boolean = {
    val sorted = ranges.sortWith((a, b) => compare(a._1, b._1) < 0)
    sorted.nonEmpty && sorted.zip(sorted.drop(1)).forall { case (a, b) => compare(a._2, b._1) < 0 }
  }

  private def compare(a: Binary, b: Binary): Int = {
    val (left, right) = (a.getBytesUnsafe, b.getBytesUnsafe)
    val differs = left.zip(right).indexWhere { case (x, y) => x != y }
    if (differs < 0) left.length - right.length else (left(differs) & 255) - (right(differs) & 255)
  }
}
