package org.apache.spark.sql.pyjoinopt

import java.io.ByteArrayInputStream

import scala.annotation.nowarn

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FSDataInputStream}
import org.apache.parquet.column.Encoding
import org.apache.parquet.format.Util
import org.apache.parquet.hadoop.metadata.{BlockMetaData, ColumnChunkMetaData}

/**
 * The sizes of the dictionaries of a Parquet file, from their page headers; the footer does not have them. If all pages
 * of a chunk refer to its dictionary, the size is the chunk's distinct count. Each header is a small read of its own,
 * which is a round trip to a remote file system.
 *
 * Law: only the requested columns are read, in a few evenly spaced row groups, until the deadline. The distinct count
 * of a column that is not reached is unknown. If by the footer some dictionary lacks values of its chunk, nothing is
 * read. The dictionaries themselves are not read.
 */
private[pyjoinopt] object ParquetDictionaries {
  private val MaxBlocks = 4
  private val HeaderBytes = 64

  /** The row groups whose dictionaries are counted. */
  def chosen(blocks: Seq[BlockMetaData]): Seq[BlockMetaData] =
    DistinctCount.evenly(blocks.filter(_.getRowCount > 0).toIndexedSeq, MaxBlocks)

  /** The place of a chunk's dictionary: None if the dictionary lacks values, an empty list if there are no values. */
  def place(chunk: ColumnChunkMetaData, known: FooterColumn): Option[List[DictionaryPlace]] = {
    val filled = chunk.getValueCount - known.nulls.getOrElse(0.0)
    val offset = chunk.getDictionaryPageOffset
    if (known.allNull) Some(Nil)
    else if (isWhole(chunk) && offset > 0) Some(List(DictionaryPlace(offset, filled, known.min, known.max)))
    else None
  }

  /** Count the dictionaries of some columns, `most` of each, and add the distinct counts to the footer. */
  def count(
      file: FileStatus,
      conf: Configuration,
      footer: FileFooter,
      names: Iterable[String],
      most: Int,
      until: Long): Unit = {
    val wanted = names.toList.distinct.filterNot(footer.counted.containsKey(_)).flatMap { name =>
      footer.columns.get(name).flatMap(_.places).filter(_.nonEmpty).map(name -> _.take(most))
    }
    if (wanted.nonEmpty && System.nanoTime < until) {
      // A buffer of the default size would read a thousand times the bytes of a header.
      val stream = file.getPath.getFileSystem(conf).open(file.getPath, HeaderBytes)
      try
        for ((name, places) <- wanted.sortBy(_._2.head.offset) if System.nanoTime < until) {
          val parts = places.map { place =>
            val distinct = Support.attempt(DistinctCount.unknown)(header(stream, file.getLen, place))
            FooterColumn(place.min, place.max, Some(0), allNull = false, distinct)
          }
          footer.counted.put(name, parts.reduce(FileFooter.merge).distinct)
        }
      finally stream.close()
    }
  }

  private def header(stream: FSDataInputStream, length: Long, place: DictionaryPlace): DistinctCount = {
    val bytes = new Array[Byte](math.min(HeaderBytes.toLong, length - place.offset).toInt)
    stream.seek(place.offset)
    stream.readFully(bytes)
    val header = Util.readPageHeader(new ByteArrayInputStream(bytes))
    if (!header.isSetDictionary_page_header) DistinctCount.unknown
    else DistinctCount.part(header.getDictionary_page_header.getNum_values.toLong, place.filled)
  }

  /**
   * Whether all pages refer to the dictionary. Without page statistics, the list of encodings decides: next to the
   * deprecated PLAIN_DICTIONARY, PLAIN is listed only if the writer fell back from the dictionary.
   */
  @nowarn("cat=deprecation") // files of older writers have the deprecated encodings
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
