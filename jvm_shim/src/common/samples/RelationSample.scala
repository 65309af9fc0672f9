package org.apache.spark.sql.pyjoinopt

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, DataInputStream, DataOutputStream}
import java.nio.charset.StandardCharsets.UTF_8
import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.{SPARK_VERSION, SparkConf}
import org.apache.spark.io.CompressionCodec
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BoundReference, Expression, InterpretedUnsafeProjection, UnsafeRow}
import org.apache.spark.sql.types.{DataType, StructType}

/**
 * A sample of the rows of a relation, with some of its columns. `seen` is the number of rows that it was drawn from;
 * `complete`: it has all rows of the relation. `pieces` is the number of places in the files that the rows come from, 0
 * for all of the files: neighbouring rows may be correlated.
 *
 * Serialised, it is a header and Spark's own binary rows, compressed. Law: only the version of Spark that wrote the
 * bytes reads them, since the layout of rows may change between versions. Invalid bytes are ignored.
 */
private[pyjoinopt] final class RelationSample(
    val columns: StructType,
    val rows: Array[UnsafeRow],
    val seen: Long,
    val complete: Boolean,
    val pieces: Int) {

  /** Whether the store has it. */
  @volatile var stored = false

  lazy val size: Long = rows.map(_.getSizeInBytes.toLong + 64).sum + 1024

  /**
   * A column as codes: equal codes for equal values, two bytes a row, in hexadecimal; None if values are not
   * comparable.
   */
  def codes(column: Int): Option[String] = coded.computeIfAbsent(
    column,
    _ =>
      new SampledColumn(rows, column, columns(column).dataType).codes.map { codes =>
        SampleAnswers.hex(codes.flatMap(code => Seq(code.toByte, (code >> 8).toByte)))
      }
  )

  private val coded = new ConcurrentHashMap[Int, Option[String]]

  /** The rows that a predicate over the sample's ordinals keeps: as computed before, or by `find` now. */
  def remembered(predicate: Expression)(find: => Option[Array[Byte]]): Option[Array[Byte]] =
    Option(results.get(predicate)).orElse {
      val found = find
      found.foreach { bits =>
        if (results.size >= RelationSample.MaxPredicates) results.clear()
        results.put(predicate, bits)
      }
      found
    }

  private val results = new ConcurrentHashMap[Expression, Array[Byte]]

  def has(names: Iterable[String]): Boolean = names.forall(columns.getFieldIndex(_).isDefined)

  def bytes(conf: SparkConf): Array[Byte] = {
    val buffer = new ByteArrayOutputStream
    val out = new DataOutputStream(CompressionCodec.createCodec(conf, "zstd").compressedOutputStream(buffer))
    val schema = columns.json.getBytes(UTF_8)
    out.writeInt(RelationSample.Layout)
    out.writeUTF(SPARK_VERSION)
    out.writeInt(schema.length)
    out.write(schema)
    out.writeLong(seen)
    out.writeBoolean(complete)
    out.writeInt(pieces)
    out.writeInt(rows.length)
    rows.foreach { row =>
      out.writeInt(row.getSizeInBytes)
      out.write(row.getBytes)
    }
    out.close()
    buffer.toByteArray
  }
}

private[pyjoinopt] object RelationSample {
  private val Layout = 1

  /** The number of predicates whose results are cached. */
  private val MaxPredicates = 256

  def parse(bytes: Array[Byte], conf: SparkConf): Option[RelationSample] =
    Support.attempt(Option.empty[RelationSample]) {
      val codec = CompressionCodec.createCodec(conf, "zstd")
      val in = new DataInputStream(codec.compressedInputStream(new ByteArrayInputStream(bytes)))
      try {
        if (in.readInt() != Layout || in.readUTF() != SPARK_VERSION) None
        else {
          val schema = new Array[Byte](in.readInt())
          in.readFully(schema)
          val columns = DataType.fromJson(new String(schema, UTF_8)).asInstanceOf[StructType]
          val (seen, complete, pieces) = (in.readLong(), in.readBoolean(), in.readInt())
          val rows = Array.fill(in.readInt()) {
            val content = new Array[Byte](in.readInt())
            in.readFully(content)
            val row = new UnsafeRow(columns.length)
            row.pointTo(content, content.length)
            row
          }
          Some(new RelationSample(columns, rows, seen, complete, pieces))
        }
      } finally in.close()
    }

  /** A function that copies rows to rows that can be kept. Not thread-safe; without code generation. */
  def copier(columns: StructType): InternalRow => UnsafeRow = {
    val projection = InterpretedUnsafeProjection.createProjection(
      columns.fields.toList.zipWithIndex.map { case (f, i) => BoundReference(i, f.dataType, nullable = true) })
    row => projection(row).copy()
  }
}
