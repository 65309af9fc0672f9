package org.apache.spark.sql.pyjoinopt

import java.io.ByteArrayInputStream

import scala.annotation.nowarn

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FSDataInputStream}
import org.apache.parquet.column.Encoding
import org.apache.parquet.format.Util
import org.apache.parquet.hadoop.metadata.{BlockMetaData, ColumnChunkMetaData}

/**
 * How many values the dictionaries of a Parquet file have. The footer does not tell; the header of the dictionary does,
 * a few bytes in front of it. If all pages of a chunk refer to its dictionary, these are the chunk's different values.
 * Each is a small read of its own, a round trip where files are far away.
 *
 * Law: only the columns that are asked for, in a few row groups, evenly chosen, and only until the deadline: a column
 * that was not reached is one of which nothing is known. Where the footer says that a dictionary does not hold all
 * values of some chunk, nothing is read. The dictionaries themselves are not read.
 */
private[pyjoinopt] object ParquetDictionaries {
  private val MostBlocks = 4
  private val HeaderBytes = 64

  /** The row groups that are looked at. */
  def chosen(blocks: Seq[BlockMetaData]): Seq[BlockMetaData] =
    DistinctCount.evenly(blocks.filter(_.getRowCount > 0).toIndexedSeq, MostBlocks)

  /** Where to look for a chunk's dictionary; none if it does not hold all values, nowhere if there are no values. */
  def place(chunk: ColumnChunkMetaData, known: FooterColumn): Option[List[DictionaryPlace]] = {
    val filled = chunk.getValueCount - known.nulls.getOrElse(0.0)
    val offset = chunk.getDictionaryPageOffset
    if (known.allNull) Some(Nil)
    else if (isWhole(chunk) && offset > 0) Some(List(DictionaryPlace(offset, filled, known.min, known.max)))
    else None
  }

  /** Look at the dictionaries of some columns, `most` of each, and note in the footer what they say. */
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
      // A buffer of the usual size would read a thousand times what is wanted.
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
   * Whether all pages refer to the dictionary. Files without statistics of their pages tell it by the encodings that
   * they list: beside the older name of the dictionary's encoding PLAIN stands only if the writer gave it up.
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
