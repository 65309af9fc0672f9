package org.apache.spark.sql.pyjoinopt

import java.net.URI

import scala.collection.mutable

import com.fasterxml.jackson.databind.JsonNode

/**
 * The state of a Delta table while the actions of its log are replayed.
 *
 * A file of the table is a path together with a deletion vector: a commit that deletes rows of a file adds the file
 * with the new vector and removes it with the old one, in any order.
 *
 * Law: unknown actions are doubts, not errors, and so are inconsistencies: a removed file that does not exist, or one
 * path with two deletion vectors.
 */
private[pyjoinopt] final class DeltaState {
  import DeltaState._

  private val files = new mutable.LinkedHashMap[(String, String), DeltaFile]
  private val doubts = new mutable.LinkedHashSet[String]
  private var protocol: Option[JsonNode] = None
  private var metaData: Option[JsonNode] = None

  /** Name and bytes of the sidecar files of the checkpoint. */
  val sidecars = new mutable.LinkedHashMap[String, Long]

  def doubt(reason: String): Unit = doubts += reason

  def replay(action: JsonNode, inCheckpoint: Boolean): Unit = names(action).foreach { kind =>
    val value = action.get(kind)
    if (!value.isNull) kind match {
      case "add" => add(value)
      case "remove" => if (!inCheckpoint) remove(value) // a checkpoint lists removed files, too
      case "protocol" => protocol = Some(value)
      case "metaData" => metaData = Some(value)
      case "sidecar" if inCheckpoint =>
        sidecars.put(new URI(value.path("path").asText).getPath.split('/').last, value.path("sizeInBytes").asLong(-1))
      case _ if WithoutFiles(kind) =>
      case _ => doubt(s"its log holds the action $kind, which is not known")
    }
  }

  private def add(value: JsonNode): Unit = {
    names(value).filterNot(FieldsOfAdd).foreach(field =>
      doubt(s"files of its log have a field $field, which is not known"))
    files.put(key(value), DeltaState.file(value))
  }

  private def remove(value: JsonNode): Unit =
    if (files.remove(key(value)).isEmpty) doubt(s"its log removes ${value.path("path").asText}, which is not there")

  private def key(value: JsonNode): (String, String) = {
    val vector = value.path("deletionVector")
    val id =
      if (!vector.isObject) ""
      else Seq("storageType", "pathOrInlineDv", "offset").map(vector.path(_).asText("")).mkString("\u0000")
    (value.path("path").asText, id)
  }

  def snapshot(version: Long, newest: Long, read: Long): DeltaSnapshot = {
    unknownFeatures.foreach(doubt)
    if (files.keysIterator.map(_._1).toSet.size < files.size) doubt("its log holds a file twice")
    if (files.valuesIterator.exists(_.rows.exists(_ < 0))) doubt("its log hides more rows of a file than it has")
    val all = files.values.toList.map(file => file.copy(rows = file.rows.map(math.max(0.0, _))))
    val physical = physicalNames
    if (physical.isEmpty) doubt("its log does not tell how the columns are named in its files")
    DeltaSnapshot(version, all, physical, newest, read, doubts.toList)
  }

  private def unknownFeatures: Seq[String] = protocol match {
    case None => Seq("its log has no version of the protocol")
    case Some(known) =>
      val version = known.path("minReaderVersion").asInt(Int.MaxValue)
      val features = ExpressionBuilder.elements(known.get("readerFeatures")).map(_.asText).filterNot(ReaderFeatures)
      (if (version > 3) Seq(s"its protocol has version $version, which is not known") else Nil) ++
        features.map(feature => s"its protocol has the feature $feature, which is not known")
  }

  /** The names of columns in the log. With column mapping they differ from those of the table. */
  private def physicalNames: Option[Map[String, String]] = Support.attempt(Option.empty[Map[String, String]]) {
    metaData.flatMap { known =>
      val mode = known.path("configuration").path("delta.columnMapping.mode").asText("none")
      val fields = ExpressionBuilder.elements(Support.mapper.readTree(known.path("schemaString").asText).get("fields"))
      val names = fields.map { field =>
        val physical = field.path("metadata").path("delta.columnMapping.physicalName")
        field.path("name").asText -> (if (mode == "none") field.path("name").asText else physical.asText(""))
      }.toMap
      if (names.isEmpty || !MappingModes(mode) || names.values.exists(_.isEmpty)) None else Some(names)
    }
  }
}

private[pyjoinopt] object DeltaState {

  /** Reader features without effect on which rows there are, except for effects that are handled here. */
  private val ReaderFeatures = Set(
    "columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck", "typeWidening",
    "typeWidening-preview", "variantType", "variantType-preview", "variantShredding", "variantShredding-preview")
  private val MappingModes = Set("none", "name", "id")
  private val WithoutFiles = Set("txn", "commitInfo", "cdc", "domainMetadata", "checkpointMetadata")
  private val FieldsOfAdd = Set(
    "path", "partitionValues", "size", "modificationTime", "dataChange", "stats", "tags", "deletionVector", "baseRowId",
    "defaultRowCommitVersion", "clusteringProvider", "stats_parsed", "partitionValues_parsed")

  private def names(node: JsonNode): List[String] = {
    val fields = node.fieldNames()
    val found = mutable.ListBuffer.empty[String]
    while (fields.hasNext) found += fields.next()
    found.toList
  }

  /** The number of rows is negative if the deletion vector deletes more rows than the file has. */
  private def file(add: JsonNode): DeltaFile = {
    val values = add.path("partitionValues")
    val partition = names(values).map { name =>
      val value = values.get(name)
      name -> (if (value.isNull) null else value.asText)
    }.toMap
    val text = Support.attempt(Option.empty[JsonNode])(Some(Support.mapper.readTree(add.path("stats").asText(""))))
    val statistics = text.filter(_.isObject).orElse(Some(add.path("stats_parsed")).filter(_.isObject))
    val hidden = add.path("deletionVector").path("cardinality")
    // With a deletion vector without cardinality, the number of rows is unknown.
    val rows = statistics.map(_.path("numRecords")).filter(_.isIntegralNumber).flatMap { counted =>
      if (!add.path("deletionVector").isObject) Some(counted.asDouble)
      else if (hidden.isIntegralNumber) Some(counted.asDouble - hidden.asDouble)
      else None
    }
    DeltaFile(add.path("path").asText, add.path("size").asLong, rows, partition, statistics)
  }
}
