package org.apache.spark.sql.pyjoinopt

import java.nio.charset.StandardCharsets.UTF_8

import scala.collection.mutable
import scala.io.Source

import com.fasterxml.jackson.databind.JsonNode
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.parquet.example.data.Group
import org.apache.parquet.hadoop.ParquetReader
import org.apache.parquet.hadoop.example.GroupReadSupport

/** A data file of a Delta table; `rows` without those that deletion vectors hide. */
private[pyjoinopt] final case class DeltaFile(
    path: String,
    bytes: Long,
    rows: Option[Double],
    partition: Map[String, String],
    statistics: Option[JsonNode])

/** The files of one version. */
private[pyjoinopt] final case class DeltaSnapshot(version: Long, files: Seq[DeltaFile], newest: Long, read: Long)

/**
 * The log of a Delta table, read as the protocol describes it: the newest checkpoint that is whole, and the commits
 * after it. A commit adds files, with their rows and bounds, and removes others.
 *
 * Laws: no Spark job, which Delta's own listing would start; a log that is longer than `MostBytes`, of which a part is
 * missing, or whose checkpoints are of another kind tells nothing.
 */
private[pyjoinopt] object DeltaLog {
  private val MostBytes = 256L << 20
  private val Commit = """(\d{20})\.json""".r
  private val Checkpoint = """(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10}))?\.parquet""".r

  /** What is there at a version, or now. */
  def read(table: Path, at: Option[Long], conf: Configuration): Option[DeltaSnapshot] = {
    val folder = new Path(table, "_delta_log")
    val listed = folder.getFileSystem(conf).listStatus(folder).toList
    val commits = listed.flatMap { file =>
      file.getPath.getName match {
        case Commit(version) if at.forall(version.toLong <= _) => Some(version.toLong -> file)
        case _ => None
      }
    }.sortBy(_._1)
    val (base, parts) = checkpoint(listed, at)
    val after = commits.filter(_._1 > base)
    val version = after.lastOption.fold(base)(_._1)
    val bytes = (parts ++ after.map(_._2)).map(_.getLen).sum
    val whole = after.map(_._1) == (base + 1 to version).toList
    if (version < 0 || !whole || at.exists(_ != version) || bytes > MostBytes) None
    else {
      val files = new mutable.LinkedHashMap[String, DeltaFile]
      parts.foreach(part => checkpointed(part, conf).foreach(file => files.put(file.path, file)))
      after.foreach { case (_, commit) => replay(commit, conf, files) }
      val newest = (parts ++ after.map(_._2)).map(_.getModificationTime).max
      Some(DeltaSnapshot(version, files.values.toList, newest, bytes))
    }
  }

  /** Version and parts of the newest checkpoint that is whole; -1 if there is none. */
  private def checkpoint(listed: Seq[FileStatus], at: Option[Long]): (Long, List[FileStatus]) = {
    val parts = listed.flatMap { file =>
      file.getPath.getName match {
        case Checkpoint(version, _, count) if at.forall(version.toLong <= _) =>
          Some((version.toLong, if (count == null) 1 else count.toInt, file))
        case _ => None
      }
    }
    val whole = parts.groupBy(p => (p._1, p._2)).filter { case ((_, count), found) => found.length == count }
    if (whole.isEmpty) (-1L, Nil)
    else {
      val ((version, _), found) = whole.maxBy(_._1._1)
      (version, found.map(_._3).toList)
    }
  }

  private def replay(commit: FileStatus, conf: Configuration, files: mutable.Map[String, DeltaFile]): Unit = {
    val in = commit.getPath.getFileSystem(conf).open(commit.getPath)
    try Source.fromInputStream(in, UTF_8.name).getLines().filter(_.trim.nonEmpty).foreach { line =>
      val action = Support.mapper.readTree(line)
      if (action.has("remove")) files.remove(action.path("remove").path("path").asText)
      else if (action.has("add")) {
        val file = added(action.get("add"))
        files.put(file.path, file)
      }
    }
    finally in.close()
  }

  private def added(add: JsonNode): DeltaFile = {
    val values = add.path("partitionValues").fields()
    val partition = mutable.Map.empty[String, String]
    while (values.hasNext) {
      val value = values.next()
      partition.put(value.getKey, if (value.getValue.isNull) null else value.getValue.asText)
    }
    file(add.path("path").asText, add.path("size").asLong, add.path("stats").asText(""), partition.toMap,
      add.path("deletionVector").path("cardinality").asLong(0))
  }

  private def file(
      path: String,
      bytes: Long,
      statistics: String,
      partition: Map[String, String],
      hidden: Long): DeltaFile = {
    val told = Support.attempt(Option.empty[JsonNode])(Some(Support.mapper.readTree(statistics)).filter(_.isObject))
    val rows = told.map(_.path("numRecords")).filter(_.isNumber).map(n => math.max(0.0, n.asDouble - hidden))
    DeltaFile(path, bytes, rows, partition, told)
  }

  private def checkpointed(part: FileStatus, conf: Configuration): Seq[DeltaFile] = {
    val reader = ParquetReader.builder[Group](new GroupReadSupport, part.getPath).withConf(conf).build()
    try Iterator.continually(reader.read()).takeWhile(_ != null).flatMap(inner(_, "add")).map { add =>
      val values = inner(add, "partitionValues").toList.flatMap { map =>
        val entries = map.getType.getFieldName(0)
        (0 until map.getFieldRepetitionCount(entries)).map { i =>
          val entry = map.getGroup(entries, i)
          text(entry, "key").getOrElse("") -> text(entry, "value").orNull
        }
      }
      val hidden = inner(add, "deletionVector").fold(0L)(_.getLong("cardinality", 0))
      file(text(add, "path").getOrElse(""), add.getLong("size", 0), text(add, "stats").getOrElse(""), values.toMap, hidden)
    }.toList
    finally reader.close()
  }

  private def has(group: Group, field: String): Boolean =
    group.getType.containsField(field) && group.getFieldRepetitionCount(field) > 0

  private def inner(group: Group, field: String): Option[Group] =
    if (has(group, field)) Some(group.getGroup(field, 0)) else None

  private def text(group: Group, field: String): Option[String] =
    if (has(group, field)) Some(group.getString(field, 0)) else None
}
