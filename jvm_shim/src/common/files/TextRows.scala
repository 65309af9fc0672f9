package org.apache.spark.sql.pyjoinopt

import java.io.InputStream

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.FileStatus
import org.apache.hadoop.io.compress.{CodecPool, CompressionCodecFactory}

import org.apache.spark.sql.execution.datasources.{FileFormat, HadoopFsRelation}
import org.apache.spark.sql.execution.datasources.csv.CSVFileFormat
import org.apache.spark.sql.execution.datasources.json.JsonFileFormat
import org.apache.spark.sql.execution.datasources.text.TextFileFormat

/**
 * The width of a line of text files, from the first lines of one file.
 *
 * A compressed file is read in blocks, so the compressed size of the lines read so far is known only roughly. More
 * bytes are read from it to make the error small.
 *
 * Law: one file is opened, and at most `MaxBytes` bytes of it are read (`MaxCompressedBytes` of a compressed file).
 * Formats and options under which a line is not a row have no estimate.
 */
private[pyjoinopt] object TextRows {
  private val MaxBytes = 64 * 1024
  private val MaxCompressedBytes = 256 * 1024
  private val MaxDecompressedBytes = 4L << 20

  /** A number of bytes of the file, and the rows in them. */
  final case class Sample(bytes: Double, rows: Double)

  def applies(files: HadoopFsRelation): Boolean = {
    val options = files.options.map { case (key, value) => key.toLowerCase -> value.toLowerCase }
    isText(files.fileFormat) && !options.contains("linesep") &&
    !Seq("multiline", "wholetext").exists(options.get(_).contains("true"))
  }

  private def isText(format: FileFormat): Boolean =
    Seq(classOf[CSVFileFormat], classOf[JsonFileFormat], classOf[TextFileFormat]).contains(format.getClass)

  def sample(file: FileStatus, files: HadoopFsRelation, conf: Configuration): Sample = {
    val raw = file.getPath.getFileSystem(conf).open(file.getPath)
    try {
      val codec = Option(new CompressionCodecFactory(conf).getCodec(file.getPath))
      val unpacker = codec.map(CodecPool.getDecompressor).orNull
      try {
        val text = codec.fold[InputStream](raw)(_.createInputStream(raw, unpacker))
        val most = if (codec.isDefined) MaxDecompressedBytes else MaxBytes.toLong
        val (bytes, lines, whole) = readSome(text, most, codec.isDefined && raw.getPos >= MaxCompressedBytes)
        val header = if (hasHeader(files)) 1 else 0
        val looked = if (whole) file.getLen.toDouble else if (codec.isDefined) raw.getPos.toDouble else bytes.toDouble
        Sample(looked, math.max(0, lines - header).toDouble)
      } finally if (unpacker != null) CodecPool.returnDecompressor(unpacker)
    } finally raw.close()
  }

  private def hasHeader(files: HadoopFsRelation): Boolean =
    files.fileFormat.isInstanceOf[CSVFileFormat] &&
      files.options.exists { case (key, value) => key.equalsIgnoreCase("header") && value.equalsIgnoreCase("true") }

  /** The bytes up to the end of the last complete line, the lines in them, and whether that is the whole file. */
  private def readSome(text: InputStream, most: Long, enough: => Boolean): (Long, Long, Boolean) = {
    val buffer = new Array[Byte](MaxBytes)
    var (read, upToBreak, lines, last, ended) = (0L, 0L, 0L, '\n'.toByte, false)
    while (read < most && !ended && !enough) {
      val got = text.read(buffer, 0, math.min(MaxBytes.toLong, most - read).toInt)
      if (got < 0) ended = true
      else {
        var i = 0
        while (i < got) {
          if (buffer(i) == '\n') {
            lines += 1
            upToBreak = read + i + 1
          }
          i += 1
        }
        if (got > 0) last = buffer(got - 1)
        read += got
      }
    }
    if (ended) (read, if (last == '\n') lines else lines + 1, true) else (upToBreak, lines, false)
  }
}
