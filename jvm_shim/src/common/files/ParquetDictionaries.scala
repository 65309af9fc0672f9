package org.apache.spark.sql.pyjoinopt

import java.io.{ByteArrayInputStream, DataInputStream}
import java.nio.{ByteBuffer, ByteOrder}

import scala.annotation.nowarn

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FSDataInputStream}
import org.apache.parquet.bytes.BytesInput
import org.apache.parquet.column.Encoding
import org.apache.parquet.format.Util
import org.apache.parquet.hadoop.CodecFactory
import org.apache.parquet.hadoop.metadata.{BlockMetaData, ColumnChunkMetaData}
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName

import org.apache.spark.sql.catalyst.expressions.XXH64
import org.apache.spark.unsafe.Platform

/**
 * The sizes of the dictionaries of a Parquet file, from their page headers; the footer does not have them. If all pages
 * of a chunk refer to its dictionary, the size is the chunk's distinct count. Each header is a small read of its own,
 * which is a round trip to a remote file system.
 *
 * A short dictionary of text comes with its header, and from its values follows how many values two row groups share.
 * Numbers mostly have a range that bounds them.
 *
 * Law: only the requested columns are read, in a few evenly spaced row groups, until the deadline. The distinct count
 * of a column that is not reached is unknown. If by the footer some dictionary lacks values of its chunk, nothing is
 * read.
 */
private[pyjoinopt] object ParquetDictionaries {
  private val MaxBlocks = 4
  private val HeaderBytes = 64

  /** Dictionaries of text are read up to these sizes, compressed and not (bytes). */
  private val TextBytes = 64 << 10
  private val MaxText = 1 << 20

  /** The row groups whose dictionaries are counted. */
  def chosen(blocks: Seq[BlockMetaData]): Seq[BlockMetaData] =
    DistinctCount.evenly(blocks.filter(_.getRowCount > 0).toIndexedSeq, MaxBlocks)

  /** The place of a chunk's dictionary: None if the dictionary lacks values, an empty list if there are no values. */
  def place(chunk: ColumnChunkMetaData, known: FooterColumn): Option[List[DictionaryPlace]] = {
    val filled = chunk.getValueCount - known.nulls.getOrElse(0.0)
    val offset = chunk.getDictionaryPageOffset
    if (known.allNull) Some(Nil)
    else if (isWhole(chunk) && offset > 0) {
      val text = chunk.getPrimitiveType.getPrimitiveTypeName == PrimitiveTypeName.BINARY
      Some(List(DictionaryPlace(offset, filled, known.min, known.max, if (text) Some(chunk.getCodec) else None)))
    } else None
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
      val codecs = new CodecFactory(conf, TextBytes)
      try
        for ((name, places) <- wanted.sortBy(_._2.head.offset) if System.nanoTime < until) {
          val parts = places.map { place =>
            val distinct = Support.attempt(DistinctCount.unknown)(read(stream, file.getLen, place, codecs))
            FooterColumn(place.min, place.max, Some(0), allNull = false, distinct)
          }
          footer.counted.put(name, parts.reduce(FileFooter.merge).distinct)
        }
      finally {
        codecs.release()
        stream.close()
      }
    }
  }

  private def read(
      stream: FSDataInputStream,
      length: Long,
      place: DictionaryPlace,
      codecs: CodecFactory): DistinctCount = {
    val most = if (place.codec.isDefined) HeaderBytes + TextBytes else HeaderBytes
    val bytes = new Array[Byte](math.min(most.toLong, length - place.offset).toInt)
    stream.seek(place.offset)
    stream.readFully(bytes)
    val page = new ByteArrayInputStream(bytes)
    val header = Util.readPageHeader(page)
    if (!header.isSetDictionary_page_header) DistinctCount.unknown
    else {
      val count = header.getDictionary_page_header.getNum_values
      val start = bytes.length - page.available
      val whole = page.available >= header.getCompressed_page_size && header.getUncompressed_page_size <= MaxText
      val values = place.codec.filter(_ => whole).flatMap { codec =>
        Support.attempt(Option.empty[ValueSketch]) {
          val packed = BytesInput.from(bytes, start, header.getCompressed_page_size)
          val plain = new Array[Byte](header.getUncompressed_page_size)
          val text = codecs.getDecompressor(codec).decompress(packed, plain.length).toInputStream
          new DataInputStream(text).readFully(plain)
          Some(ValueSketch.of(texts(plain, count)))
        }
      }
      DistinctCount.part(count.toLong, place.filled, values)
    }
  }

  /** Hashes of the texts of a page in Parquet's plain encoding: the length of each in four bytes, then its bytes. */
  private def texts(page: Array[Byte], count: Int): Iterator[Long] = {
    val buffer = ByteBuffer.wrap(page).order(ByteOrder.LITTLE_ENDIAN)
    Iterator.fill(count) {
      val length = buffer.getInt()
      val at = buffer.position()
      buffer.position(at + length)
      XXH64.hashUnsafeBytes(page, Platform.BYTE_ARRAY_OFFSET + at, length, 42L)
    }
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
