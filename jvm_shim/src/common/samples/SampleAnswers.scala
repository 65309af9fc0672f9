package org.apache.spark.sql.pyjoinopt

import java.util.Base64
import java.util.concurrent.{FutureTask, TimeUnit}

import com.fasterxml.jackson.core.JsonGenerator
import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.catalyst.expressions.ExprId
import org.apache.spark.sql.execution.datasources.LogicalRelation

/**
 * Answers a request for samples: for each relation, the sampled rows that each predicate keeps.
 *
 * A sample is in this JVM already, or is part of the request (from the store), or is drawn now if the request allows
 * it. The answer has the bytes of a new sample, for the store. All relations are read concurrently, before the first
 * answer.
 *
 * Law: no Spark job is started, and a relation that cannot be read does not affect the others.
 */
private[pyjoinopt] final class SampleAnswers(handle: Handle, request: JsonNode) {
  private val started = System.nanoTime
  private val conf = handle.session.sparkContext.getConf

  private val expressions = new RequestExpressions(handle, request)

  private final class Question(entry: JsonNode) {
    val key: Samples.Key = (entry.path("id").asText, entry.path("schema").asText)
    val predicates: List[JsonNode] = ExpressionBuilder.elements(entry.get("predicates"))
    val relation: Option[LogicalRelation] = handle.nodes.lift(entry.path("node").asInt(-1)).collect {
      case relation: LogicalRelation => relation
    }
    private val names: Map[ExprId, String] = relation.toList.flatMap { r =>
      r.output.zip(r.relation.schema.fieldNames).map { case (attribute, name) => attribute.exprId -> name }
    }.toMap
    private def named(field: String): List[(Int, String)] =
      ExpressionBuilder.elements(entry.get(field)).map(_.asInt).flatMap { n =>
        names.get(handle.attribute(n).exprId).map(n -> _)
      }

    /** Names of the requested columns. */
    val wanted: Set[String] = named("columns").map(_._2).toSet

    /** Columns whose codes are requested if the sample has them. No sample is drawn for them alone. */
    val keys: List[(Int, String)] = named("keys")
    private var offered = false
    val task: Option[FutureTask[Option[SampleReader.Drawn]]] = relation match {
      case Some(files) if sample.isEmpty && entry.path("read").asBoolean =>
        val both = wanted ++ keys.map(_._2) ++ Samples.get(key).toList.flatMap(_.columns.fieldNames)
        val partitions = expressions.partitions(files, entry.get("partitions"))
        val columns = if (both.size <= SampleAnswers.MaxColumns) both else wanted
        Some(Samples.begin(handle.session, key, files, columns, budget.copy(partitions = partitions)))
      case _ => None
    }

    def sample: Option[RelationSample] = {
      def fits = Samples.get(key).filter(_.has(wanted))
      fits.orElse {
        if (entry.path("blob").isTextual && !offered) {
          offered = true
          RelationSample.parse(Base64.getDecoder.decode(entry.get("blob").asText), conf).foreach { stored =>
            stored.stored = true
            Samples.put(key, stored)
          }
        }
        fits
      }
    }
    def ordinal(sample: RelationSample)(id: ExprId): Option[Int] = names.get(id).flatMap(sample.columns.getFieldIndex)
  }

  def run(): String = Support.json { out =>
    val questions = ExpressionBuilder.elements(request.get("relations")).map(new Question(_))
    val drawn = questions.map(_.task.map(FileStatistics.await(_, started + nanos("deadlineMs", 1000), giveUp = false)))
    val until = System.nanoTime + nanos("evaluateMs", 500)
    out.writeStartObject()
    out.writeArrayFieldStart("relations")
    questions.zip(drawn).foreach { case (question, read) => answer(out, question, read, until) }
    out.writeEndArray()
    out.writeEndObject()
  }

  private def answer(
      out: JsonGenerator,
      question: Question,
      read: Option[Either[Throwable, Option[SampleReader.Drawn]]],
      until: Long): Unit = {
    out.writeStartObject()
    question.sample match {
      case Some(sample) =>
        out.writeNumberField("rows", sample.rows.length)
        out.writeNumberField("seen", sample.seen)
        out.writeBooleanField("complete", sample.complete)
        out.writeNumberField("pieces", sample.pieces)
        writeColumns(out, sample)
        out.writeArrayFieldStart("hits")
        question.predicates.foreach { reference =>
          SamplePredicates.hits(expressions(reference), sample, question.ordinal(sample), until) match {
            case Some(bits) => out.writeString(SampleAnswers.hex(bits))
            case None => out.writeNull()
          }
        }
        out.writeEndArray()
        writeCodes(out, question, sample)
        if (request.path("give").asBoolean && !sample.stored) {
          sample.stored = true
          val bytes = sample.bytes(conf)
          if (bytes.length <= SampleAnswers.MaxStoredBytes)
            out.writeStringField("blob", Base64.getEncoder.encodeToString(bytes))
        }
      case None =>
        out.writeBooleanField("missing", true)
        Samples.get(question.key).foreach(writeColumns(
          out,
          _
        )) // Python need not send a stored sample of these columns again
    }
    read.foreach {
      case Right(Some(drawn)) =>
        out.writeNumberField("read", drawn.read)
        drawn.note.foreach(text => out.writeStringField("note", Support.cut(text, 500)))
        if ((drawn.files.id, drawn.files.schema) != question.key)
          out.writeStringField("note", "the files have changed since they were listed")
      case Right(None) => out.writeStringField("note", "of these files no sample is drawn")
      case Left(_: java.util.concurrent.TimeoutException) => out.writeBooleanField("late", true)
      case Left(error) => out.writeStringField("note", s"no sample: ${FileStatistics.message(error)}")
    }
    out.writeEndObject()
  }

  private def writeColumns(out: JsonGenerator, sample: RelationSample): Unit = {
    out.writeArrayFieldStart("columns")
    sample.columns.fieldNames.foreach(out.writeString)
    out.writeEndArray()
  }

  /** The codes of each key column: equal codes for equal values, two bytes a row. */
  private def writeCodes(out: JsonGenerator, question: Question, sample: RelationSample): Unit =
    if (sample.rows.length <= SampleAnswers.MaxRowsWithCodes) {
      out.writeObjectFieldStart("keys")
      for ((number, name) <- question.keys; i <- sample.columns.getFieldIndex(name)) {
        sample.codes(i).foreach(out.writeStringField(number.toString, _))
      }
      out.writeEndObject()
    }

  private def budget = SampleReader.Budget(
    request.path("rows").asInt(4096),
    request.path("pieces").asInt(16),
    request.path("maxBytes").asLong(16L << 20),
    request.path("maxValues").asLong(500000),
    until = System.nanoTime + nanos("readMs", 10000)
  )

  private def nanos(field: String, default: Long): Long =
    TimeUnit.MILLISECONDS.toNanos(request.path(field).asLong(default))
}

private[pyjoinopt] object SampleAnswers {

  /** A sample gets the columns that queries filter by, up to this number. */
  private val MaxColumns = 64

  /** Larger samples are not stored (bytes). */
  private val MaxStoredBytes = 16 << 20

  /** Samples with more rows have no codes. */
  private val MaxRowsWithCodes = 20000
  private val Digits = "0123456789abcdef".getBytes

  def hex(bytes: Array[Byte]): String = {
    val text = new Array[Byte](bytes.length * 2)
    bytes.indices.foreach { i =>
      text(2 * i) = Digits(bytes(i) >> 4 & 15)
      text(2 * i + 1) = Digits(bytes(i) & 15)
    }
    new String(text, java.nio.charset.StandardCharsets.US_ASCII)
  }
}
