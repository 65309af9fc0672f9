package org.apache.spark.sql.pyjoinopt

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.FileStatus
import org.apache.orc.{DataReader, OrcFile, OrcProto, Reader, StripeInformation}
import org.apache.orc.impl.{DataReaderProperties, InStream, OrcCodecPool, RecordReaderUtils}

/**
 * The sizes of the dictionaries of an ORC file, from the footers of its stripes. Only columns of text have
 * dictionaries. In a stripe, a column has one dictionary for all its rows, or none.
 *
 * Law: as for Parquet. Only the requested columns are read, in a few evenly spaced stripes, until the deadline; the
 * dictionaries themselves are not read. If a column has no dictionary in some stripe, its distinct count is unknown.
 */
private[pyjoinopt] object OrcDictionaries {

  def count(
      file: FileStatus,
      conf: Configuration,
      footer: FileFooter,
      names: Iterable[String],
      most: Int,
      until: Long): Unit = {
    val wanted = names.toList.distinct.filter { name =>
      !footer.counted.containsKey(name) && footer.columns.get(name).exists(c => c.text.isDefined && !c.allNull)
    }
    if (wanted.nonEmpty && System.nanoTime < until) {
      val reader = OrcFile.createReader(file.getPath, OrcFile.readerOptions(conf).maxLength(file.getLen))
      try {
        val stripesOfFile = reader.getStripes.toArray(Array.empty[StripeInformation])
        val chosen = DistinctCount.evenly(stripesOfFile.filter(_.getNumberOfRows > 0).toIndexedSeq, most)
        val stripes = opened(file, conf, reader)
        val encodings =
          try {
            stripes.open()
            chosen.takeWhile(_ => System.nanoTime < until).map(s => s -> stripes.readStripeFooter(s))
          } finally stripes.close()
        if (encodings.length == chosen.length) wanted.foreach { name =>
          val id = reader.getSchema.getChildren.get(reader.getSchema.getFieldNames.indexOf(name)).getId
          val parts = encodings.map { case (stripe, columns) =>
            part(columns.getColumns(id), stripe.getNumberOfRows * share(footer, name))
          }
          footer.counted.put(name, parts.foldLeft(DistinctCount.nothing)(_.and(_, separate = false)))
        }
      } finally reader.close()
    }
  }

  private def opened(file: FileStatus, conf: Configuration, reader: Reader): DataReader =
    RecordReaderUtils.createDefaultDataReader(
      DataReaderProperties.builder()
        .withFileSystemSupplier(() => file.getPath.getFileSystem(conf))
        .withPath(file.getPath)
        .withCompression(InStream.options()
          .withCodec(OrcCodecPool.getCodec(reader.getCompressionKind))
          .withBufferSize(reader.getCompressionSize))
        .withZeroCopy(false)
        .build())

  private def part(encoding: OrcProto.ColumnEncoding, filled: Double): DistinctCount = encoding.getKind match {
    case OrcProto.ColumnEncoding.Kind.DICTIONARY | OrcProto.ColumnEncoding.Kind.DICTIONARY_V2 =>
      DistinctCount.part(encoding.getDictionarySize, filled)
    case _ => DistinctCount.unknown
  }

  /** The share of a file's rows in which a column is not NULL. */
  private def share(footer: FileFooter, name: String): Double =
    1.0 - footer.columns(name).nulls.getOrElse(0.0) / math.max(1.0, footer.rows.toDouble)
}
