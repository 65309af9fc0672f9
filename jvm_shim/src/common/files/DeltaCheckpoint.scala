package org.apache.spark.sql.pyjoinopt

import java.time.LocalDate

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.{JsonNodeFactory, ObjectNode}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.FileStatus
import org.apache.parquet.column.statistics.Statistics
import org.apache.parquet.example.data.Group
import org.apache.parquet.hadoop.{ParquetFileReader, ParquetReader}
import org.apache.parquet.hadoop.api.ReadSupport
import org.apache.parquet.hadoop.example.GroupReadSupport
import org.apache.parquet.hadoop.metadata.{BlockMetaData, ColumnChunkMetaData, ParquetMetadata}
import org.apache.parquet.hadoop.util.HadoopInputFile
import org.apache.parquet.schema.{GroupType, LogicalTypeAnnotation, MessageType, Type}
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName._

/**
 * Reads the Parquet files of a Delta table's checkpoint: each row as an action in the JSON form that commits have.
 *
 * Law: values with a JSON form of their own (dates) are converted to it. Values that JSON cannot hold without loss
 * (decimals, timestamps of 96 bits) are left out, which makes them unknown.
 */
private[pyjoinopt] object DeltaCheckpoint {
  private val nodes = JsonNodeFactory.instance

  def foreach(file: FileStatus, conf: Configuration)(action: JsonNode => Unit): Unit = {
    val own = new Configuration(conf)
    own.set(ReadSupport.PARQUET_READ_SCHEMA, needed(file, conf).toString)
    val reader = ParquetReader.builder[Group](new GroupReadSupport, file.getPath).withConf(own).build()
    try Iterator.continually(reader.read()).takeWhile(_ != null).foreach(row => action(json(row)))
    finally reader.close()
  }

  /** The file's columns without those that do not describe the table's files, and without duplicates. */
  private def needed(file: FileStatus, conf: Configuration): MessageType = {
    val reader = ParquetFileReader.open(HadoopInputFile.fromStatus(file, conf))
    val footer =
      try reader.getFooter
      finally reader.close()
    val schema = footer.getFileMetaData.getSchema
    val fields = each(schema).filterNot(field => Set("txn", "remove")(field.getName)).map {
      case add: GroupType if add.getName == "add" =>
        val twice = Set("partitionValues_parsed") ++ (if (isFilled(footer, "add.stats")) Set("stats_parsed") else Nil)
        add.withNewFields(each(add).filterNot(field => twice(field.getName)).toArray: _*)
      case other => other
    }
    new MessageType(schema.getName, fields.toArray: _*)
  }

  /** Whether a column has values: some writers add a column without writing to it. */
  private def isFilled(footer: ParquetMetadata, column: String): Boolean =
    footer.getBlocks.toArray(Array.empty[BlockMetaData]).exists { block =>
      block.getColumns.toArray(Array.empty[ColumnChunkMetaData]).filter(_.getPath.toDotString == column).exists {
        chunk =>
          val statistics: Statistics[_] = chunk.getStatistics
          statistics == null || !statistics.isNumNullsSet || statistics.getNumNulls < chunk.getValueCount
      }
    }

  private def each(group: GroupType): List[Type] = (0 until group.getFieldCount).map(group.getType(_: Int)).toList

  private def json(group: Group): ObjectNode = {
    val found = nodes.objectNode()
    each(group.getType).foreach { field =>
      if (group.getFieldRepetitionCount(field.getName) > 0)
        value(group, field, 0).foreach(found.set[JsonNode](field.getName, _: JsonNode))
    }
    found
  }

  private def value(group: Group, field: Type, i: Int): Option[JsonNode] =
    if (field.isPrimitive) primitive(group, field, i)
    else {
      val inner = group.getGroup(field.getName, i)
      field.getLogicalTypeAnnotation match {
        case _: LogicalTypeAnnotation.ListLogicalTypeAnnotation => Some(list(inner))
        case _: LogicalTypeAnnotation.MapLogicalTypeAnnotation | _: LogicalTypeAnnotation.MapKeyValueTypeAnnotation =>
          Some(map(inner))
        case _ => Some(json(inner))
      }
    }

  private def repeated(group: Group): Seq[Group] = {
    val name = group.getType.getFieldName(0)
    (0 until group.getFieldRepetitionCount(name)).map(group.getGroup(name, _))
  }

  private def list(group: Group): JsonNode = {
    val found = nodes.arrayNode()
    repeated(group).foreach { element =>
      if (element.getFieldRepetitionCount(0) > 0)
        value(element, element.getType.getType(0), 0).foreach(found.add(_: JsonNode))
    }
    found
  }

  private def map(group: Group): JsonNode = {
    val found = nodes.objectNode()
    repeated(group).foreach { entry =>
      val key = entry.getString(0, 0)
      val known =
        if (entry.getType.getFieldCount < 2 || entry.getFieldRepetitionCount(1) == 0) None
        else value(entry, entry.getType.getType(1), 0)
      found.set[JsonNode](key, known.getOrElse(nodes.nullNode()))
    }
    found
  }

  private def primitive(group: Group, field: Type, i: Int): Option[JsonNode] = {
    val name = field.getName
    (field.asPrimitiveType.getPrimitiveTypeName, field.getLogicalTypeAnnotation) match {
      case (INT32, _: LogicalTypeAnnotation.DateLogicalTypeAnnotation) =>
        Some(nodes.textNode(LocalDate.ofEpochDay(group.getInteger(name, i).toLong).toString))
      case (INT32, null | _: LogicalTypeAnnotation.IntLogicalTypeAnnotation) =>
        Some(nodes.numberNode(group.getInteger(name, i)))
      case (INT64, null | _: LogicalTypeAnnotation.IntLogicalTypeAnnotation) =>
        Some(nodes.numberNode(group.getLong(name, i)))
      case (FLOAT, _) => Some(nodes.numberNode(group.getFloat(name, i)))
      case (DOUBLE, _) => Some(nodes.numberNode(group.getDouble(name, i)))
      case (BOOLEAN, _) => Some(nodes.booleanNode(group.getBoolean(name, i)))
      case (BINARY, _: LogicalTypeAnnotation.StringLogicalTypeAnnotation) =>
        Some(nodes.textNode(group.getString(name, i)))
      case _ => None
    }
  }
}
