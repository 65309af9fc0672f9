package org.apache.spark.sql.pyjoinopt

import java.util.Base64

import scala.collection.mutable

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.{functions => f}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, UnsafeRow}
import org.apache.spark.sql.catalyst.plans.logical.{Histogram, HistogramBin, Project}
import org.apache.spark.sql.execution.SQLExecution
import org.apache.spark.sql.execution.datasources.LogicalRelation
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/**
 * Everything worth knowing of a relation, in one pass over it: one Spark job that counts rows, counts and bounds the
 * values of each column, sketches how many different ones there are, and draws a sample. What is frequent, and how the
 * numbers are distributed, is read off the sample.
 *
 * A sample of n rows in which no value comes twice, of a column whose sketch says that nearly every row has its own,
 * settles that every row does: the sketch alone errs by some percent.
 *
 * Law: only functions that Spark has itself, since the executors know nothing of this jar.
 */
private[pyjoinopt] final class RelationAnalysis(handle: Handle, request: JsonNode) {
  private val relation: LogicalRelation = handle.nodes(request.path("node").asInt) match {
    case relation: LogicalRelation => relation
    case other => Support.fail(s"${other.nodeName} reads no files.")
  }
  private val numbers = handle.attributes.zipWithIndex.map { case (a, i) => a.exprId -> i }.toMap
  private val names = relation.output.zip(relation.relation.schema.fieldNames).map { case (a, name) => a.exprId -> name }.toMap
  private val columns: List[Attribute] = {
    val listed = ExpressionBuilder.elements(request.get("columns")).map(n => handle.attributes(n.asInt).exprId).toSet
    relation.output.toList.filter(a => listed(a.exprId) && names.contains(a.exprId))
  }
  private val rows = request.path("rows").asInt(10000)

  def run(): String = {
    val limits = FileStatistics.Limits(0, 0, System.nanoTime + 60L * 1000 * 1000 * 1000)
    val files = FileStatistics.identify(handle.session, relation, limits)
    val row = collected()
    val count = row.getLong(0)
    val (sample, facts) = found(row, count)
    val known = NodeFacts(
      Some(count.toDouble), files.map(_.bytes.toDouble), "analyze", exact = true, columns.zip(facts), files)
    Support.json { out =>
      out.writeStartObject()
      out.writeFieldName("known")
      known.write(out, a => numbers.get(a.exprId))
      out.writeNumberField("sampled", sample.rows.length)
      sample.kept = request.path("give").asBoolean
      if (sample.kept)
        out.writeStringField("blob", Base64.getEncoder.encodeToString(sample.bytes(handle.session.sparkContext.getConf)))
      files.foreach(id => Samples.put((id.id, id.schema), sample))
      out.writeEndObject()
    }
  }

  // -- the job ---------------------------------------------------------------------------------------------------

  private val PerColumn = 5

  private def collected(): InternalRow = {
    val plain = Project(columns.zipWithIndex.map { case (a, i) => Alias(a, s"c$i")() }, relation)
    val named = columns.indices.map(i => f.col(s"c$i")).toList
    val fraction = math.min(1.0, 1.2 * rows / math.max(1.0, request.path("expected").asDouble(1.0)))
    val drawn = f.when(f.rand(Seed) < fraction, f.struct((f.lit(0).as("nothing") :: named): _*)).as("drawn")
    val sketchError = if (columns.length <= 16) 0.02 else 0.05
    val asked = columns.zip(named).flatMap { case (attribute, c) =>
      val no = f.lit(null)
      List(
        f.count(c),
        if (sketched(attribute.dataType)) f.approx_count_distinct(c, sketchError) else no,
        if (bounded(attribute.dataType)) f.min(c) else no,
        if (bounded(attribute.dataType)) f.max(c) else no,
        attribute.dataType match {
          case _: StringType | BinaryType => f.avg(f.octet_length(c))
          case _ => no
        })
    }
    val query = Compat.ofRows(handle.session, plain).select((drawn :: named): _*)
      .agg(f.count(f.lit(1)), (asked :+ f.collect_list(f.col("drawn"))): _*)
    val execution = query.queryExecution
    SQLExecution.withNewExecutionId(execution, Some("pyjoinopt.analyze"))(execution.executedPlan.executeCollect()).head
  }

  private val Seed = 4711L

  private def sketched(dataType: DataType): Boolean = dataType match {
    case _: NullType => false
    case _: AtomicType => Support.className(dataType) != "VariantType$" && dataType.typeName != "variant"
    case _ => false
  }

  private def bounded(dataType: DataType): Boolean = dataType match {
    case _: NumericType | DateType | TimestampType | TimestampNTZType | BooleanType => true
    case _ => false
  }

  // -- what it says ----------------------------------------------------------------------------------------------

  private def found(row: InternalRow, count: Long): (RelationSample, List[ColumnFacts]) = {
    val schema = StructType(columns.map(a => StructField(names(a.exprId), a.dataType)))
    val all = row.getArray(1 + columns.length * PerColumn)
    val copy = RelationSample.copier(schema)
    val drawn = Array.tabulate(all.numElements()) { i =>
      val struct = all.getStruct(i, columns.length + 1)
      copy(InternalRow.fromSeq(schema.fields.toList.zipWithIndex.map { case (field, j) => struct.get(j + 1, field.dataType) }))
    }
    val kept =
      if (drawn.length <= rows || drawn.length == count) drawn
      else new scala.util.Random(Seed).shuffle(drawn.toSeq).take(rows).toArray
    val sample = new RelationSample(schema, kept, count, complete = kept.length == count)
    val facts = columns.zipWithIndex.map { case (attribute, i) =>
      val at = 1 + i * PerColumn
      def read(j: Int, as: DataType): Option[Any] = if (row.isNullAt(at + j)) None else Some(row.get(at + j, as))
      val filled = row.getLong(at)
      val values = new SampledColumn(kept, i, attribute.dataType)
      val sketch = if (sketched(attribute.dataType)) read(1, LongType).map(_.asInstanceOf[Long].toDouble) else None
      val ndv = sketch.map { d =>
        if (sample.complete) values.distinct.toDouble
        else if (values.unique && d >= 0.85 * filled) filled.toDouble
        else math.max(values.distinct.toDouble, math.min(d, filled.toDouble))
      }
      val bounds = if (bounded(attribute.dataType)) List(2, 3).map(read(_, attribute.dataType).flatMap(NodeFacts.bound)) else List(None, None)
      ColumnFacts(
        ndv, bounds(0), bounds(1), Some((count - filled).toDouble),
        read(4, DoubleType).filter(_ => !bounded(attribute.dataType) && lengthKnown(attribute.dataType))
          .map(_.asInstanceOf[Double].round),
        histogram = if (bounded(attribute.dataType)) values.histogram(ndv.getOrElse(1.0)) else None,
        heavy = values.heavy)
    }
    (sample, facts)
  }

  private def lengthKnown(dataType: DataType): Boolean = dataType match {
    case _: StringType | BinaryType => true
    case _ => false
  }
}

