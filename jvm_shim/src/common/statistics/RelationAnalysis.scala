package org.apache.spark.sql.pyjoinopt

import java.util.Base64

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.{functions => f, Column}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, UnsafeRow}
import org.apache.spark.sql.catalyst.plans.logical.Project
import org.apache.spark.sql.execution.SQLExecution
import org.apache.spark.sql.execution.datasources.LogicalRelation
import org.apache.spark.sql.types._

/**
 * The statistics of a relation by one pass over it. One Spark job counts the rows, counts the values of each column and
 * finds their bounds, estimates their distinct counts by sketches, draws a sample, and summarises how often the values
 * of columns occur that may be join keys. Most common values and histograms are computed from the sample.
 *
 * Of requested columns that may be join keys the same job collects the rows whose values have small hashes (KeySample).
 * How many there will be is estimated from the expected rows. What a task collects is limited; a column for which that
 * is not enough, because single values have very many rows, has no such sample.
 *
 * A sketch errs by some percent. If it estimates a distinct count close to the number of rows, and the sample has no
 * duplicates, the column is taken as unique.
 *
 * Law: only Spark's own functions are used, since the executors do not have this jar.
 */
private[pyjoinopt] final class RelationAnalysis(handle: Handle, request: JsonNode) {
  private val relation: LogicalRelation = handle.nodes(request.path("node").asInt) match {
    case relation: LogicalRelation => relation
    case other => Support.fail(s"${other.nodeName} reads no files.")
  }
  private val numbers = handle.attributes.zipWithIndex.map { case (a, i) => a.exprId -> i }.toMap
  private val names =
    relation.output.zip(relation.relation.schema.fieldNames).map { case (a, name) => a.exprId -> name }.toMap
  private val columns: List[Attribute] = {
    val listed = ExpressionBuilder.elements(request.get("columns")).map(n => handle.attribute(n.asInt(-1)).exprId).toSet
    relation.output.toList.filter(a => listed(a.exprId) && names.contains(a.exprId))
  }

  /** The columns with a sketch of their frequencies, by position: whole numbers first, then text, then dates. */
  private val sketchedKeys: List[(Int, String)] = {
    val found = columns.map(_.dataType).zipWithIndex.flatMap { case (t, i) => FrequencySketch.kind(t).map(i -> _) }
    List("whole", "text", "date").flatMap(kind => found.filter(_._2 == kind)).take(MaxFrequencySketches)
  }
  private val expected = math.max(1.0, request.path("expected").asDouble(1.0))
  private val files = FileStatistics.identify(
    handle.session,
    relation,
    FileStatistics.Limits(0, 0, System.nanoTime + 60L * 1000 * 1000 * 1000))

  /** The size of a row (bytes): files decompress to a few times their size. */
  private val width = files.fold(0.0)(_.bytes * 4 / expected)

  /** The size of the sample (rows), limited by its memory. */
  private val rows =
    math.max(
      1,
      math.min(request.path("rows").asInt(10000), math.max(100, (MaxSampleBytes / math.max(1.0, width)).toInt)))

  /** The columns by whose values samples are drawn, by position. */
  private val keys: List[(Int, String)] =
    for {
      n <- ExpressionBuilder.elements(request.get("keys"))
      id = handle.attribute(n.asInt(-1)).exprId
      i = columns.indexWhere(_.exprId == id)
      if i >= 0
      kind <- FrequencySketch.kind(columns(i).dataType)
    } yield i -> kind

  /** The size of each of their samples (rows). */
  private val keyRows =
    math.max(100, math.min(request.path("keyRows").asInt(4096), (MaxKeyBytes / math.max(1.0, width)).toInt))

  /** Values with hashes below it are in the samples, if no more rows have them than expected. */
  private val threshold = {
    val share = MarginOfKeys * keyRows / expected
    if (share >= 1) Long.MaxValue else (Long.MinValue + share * math.pow(2, 64)).toLong
  }

  def run(): String = {
    val row = collected()
    val count = row.getLong(0)
    val drawn = new DrawnRows(row)
    val keySamples = keys.indices.flatMap(drawn.keySample)
    val (sample, facts) = found(row, count, drawn, keySamples.map(s => s.key -> s.threshold).toMap)
    val known = NodeFacts(
      Some(count.toDouble),
      files.map(_.bytes.toDouble),
      "analyze",
      exact = true,
      columns.zip(facts),
      files)
    Support.json { out =>
      out.writeStartObject()
      out.writeFieldName("known")
      known.write(out, a => numbers.get(a.exprId))
      out.writeNumberField("sampled", sample.rows.length)
      sample.stored = request.path("give").asBoolean
      if (sample.stored) {
        val bytes = sample.bytes(handle.session.sparkContext.getConf)
        out.writeStringField("blob", Base64.getEncoder.encodeToString(bytes))
      }
      files.foreach { id =>
        Samples.put((id.id, id.schema), sample)
        keySamples.foreach(s => KeySamples.put((id.id, id.schema, s.key), s))
      }
      out.writeObjectFieldStart("keySamples")
      if (sample.stored) keySamples.foreach { s =>
        val bytes = s.bytes(handle.session.sparkContext.getConf)
        out.writeStringField(s.key, Base64.getEncoder.encodeToString(bytes))
      }
      out.writeEndObject()
      out.writeEndObject()
    }
  }

  // -- the job ---------------------------------------------------------------------------------------------------

  private val PerColumn = 5
  private lazy val MaxFrequencySketches = 16
  private lazy val source = Compat.ofRows(
    handle.session,
    Project(columns.zipWithIndex.map { case (a, i) => Alias(a, s"c$i")() }, relation))

  private def collected(): InternalRow = {
    val named = columns.indices.map(i => f.col(s"c$i")).toList
    val fraction = math.min(1.0, 1.2 * rows / expected)
    // What is computed here is compiled, which the arguments of these aggregates are not.
    val hashed = (sketchedKeys ::: keys).distinct.map { case (i, kind) =>
      f.when(named(i).isNotNull, FrequencySketch.hash(named(i), kind)).as(s"h$i")
    }
    val signs = sketchedKeys.map { case (i, kind) => FrequencySketch.isNegative(named(i), kind).as(s"s$i") }
    val marked = source.select(hashed ::: signs ::: named: _*)
      .select((f.rand(Seed) < fraction).as("uniform") :: keyPlaces ::: f.col("*") :: Nil: _*)
    val (uniform, places) = (f.col("uniform"), keys.indices.map(k => f.col(s"k$k")).toList)
    val hashes = keys.map { case (i, _) => f.col(s"h$i") }
    val isNeeded = places.map(_ < mostOfTask).foldLeft(uniform)(_ || _)
    val drawn = f.when(isNeeded, f.struct(uniform :: places ::: hashes ::: named: _*)).as("drawn")
    val sketchError = if (columns.length <= 16) 0.02 else 0.05
    val aggregates = columns.zip(named).flatMap { case (attribute, c) =>
      val no = f.lit(null)
      List(
        f.count(c),
        if (sketched(attribute.dataType)) f.approx_count_distinct(c, sketchError) else no,
        if (bounded(attribute.dataType)) f.min(c) else no,
        if (bounded(attribute.dataType)) f.max(c) else no,
        if (measured(attribute.dataType)) f.avg(f.octet_length(c)) else no
      )
    }
    val sketches = sketchedKeys.flatMap { case (i, _) => FrequencySketch.aggregates(f.col(s"h$i"), f.col(s"s$i")) }
    val query = marked.select(drawn :: f.col("*") :: Nil: _*)
      .agg(f.count(f.lit(1)), aggregates ::: f.collect_list(f.col("drawn")) :: sketches ::: places.map(f.count(_)): _*)
    val execution = query.queryExecution
    SQLExecution.withNewExecutionId(execution, Some("pyjoinopt.analyze"))(execution.executedPlan.executeCollect()).head
  }

  /**
   * Of each key column: NULL, or for a row whose value has a hash below the threshold how many such rows its task had
   * before. That the function counts only the rows of this branch is not documented; if it counted others, too, a task
   * would collect fewer rows than there are, and there would be no sample.
   */
  private def keyPlaces: List[Column] = keys.zipWithIndex.map { case ((i, _), k) =>
    val inTask = f.monotonically_increasing_id().bitwiseAND(f.lit((1L << 33) - 1))
    f.when(f.col(s"h$i") < threshold, inTask).as(s"k$k")
  }

  /** How many rows of a key column's sample one task may collect. */
  private lazy val mostOfTask: Int =
    if (keys.isEmpty) 0
    else {
      val tasks = math.max(1, source.queryExecution.toRdd.getNumPartitions)
      val all = math.min(MaxKeyRows, MaxSampleBytes / keys.length / math.max(1.0, width))
      math.max(MinKeyRows, (all / tasks).toInt)
    }

  /** How many rows of a key column's sample are expected, over those that are kept. */
  private lazy val MarginOfKeys = 1.25
  private lazy val MaxKeyRows = 65536.0
  private lazy val MaxKeyBytes = 16 << 20
  private lazy val MinKeyRows = 64

  /** The collected rows: of each whether it is of the uniform sample, places and hashes of keys, and its columns. */
  private final class DrawnRows(result: InternalRow) {
    val schema: StructType = StructType(columns.map(a => StructField(names(a.exprId), a.dataType)))
    private val first = 1 + 2 * keys.length
    private val at = 1 + columns.length * PerColumn
    private val all = result.getArray(at)
    private val structs = List.tabulate(all.numElements())(all.getStruct(_, first + columns.length))
    private val copy = RelationSample.copier(schema)

    val uniform: Array[UnsafeRow] = structs.filter(_.getBoolean(0)).map(columnsOf).toArray

    private def columnsOf(struct: InternalRow): UnsafeRow = {
      val fields = schema.fields.toList.zipWithIndex
      copy(InternalRow.fromSeq(fields.map { case (field, j) => struct.get(first + j, field.dataType) }))
    }

    /** The sample by the k-th key; None if some task had more rows than it may collect, or if there are few keys. */
    def keySample(k: Int): Option[KeySample] = {
      val found = structs.filter(s => !s.isNullAt(1 + k) && s.getLong(1 + k) < mostOfTask)
      if (found.length != result.getLong(at + 1 + sketchedKeys.length * FrequencySketch.Aggregates + k)) None
      else {
        val rows = found.map(s => s.getLong(1 + keys.length + k) -> columnsOf(s))
        KeySample.of(names(columns(keys(k)._1).exprId), threshold, schema, rows, keyRows)
      }
    }
  }

  private val Seed = 4711L
  private lazy val MaxSampleBytes = 128 << 20

  private def sketched(dataType: DataType): Boolean = dataType match {
    case _: NullType => false
    case _: AtomicType => dataType.typeName != "variant"
    case _ => false
  }

  private def bounded(dataType: DataType): Boolean = dataType match {
    case _: NumericType | DateType | TimestampType | TimestampNTZType | BooleanType => true
    case _ => false
  }

  // -- the result -----------------------------------------------------------------------------------------------

  private def found(
      row: InternalRow,
      count: Long,
      collected: DrawnRows,
      thresholds: Map[String, Long]): (RelationSample, List[ColumnFacts]) = {
    val (schema, drawn) = (collected.schema, collected.uniform)
    val kept =
      if (drawn.length <= rows || drawn.length == count) drawn
      else new scala.util.Random(Seed).shuffle(drawn.toSeq).take(rows).toArray
    val design = Some(SampleDesign(draws = 0, stretch = 1.0)) // each row of the table had the same chance
    val sample = new RelationSample(schema, kept, count, complete = kept.length == count, pieces = 0, design = design)
    val frequencies = sketchedKeys.zipWithIndex.flatMap { case ((i, kind), n) =>
      val at = 2 + columns.length * PerColumn + n * FrequencySketch.Aggregates
      FrequencySketch.read(kind, row.getBinary(at), row.getBinary(at + 1)).map(i -> _)
    }.toMap
    val facts = columns.zipWithIndex.map { case (attribute, i) =>
      val at = 1 + i * PerColumn
      def read(j: Int, as: DataType): Option[Any] = if (row.isNullAt(at + j)) None else Some(row.get(at + j, as))
      val filled = row.getLong(at)
      val values = new SampledColumn(kept, i, attribute.dataType)
      val sketch = if (sketched(attribute.dataType)) Some(row.getLong(at + 1).toDouble) else None
      val ndv = sketch.map { d =>
        if (sample.complete) values.distinct.toDouble
        else if (values.unique && d >= 0.85 * filled) filled.toDouble
        else math.max(values.distinct.toDouble, math.min(d, filled.toDouble))
      }
      def bound(j: Int) =
        if (bounded(attribute.dataType)) read(j, attribute.dataType).flatMap(NodeFacts.bound) else None
      ColumnFacts(
        ndv,
        bound(2),
        bound(3),
        Some((count - filled).toDouble),
        if (measured(attribute.dataType)) read(4, DoubleType).map(_.asInstanceOf[Double].round) else None,
        histogram = if (bounded(attribute.dataType)) values.histogram(ndv.getOrElse(1.0)) else None,
        mostCommon = values.mostCommon,
        most = if (sample.complete) values.most else frequencies.get(i).map(_.most.toDouble),
        frequencies = frequencies.get(i),
        keyThreshold = thresholds.get(names(attribute.exprId))
      )
    }
    (sample, facts)
  }

  private def measured(dataType: DataType): Boolean = dataType match {
    case _: StringType | BinaryType => true
    case _ => false
  }
}
