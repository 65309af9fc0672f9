package org.apache.spark.sql.pyjoinopt

import java.nio.charset.StandardCharsets.UTF_8

import scala.io.Source

import com.fasterxml.jackson.databind.JsonNode
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}

/** A data file of a Delta table; `rows` excludes those that its deletion vector deletes. */
private[pyjoinopt] final case class DeltaFile(
    path: String,
    bytes: Long,
    rows: Option[Double],
    partition: Map[String, String],
    statistics: Option[JsonNode])

/**
 * The files of one version. `physical` maps a column of the table to its name in the log; None if the mapping is
 * unknown. `doubts` are the reasons why a reader of the table may see other files.
 */
private[pyjoinopt] final case class DeltaSnapshot(
    version: Long,
    files: Seq[DeltaFile],
    physical: Option[Map[String, String]],
    newest: Long,
    read: Long,
    doubts: Seq[String])

/**
 * Reads the log of a Delta table by its protocol: the newest complete checkpoint, and the commits after it. A
 * checkpoint is one file, or numbered parts, or a manifest with sidecar files (version 2, which may also have the name
 * of the first kind).
 *
 * Laws: no Spark job, which Delta's own listing would start. A log that is longer than `MaxBytes` or lacks a part has
 * no snapshot. Everything unknown (a feature of the protocol, an action, a field of an added file, a file in the log's
 * folder) is a doubt; only a snapshot without doubts has exact counts.
 */
private[pyjoinopt] object DeltaLog {
  private val MaxBytes = 256L << 20
  private val Commit = """(\d{20})\.json""".r
  private val OneFile = """(\d{20})\.checkpoint\.parquet""".r
  private val Part = """(\d{20})\.checkpoint\.(\d{10})\.(\d{10})\.parquet""".r
  private val Manifest = """(\d{20})\.checkpoint\.([0-9a-fA-F-]{36})\.(?:json|parquet)""".r

  /** Summaries of commits and checkpoints, and temporary files of file systems. */
  private val Harmless = """\d{20}\.crc|\d{20}\.\d{20}\.compacted\.json|_last_checkpoint|_sidecars|\..*|.*\.tmp""".r

  /** Folders in which a coordinator stages commits. */
  private val Staging = Set("_staged_commits", "_commits")
  private val Staged = """(\d{20})\..*json""".r

  private final case class Base(version: Long, parts: List[FileStatus])

  /**
   * The snapshot of a version.
   *
   * @param at the version; None for the newest
   * @param least the newest version is at least this one
   */
  def read(table: Path, at: Option[Long], least: Long, conf: Configuration): Option[DeltaSnapshot] = {
    val folder = new Path(table, "_delta_log")
    val fileSystem = folder.getFileSystem(conf)
    val listed = fileSystem.listStatus(folder).toList
    val base = checkpoint(listed, at)
    val after = listed.flatMap { file =>
      file.getPath.getName match {
        case Commit(version) if version.toLong > base.version && at.forall(version.toLong <= _) =>
          Some(version.toLong -> file)
        case _ => None
      }
    }.sortBy(_._1)
    val version = after.lastOption.fold(base.version)(_._1)
    val whole = after.map(_._1) == (base.version + 1 to version).toList
    if (version < 0 || !whole || at.exists(_ != version) || version < least) None
    else {
      val state = new DeltaState
      unknownFiles(fileSystem, listed, version).foreach(state.doubt)
      replayed(fileSystem, folder, base.parts ++ after.map(_._2), conf, state).map { read =>
        state.snapshot(version, read.map(_.getModificationTime).max, read.map(_.getLen).sum)
      }
    }
  }

  /** The newest complete checkpoint. */
  private def checkpoint(listed: Seq[FileStatus], at: Option[Long]): Base = {
    // For each file: the version and id of its checkpoint, the number of the part, the count of parts.
    val parts = listed.flatMap { file =>
      file.getPath.getName match {
        case OneFile(version) => Some((version.toLong, "", 1, 1, file))
        case Part(version, number, count) => Some((version.toLong, count, number.toInt, count.toInt, file))
        case Manifest(version, id) => Some((version.toLong, id, 1, 1, file))
        case _ => None
      }
    }.filter { case (version, _, _, _, _) => at.forall(version <= _) }
    val whole =
      parts.groupBy(p => (p._1, p._2)).values.filter(found => found.map(_._3).toSet == (1 to found.head._4).toSet)
    if (whole.isEmpty) Base(-1, Nil)
    else {
      val newest = whole.maxBy(found => (found.head._1, found.head._2))
      Base(newest.head._1, newest.map(_._5).toList)
    }
  }

  /** Doubts because of unknown files in the log's folder. */
  private def unknownFiles(fileSystem: FileSystem, listed: Seq[FileStatus], version: Long): Seq[String] =
    listed.flatMap { file =>
      file.getPath.getName match {
        case Commit(_) | OneFile(_) | Part(_, _, _) | Manifest(_, _) | Harmless() => None
        case name if Staging(name) =>
          val later = fileSystem.listStatus(file.getPath).toList.map(_.getPath.getName).filter {
            case Staged(staged) => staged.toLong > version
            case other => !other.startsWith(".")
          }
          later.headOption.map(commit => s"its log keeps the commit $commit apart")
        case name => Some(s"its log holds $name, a kind of file that is not known")
      }
    }

  /** Replays the log. Returns the files that were read, sidecars included; None if they are too large. */
  private def replayed(
      fileSystem: FileSystem,
      folder: Path,
      log: List[FileStatus],
      conf: Configuration,
      state: DeltaState): Option[List[FileStatus]] =
    if (log.map(_.getLen).sum > MaxBytes) None
    else {
      // Sidecars belong to the checkpoint, so they come before any commit. A manifest itself adds no files.
      val (commits, parts) = log.partition(file => Commit.pattern.matcher(file.getPath.getName).matches)
      parts.foreach(replay(fileSystem, _, conf, state))
      val sidecars = state.sidecars.toList.map { case (path, bytes) =>
        val file = fileSystem.getFileStatus(new Path(new Path(folder, "_sidecars"), path))
        if (file.getLen != bytes) Support.fail(s"$path has ${file.getLen} bytes instead of $bytes")
        file
      }
      val read = log ++ sidecars
      if (read.map(_.getLen).sum > MaxBytes) None
      else {
        (sidecars ++ commits).foreach(replay(fileSystem, _, conf, state))
        Some(read)
      }
    }

  private def replay(fileSystem: FileSystem, file: FileStatus, conf: Configuration, state: DeltaState): Unit =
    if (file.getPath.getName.endsWith(".parquet"))
      DeltaCheckpoint.foreach(file, conf)(state.replay(_, inCheckpoint = true))
    else {
      val commit = Commit.pattern.matcher(file.getPath.getName).matches
      val in = fileSystem.open(file.getPath)
      try Source.fromInputStream(in, UTF_8.name).getLines().filter(_.trim.nonEmpty).foreach { line =>
          state.replay(Support.mapper.readTree(line), inCheckpoint = !commit)
        }
      finally in.close()
    }
}
