package org.apache.spark.sql.pyjoinopt

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, DataInputStream, DataOutputStream}
import java.nio.charset.StandardCharsets.UTF_8
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicLong

import scala.util.hashing.byteswap32

import org.apache.spark.{SPARK_VERSION, SparkConf}
import org.apache.spark.io.CompressionCodec
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BoundReference, Expression, InterpretedUnsafeProjection, UnsafeRow}
import org.apache.spark.sql.types.{DataType, StructType}

/**
 * How a sample was drawn, if its rows bound the share of all rows that fulfil a condition (`sample_bounds.py`).
 *
 * @param draws how many times a place was drawn at random, independently and in proportion to its rows; 0 if every place
 *   was read
 * @param stretch the most that a place weighs in the table, over what it weighs in the sample
 */
private[pyjoinopt] final case class SampleDesign(draws: Int, stretch: Double)

/**
 * A sample of the rows of a relation, with some of its columns. `seen` is the number of rows that it was drawn from;
 * `complete`: it has all rows of the relation. `pieces` is the number of places in the files that the rows come from, 0
 * for all of the files: neighbouring rows may be correlated. `starts` has the first row of each of them. `design`: of a
 * random sample, in which every row of a place had the same chance. `runs`: of each column, how many rows that follow
 * each other in the files share a value, on average.
 *
 * Serialised, it is a header and Spark's own binary rows, compressed. Law: only the version of Spark that wrote the
 * bytes reads them, since the layout of rows may change between versions. Invalid bytes are ignored.
 */
private[pyjoinopt] final class RelationSample(
    val columns: StructType,
    val rows: Array[UnsafeRow],
    val seen: Long,
    val complete: Boolean,
    val pieces: Int,
    val starts: Array[Int] = Array.empty,
    val design: Option[SampleDesign] = None,
    val runs: Seq[Double] = Nil) {

  /** The identity of this draw: another sample of the same files has another number. */
  val number: Long = RelationSample.drawn.incrementAndGet()

  /** Whether the store has it. */
  @volatile var stored = false

  /** Whether it has as many of the relation's rows as may be read. */
  @volatile var full = complete

  /** Whether a random sample of these files was found to be too expensive. */
  @volatile var refused = false

  /** Requested columns that were left out, since the table could be read whole without them. */
  @volatile var leftOut = Set.empty[String]

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

  /**
   * A hash of each row's value of a column, 0 for NULL: the same for equal values of all samples, whole numbers of any
   * width included; None if values that Spark takes as equal may differ here.
   */
  def hashes(column: Int): Option[Array[Int]] = hashed.computeIfAbsent(
    column,
    _ => {
      val dataType = columns(column).dataType
      if (!SampledColumn.hasPlainEquality(dataType)) None
      else
        Some(rows.map { row =>
          if (row.isNullAt(column)) 0
          else {
            val hash = byteswap32(KeyIndex.value(row, column, dataType).hashCode)
            if (hash == 0) 1 else hash
          }
        })
    }
  )

  private val hashed = new ConcurrentHashMap[Int, Option[Array[Int]]]

  /** The most rows that share a value of a column. */
  def most(column: Int): Option[Double] =
    shared.computeIfAbsent(column, _ => new SampledColumn(rows, column, columns(column).dataType).most)

  private val shared = new ConcurrentHashMap[Int, Option[Double]]

  /** The different values of a column, NULL not counted, among the rows of which all of some bits are set. */
  def distinct(column: Int, bits: Seq[Array[Byte]]): Option[Int] =
    if (!SampledColumn.hasPlainEquality(columns(column).dataType)) None
    else {
      val found = new java.util.HashSet[Any]
      rows.indices.foreach { i =>
        if (bits.forall(b => (b(i >> 3) >> (i & 7) & 1) == 1) && !rows(i).isNullAt(column))
          found.add(KeyIndex.value(rows(i), column, columns(column).dataType))
      }
      Some(found.size)
    }

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

  /** The rows by the values of some columns; None if these are no key of them. */
  def index(key: Seq[Int]): Option[KeyIndex] =
    indexes.computeIfAbsent(key.toList, _ => KeyIndex.of(rows, typed(key)))

  def typed(ordinals: Seq[Int]): Seq[(Int, DataType)] = ordinals.map(i => i -> columns(i).dataType)

  private val indexes = new ConcurrentHashMap[List[Int], Option[KeyIndex]]

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
    out.writeInt(starts.length)
    starts.foreach(out.writeInt)
    out.writeInt(design.fold(-1)(_.draws))
    out.writeDouble(design.fold(0.0)(_.stretch))
    columns.indices.foreach(i => out.writeDouble(runs.applyOrElse(i, (_: Int) => 1.0)))
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
  private val Layout = 4

  private val drawn = new AtomicLong

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
          val starts = Array.fill(in.readInt())(in.readInt())
          val (draws, stretch) = (in.readInt(), in.readDouble())
          val design = if (draws < 0) None else Some(SampleDesign(draws, stretch))
          val runs = columns.indices.map(_ => in.readDouble())
          val rows = Array.fill(in.readInt()) {
            val content = new Array[Byte](in.readInt())
            in.readFully(content)
            val row = new UnsafeRow(columns.length)
            row.pointTo(content, content.length)
            row
          }
          Some(new RelationSample(columns, rows, seen, complete, pieces, starts, design, runs))
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