/** One column of a sample: how often each value comes. */
private[pyjoinopt] final class SampledColumn(rows: Array[UnsafeRow], ordinal: Int, dataType: DataType) {
  private val simple = dataType match {
    case BinaryType => false
    case _: AtomicType => true
    case _ => false
  }
  private val counts: Map[Any, Int] =
    if (!simple) Map.empty
    else {
      val found = new mutable.HashMap[Any, Int]
      rows.foreach { row =>
        if (!row.isNullAt(ordinal)) {
          val value = row.get(ordinal, dataType)
          found.put(value, found.getOrElse(value, 0) + 1)
        }
      }
      found.toMap
    }

  def distinct: Int = counts.size

  /** Enough values to tell, and no two alike. */
  def unique: Boolean = simple && counts.size >= SampledColumn.Enough && counts.values.forall(_ == 1)

  /** The most frequent values that are much more frequent than chance makes one of many, with their share of all rows. */
  def heavy: Seq[(Any, Double)] = {
    val least = math.max(SampledColumn.Seldom, rows.length / 1000)
    counts.toList.filter(_._2 >= least).sortBy { case (value, n) => (-n, value.toString) }.take(SampledColumn.MostHeavy).flatMap {
      case (text: UTF8String, n) => if (text.numBytes <= 200) Some(text.toString -> n.toDouble / rows.length) else None
      case (value, n) => NodeFacts.bound(value).map(_ -> n.toDouble / rows.length)
    }
  }

  /** Bins of equally many sampled values; the different ones of all bins together are made to be `ndv`. */
  def histogram(ndv: Double): Option[Histogram] = {
    val values = counts.toList.flatMap { case (value, n) =>
      NodeFacts.bound(value).collect { case x: Long => x.toDouble -> n; case x: Double => x -> n }
    }.sortBy(_._1)
    val sorted = values.flatMap { case (x, n) => List.fill(n)(x) }.toArray
    val count = math.min(SampledColumn.MostBins, sorted.length / SampledColumn.PerBin)
    if (count < 2) None
    else {
      val bins = (0 until count).map { i =>
        val (from, to) = ((i.toLong * sorted.length / count).toInt, ((i + 1L) * sorted.length / count).toInt)
        (sorted(from), sorted(to - 1), sorted.slice(from, to).distinct.length)
      }
      val (single, wide) = bins.partition(b => b._1 == b._2)
      val scale = math.max(1.0, (ndv - single.map(_._1).distinct.length) / math.max(1, wide.map(_._3).sum))
      Some(Histogram(sorted.length.toDouble / count, bins.map { case (low, high, n) =>
        HistogramBin(low, high, if (low == high) 1L else math.max(1L, (n * scale).round))
      }.toArray))
    }
  }
}

private[pyjoinopt] object SampledColumn {
  private val Enough = 500
  private val Seldom = 5
  private val MostHeavy = 20
  private val MostBins = 254
  private val PerBin = 20
}
