package org.apache.spark.sql.pyjoinopt

import java.util.Base64

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.{functions => f}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute}
import org.apache.spark.sql.catalyst.plans.logical.Project
import org.apache.spark.sql.execution.SQLExecution
import org.apache.spark.sql.execution.datasources.LogicalRelation
import org.apache.spark.sql.types._

/**
 * The statistics of a relation by one pass over it. One Spark job counts the rows, counts the values of each column and
 * finds their bounds, estimates their distinct counts by sketches, and draws a sample. Most common values and
 * histograms are computed from the sample.
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
  private val expected = math.max(1.0, request.path("expected").asDouble(1.0))
  private val files = FileStatistics.identify(
    handle.session,
    relation,
    FileStatistics.Limits(0, 0, System.nanoTime + 60L * 1000 * 1000 * 1000))

  /** The size of the sample (rows), limited by its memory: files decompress to a few times their size. */
  private val rows = {
    val width = files.fold(0.0)(_.bytes * 4 / expected)
    math.max(
      1,
      math.min(request.path("rows").asInt(10000), math.max(100, (MaxSampleBytes / math.max(1.0, width)).toInt)))
  }

  def run(): String = {
    val row = collected()
    val count = row.getLong(0)
    val (sample, facts) = found(row, count)
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
      files.foreach(id => Samples.put((id.id, id.schema), sample))
      out.writeEndObject()
    }
  }

  // -- the job ---------------------------------------------------------------------------------------------------

  private val PerColumn = 5

  private def collected(): InternalRow = {
    val plain = Project(columns.zipWithIndex.map { case (a, i) => Alias(a, s"c$i")() }, relation)
    val named = columns.indices.map(i => f.col(s"c$i")).toList
    val fraction = math.min(1.0, 1.2 * rows / expected)
    val drawn = f.when(f.rand(Seed) < fraction, f.struct((f.lit(0).as("nothing") :: named): _*)).as("drawn")
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
    val query = Compat.ofRows(handle.session, plain).select((drawn :: named): _*)
      .agg(f.count(f.lit(1)), (aggregates :+ f.collect_list(f.col("drawn"))): _*)
    val execution = query.queryExecution
    SQLExecution.withNewExecutionId(execution, Some("pyjoinopt.analyze"))(execution.executedPlan.executeCollect()).head
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

  private def found(row: InternalRow, count: Long): (RelationSample, List[ColumnFacts]) = {
    val schema = StructType(columns.map(a => StructField(names(a.exprId), a.dataType)))
    val all = row.getArray(1 + columns.length * PerColumn)
    val copy = RelationSample.copier(schema)
    val drawn = Array.tabulate(all.numElements()) { i =>
      val struct = all.getStruct(i, columns.length + 1)
      copy(InternalRow.fromSeq(schema.fields.toList.zipWithIndex.map { case (f, j) => struct.get(j + 1, f.dataType) }))
    }
    val kept =
      if (drawn.length <= rows || drawn.length == count) drawn
      else new scala.util.Random(Seed).shuffle(drawn.toSeq).take(rows).toArray
    val sample = new RelationSample(schema, kept, count, complete = kept.length == count, pieces = 0)
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
        most = if (sample.complete) values.most else None
      )
    }
    (sample, facts)
  }

  private def measured(dataType: DataType): Boolean = dataType match {
    case _: StringType | BinaryType => true
    case _ => false
  }
}
