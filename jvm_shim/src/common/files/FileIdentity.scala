package org.apache.spark.sql.pyjoinopt

import java.nio.charset.StandardCharsets.UTF_8

import com.fasterxml.jackson.core.JsonGenerator
import org.apache.hadoop.fs.FileStatus

import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.expressions.XXH64
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.unsafe.Platform

/**
 * A short identity of the files that a relation reads. Statistics are valid as long as the identity is the same.
 *
 * It is a sum of hashes of (path, length, modification time), so it does not depend on the order of the listing. A file
 * that was added, removed, rewritten or touched changes it.
 *
 * Law: it needs only the listing that Spark has, or can make without a job; no file is opened.
 */
private[pyjoinopt] final case class FileIdentity(
    id: String,
    schema: String,
    count: Int,
    bytes: Long,
    newest: Long,
    note: Option[String]) {

  def write(out: JsonGenerator): Unit = {
    out.writeStartObject()
    out.writeStringField("id", id)
    out.writeStringField("schema", schema)
    out.writeNumberField("count", count)
    out.writeNumberField("bytes", bytes)
    out.writeNumberField("newest", newest)
    out.writeEndObject()
  }
}

private[pyjoinopt] object FileIdentity {

  /** The time at which a table was last altered, in seconds. ANALYZE alters a table. */
  private val LastAltered = "transient_lastDdlTime"

  def of(relation: LogicalRelation, files: HadoopFsRelation, listed: Seq[FileStatus]): FileIdentity = {
    var (first, second, bytes, newest, count) = (0L, 0L, 0L, 0L, 0)
    listed.foreach { file =>
      val text = s"${file.getPath}\u0000${file.getLen}\u0000${file.getModificationTime}"
      first += hash(text, 42)
      second += hash(text, 4711)
      bytes += file.getLen
      newest = math.max(newest, file.getModificationTime)
      count += 1
    }
    FileIdentity(
      hex(first) + hex(second),
      schema(files),
      count,
      bytes,
      newest,
      relation.catalogTable.flatMap(outdated(_, bytes, newest)))
  }

  /** The identity of files to which a table format gives a name, such as a version. */
  def named(
      relation: LogicalRelation,
      files: HadoopFsRelation,
      name: String,
      count: Int,
      bytes: Long,
      newest: Long): FileIdentity =
    FileIdentity(
      hex(hash(name, 42)) + hex(hash(name, 4711)),
      schema(files),
      count,
      bytes,
      newest,
      relation.catalogTable.flatMap(outdated(_, bytes, newest)))

  private def schema(files: HadoopFsRelation): String = {
    val shape = s"${LeafDetails.format(files.fileFormat)} ${files.schema.catalogString} ${files.options.toSeq.sorted}"
    hex(hash(shape, 42))
  }

  /** Why the catalog's statistics are not those of these files: their times or sizes contradict each other. */
  private def outdated(table: CatalogTable, bytes: Long, newest: Long): Option[String] =
    for (counted <- table.stats if counted.rowCount.isDefined;
      reason <- {
        val altered = table.properties.get(LastAltered).map(text => Support.attempt(Long.MaxValue / 2000)(text.toLong))
        if (altered.exists(seconds => seconds * 1000 + 999 < newest)) Some("older than the files")
        else if (counted.sizeInBytes != BigInt(bytes)) Some("older than the files: their size is another one")
        else None
      }) yield reason

  /** Sixteen digits; without a format string, which takes several microseconds. */
  private def hex(number: Long): String = {
    val digits = java.lang.Long.toHexString(number)
    "0" * (16 - digits.length) + digits
  }

  private def hash(text: String, seed: Long): Long = {
    val bytes = text.getBytes(UTF_8)
    XXH64.hashUnsafeBytes(bytes, Platform.BYTE_ARRAY_OFFSET.toLong, bytes.length, seed)
  }
}
