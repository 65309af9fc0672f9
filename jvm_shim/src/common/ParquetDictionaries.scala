package org.apache.spark.sql.pyjoinopt

import java.io.ByteArrayInputStream
import java.util.concurrent.TimeUnit

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FSDataInputStream}
import org.apache.parquet.column.Encoding
import org.apache.parquet.format.Util
import org.apache.parquet.hadoop.metadata.{BlockMetaData, ColumnChunkMetaData}

/**
 * How many values the dictionaries of a Parquet file have. The footer does not tell; the header of the dictionary does,
 * a few bytes in front of it. If all pages of a chunk refer to its dictionary, these are the chunk's different values.
 *
 * Law: only a few row groups are looked at, evenly chosen, and only for a short time: a column that was not reached is
 * one of which nothing is known. The dictionaries themselves are not read.
 */
private[pyjoinopt] object ParquetDictionaries {
  private val MostBlocks = 4
  private val HeaderBytes = 64
  private val Patience = TimeUnit.MILLISECONDS.toNanos(1000)

  /** For some of the row groups, the different values of a chunk. */
  def read(
      file: FileStatus,
      conf: Configuration,
      blocks: Seq[BlockMetaData]): Map[BlockMetaData, ColumnChunkMetaData => DistinctCount] = {
    val filled = blocks.filter(_.getRowCount > 0).toIndexedSeq
    val count = math.min(MostBlocks, filled.length)
    val chosen = (0 until count).map(i => filled((i.toLong * filled.length / count).toInt))
    val until = System.nanoTime + Patience
    // A buffer of the usual size would read a thousand times what is wanted.
    val stream = file.getPath.getFileSystem(conf).open(file.getPath, HeaderBytes)
    try chosen.map { block =>
      val found = for {
        chunk <- block.getColumns.toArray(Array.empty[ColumnChunkMetaData]).toList
        if chunk.getPath.size == 1 && System.nanoTime < until
      } yield chunk.getPath -> Support.attempt(DistinctCount.unknown)(distinct(stream, file.getLen, chunk))
      val byPath = found.toMap
      block -> ((chunk: ColumnChunkMetaData) => byPath.getOrElse(chunk.getPath, DistinctCount.unknown))
    }.toMap
    finally stream.close()
  }

  private def distinct(stream: FSDataInputStream, length: Long, chunk: ColumnChunkMetaData): DistinctCount = {
    val statistics = chunk.getStatistics
    val nulls = if (statistics != null && statistics.isNumNullsSet) statistics.getNumNulls else 0L
    val offset = chunk.getDictionaryPageOffset
    if (nulls == chunk.getValueCount) DistinctCount.nothing
    else if (!isWhole(chunk) || offset <= 0) DistinctCount.unknown
    else {
      val bytes = new Array[Byte](math.min(HeaderBytes.toLong, length - offset).toInt)
      stream.seek(offset)
      stream.readFully(bytes)
      val header = Util.readPageHeader(new ByteArrayInputStream(bytes))
      if (!header.isSetDictionary_page_header) DistinctCount.unknown
      else {
        val values = header.getDictionary_page_header.getNum_values
        DistinctCount.part(values.toLong, (chunk.getValueCount - nulls).toDouble)
      }
    }
  }

  /**
   * Whether all pages refer to the dictionary. Files without statistics of their pages tell it by the encodings that
   * they list: beside the older name of the dictionary's encoding PLAIN stands only if the writer gave it up.
   */
  private def isWhole(chunk: ColumnChunkMetaData): Boolean = {
    val pages = chunk.getEncodingStats
    if (pages != null) {
      pages.hasDictionaryPages && pages.hasDictionaryEncodedPages && !pages.hasNonDictionaryEncodedPages
    } else {
      val encodings = new java.util.HashSet[Encoding](chunk.getEncodings)
      encodings.remove(Encoding.PLAIN_DICTIONARY) && {
        encodings.remove(Encoding.RLE)
        encodings.remove(Encoding.BIT_PACKED)
        encodings.isEmpty
      }
    }
  }
}
