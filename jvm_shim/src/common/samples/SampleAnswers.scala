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
 * A relation may have dimensions, which are others of the request: then it is also computed which of its sampled rows
 * have a partner there, and which have one that fulfils each of its predicates (see SampleJoins). Of columns that semi
 * joins compare, it may be requested to hash the values, so that those of different samples can be compared.
 *
 * Law: no Spark job is started, and a relation that cannot be read does not affect the others.
 */
private[pyjoinopt] final class SampleAnswers(handle: Handle, request: JsonNode) {
  private val started = System.nanoTime
  private val conf = handle.session.sparkContext.getConf

  /**
   * Whether a sample is drawn anew that lacks only columns of keys. Otherwise the estimates of a query may depend on what
   * other queries needed before it.
   */
  private val thorough = request.path("thorough").asBoolean

  private val expressions = new RequestExpressions(handle, request)

  private final class Question(entry: JsonNode) {
    val key: Samples.Key = (entry.path("id").asText, entry.path("schema").asText)
    val dimensions: List[JsonNode] = ExpressionBuilder.elements(entry.get("dimensions"))
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

    /** Columns whose codes are requested if the sample has them. A sample is drawn for them alone if `thorough`. */
    val keys: List[(Int, String)] = named("keys")

    /** The key of a KeySample that is requested instead, and the threshold below which its rows are used. */
    private val keyed: Option[(String, Long)] =
      named("keyedBy").headOption.map { case (_, name) => name -> entry.path("threshold").asLong(Long.MinValue) }

    /** Columns of whose values hashes are requested if the sample has them. */
    val hashed: List[(Int, String)] = named("hashed")

    private val whole = entry.path("whole").asBoolean
    private var offered = false

    /** Whether a random sample is needed, which bounds shares, and was not refused before. */
    private val random = entry.path("random").asBoolean
    private def suffices(sample: RelationSample) =
      (!random || sample.design.isDefined || sample.complete || sample.refused) && !(thorough && lacks(sample))

    /** Whether a sample has not all columns of keys that one drawn now would have. */
    def lacks(sample: RelationSample): Boolean =
      needed.exists(name => !sample.has(Seq(name)) && !sample.leftOut(name))

    /** What draws a sample for this request. */
    var task: Option[FutureTask[Option[SampleReader.Drawn]]] = None

    /** All columns of the sample that would be drawn for this relation alone. */
    def needed: Set[String] = wanted ++ (keys ++ hashed).map(_._2)

    /**
     * Begins to draw a sample, if one is needed; `together` are the columns that all relations of the request with these
     * files need. A relation that has the files for itself can do with fewer, if it is read whole then.
     */
    def begin(together: Set[String]): Unit = relation.foreach { files =>
      if (!atFirst.exists(suffices) && entry.path("read").asBoolean) {
        val all = together ++ Samples.get(key).toList.flatMap(_.columns.fieldNames)
        val fewest = if (together == needed) wanted else together
        val columns = Seq(all, together, fewest).distinct.filter(_.size <= SampleAnswers.MaxColumns)
        val partitions = expressions.partitions(files, entry.get("partitions"))
        val limits = (if (random) randomBudget(entry) else budget).copy(partitions = partitions)
        task = Some(Samples.begin(
          handle.session,
          key,
          files,
          if (columns.isEmpty) Seq(wanted) else columns,
          random,
          limits))
      }
    }

    /** Whether this relation's sample has all partners of another one's rows, if these columns are compared. */
    def hasPartnersOf(center: Question, columns: Seq[String], partners: Seq[String]): Boolean =
      (center.keyed, keyed) match {
        case (Some((left, one)), Some((right, other))) => one == other && columns == Seq(left) && partners == Seq(right)
        case _ => false
      }

    /**
     * What the answer is from. It is chosen once, when nothing more is waited for: other queries may replace a sample at
     * any time, also by one that has less of what this request needs, and one that has become ready since another part
     * of the answer was written would not be used for that.
     */
    lazy val sample: Option[RelationSample] =
      (justDrawn.filter(_ => keyed.isEmpty) ++ atFirst ++ present)
        .reduceOption(Ordering.by((s: RelationSample) => (suffices(s), !lacks(s), s.complete)).max(_, _))

    /** What was there when the request came. */
    private lazy val atFirst: Option[RelationSample] = present

    private def present: Option[RelationSample] = keyed match {
      case Some((name, threshold)) => keySample(name).filter(_.threshold >= threshold).map(_.below(threshold))
      case None => ownSample
    }

    /** What was drawn for this request, if it is there. */
    private def justDrawn: Option[RelationSample] =
      for {
        running <- task if running.isDone
        drawn <- Support.attempt(Option.empty[SampleReader.Drawn])(running.get)
        if (drawn.files.id, drawn.files.schema) == key
        sample <- drawn.sample if sample.has(wanted)
      } yield sample

    private def keySample(name: String): Option[KeySample] = {
      val id = (key._1, key._2, name)
      def fits = KeySamples.get(id).filter(s => wanted.forall(s.columns.getFieldIndex(_).isDefined))
      fits.orElse {
        stored.flatMap(KeySample.parse(_, conf)).filter(_.key == name).foreach(KeySamples.put(id, _))
        fits
      }
    }

    /** The bytes of a stored sample, for one attempt to read them. */
    private def stored: Option[Array[Byte]] =
      if (!entry.path("blob").isTextual || offered) None
      else {
        offered = true
        Some(Base64.getDecoder.decode(entry.get("blob").asText))
      }

    private def ownSample: Option[RelationSample] = {
      def fits = Samples.get(key).filter(s => s.has(wanted) && (s.full || !whole))
      fits.orElse {
        stored.flatMap(RelationSample.parse(_, conf)).foreach { sample =>
          sample.stored = true
          Samples.put(key, sample)
        }
        fits
      }
    }
    def ordinal(sample: RelationSample)(id: ExprId): Option[Int] = names.get(id).flatMap(sample.columns.getFieldIndex)

    /** The ordinals of listed columns; None if the sample lacks one. */
    def ordinals(sample: RelationSample, listed: JsonNode): Option[List[Int]] = {
      val found = ExpressionBuilder.elements(listed).map { n =>
        handle.attributes.lift(n.asInt(-1)).flatMap(a => ordinal(sample)(a.exprId))
      }
      if (found.forall(_.isDefined)) Some(found.flatten) else None
    }
  }

  private def hits(question: Question, sample: RelationSample, until: Long): List[Option[Array[Byte]]] =
    question.predicates.map { predicate =>
      SamplePredicates.hits(expressions(predicate), sample, question.ordinal(sample), until)
    }

  def run(): String = Support.json { out =>
    val questions = ExpressionBuilder.elements(request.get("relations")).map(new Question(_)).toIndexedSeq
    val together = questions.groupBy(_.key).map { case (key, some) => key -> some.flatMap(_.needed).toSet }
    questions.foreach(question => question.begin(together(question.key)))
    val drawn = questions.map(_.task.map(FileStatistics.await(_, started + nanos("deadlineMs", 1000), giveUp = false)))
    val until = System.nanoTime + nanos("evaluateMs", 500)
    out.writeStartObject()
    out.writeArrayFieldStart("relations")
    questions.zip(drawn).foreach { case (question, read) => answer(out, question, read, questions, until) }
    out.writeEndArray()
    out.writeEndObject()
  }

  private def answer(
      out: JsonGenerator,
      question: Question,
      read: Option[Either[Throwable, Option[SampleReader.Drawn]]],
      others: IndexedSeq[Question],
      until: Long): Unit = {
    out.writeStartObject()
    question.sample match {
      case Some(sample) =>
        out.writeNumberField("rows", sample.rows.length)
        out.writeNumberField("seen", sample.seen)
        out.writeBooleanField("complete", sample.complete)
        out.writeNumberField("pieces", sample.pieces)
        out.writeNumberField("sample", sample.number)
        if (sample.starts.nonEmpty) {
          out.writeArrayFieldStart("starts")
          sample.starts.foreach(out.writeNumber(_))
          out.writeEndArray()
        }
        sample.design.foreach { design =>
          out.writeNumberField("draws", design.draws)
          out.writeNumberField("stretch", design.stretch)
        }
        if (sample.refused) out.writeBooleanField("refused", true)
        if (question.lacks(sample)) out.writeBooleanField("lacking", true)
        writeColumns(out, sample)
        out.writeArrayFieldStart("hits")
        val found = hits(question, sample, until)
        found.foreach(SampleAnswers.write(out, _))
        out.writeEndArray()
        if (sample.complete && found.forall(_.isDefined)) writeDistinct(out, question, sample, found.flatten)
        writeCodes(out, question, sample)
        writeRuns(out, question, sample)
        writeHashes(out, question, sample, SampleJoins.start(sample))
        if (question.dimensions.nonEmpty) writeDimensions(out, question, sample, others, until)
        if (request.path("give").asBoolean && !sample.stored && sample.rows.length <= SampleAnswers.MaxStoredRows) {
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

  /** How many rows that follow each other share a value of each key column, on average, if it is more than one. */
  private def writeRuns(out: JsonGenerator, question: Question, sample: RelationSample): Unit = {
    out.writeObjectFieldStart("runs")
    for ((number, name) <- question.keys; i <- sample.columns.getFieldIndex(name); run <- sample.runs.lift(i))
      if (run > 1.0) out.writeNumberField(number.toString, run)
    out.writeEndObject()
  }

  /** The hashes of each requested column in some rows of a sample, four bytes a row; those of row -1 are 0. */
  private def writeHashes(out: JsonGenerator, question: Question, sample: RelationSample, rows: Array[Int]): Unit =
    if (question.hashed.nonEmpty && rows.length <= SampleAnswers.MaxRowsWithCodes) {
      out.writeObjectFieldStart("hashed")
      for {
        (number, name) <- question.hashed
        i <- sample.columns.getFieldIndex(name)
        hashes <- sample.hashes(i)
      } {
        val bytes = rows.flatMap { row =>
          val hash = if (row < 0) 0 else hashes(row)
          Seq(hash.toByte, (hash >> 8).toByte, (hash >> 16).toByte, (hash >> 24).toByte)
        }
        out.writeStringField(number.toString, SampleAnswers.hex(bytes))
      }
      out.writeEndObject()
    }

  /**
   * Of each key column the number of different values among the rows that fulfil all predicates, and the most rows that
   * share a value.
   */
  private def writeDistinct(
      out: JsonGenerator,
      question: Question,
      sample: RelationSample,
      hits: List[Array[Byte]]): Unit = {
    out.writeObjectFieldStart("distinct")
    for {
      (number, name) <- question.keys
      i <- sample.columns.getFieldIndex(name)
      count <- sample.distinct(i, hits)
      most <- sample.most(i)
    } {
      out.writeArrayFieldStart(number.toString)
      out.writeNumber(count)
      out.writeNumber(most)
      out.writeEndArray()
    }
    out.writeEndObject()
  }

  private def writeDimensions(
      out: JsonGenerator,
      center: Question,
      own: RelationSample,
      others: IndexedSeq[Question],
      until: Long): Unit = {
    var found = Vector.empty[Option[(Question, RelationSample, Array[Int])]]
    center.dimensions.foreach { dimension =>
      val at = dimension.path("of").asInt(-1)
      val outer = if (at < 0) Some((center, own, SampleJoins.start(own))) else found.lift(at).flatten
      found :+= Support.attempt(Option.empty[(Question, RelationSample, Array[Int])]) {
        for {
          (of, left, rows) <- outer
          inner <- others.lift(dimension.path("relation").asInt(-1))
          right <- inner.sample
          columns <- of.ordinals(left, dimension.get("columns"))
          key <- inner.ordinals(right, dimension.get("key"))
          (own, theirs) = (columns.map(left.columns(_).name), key.map(right.columns(_).name))
          if right.complete || inner.hasPartnersOf(of, own, theirs)
          partners <- SampleJoins.partners(rows, left, columns, right, key)
        } yield (inner, right, partners)
      }
    }
    out.writeArrayFieldStart("dimensions")
    found.zip(center.dimensions).foreach {
      case (Some((inner, sample, partners)), dimension) =>
        out.writeStartObject()
        if (dimension.path("of").asInt(-1) < 0) {
          val columns = center.ordinals(own, dimension.get("columns")).getOrElse(Nil)
          out.writeStringField("filled", SampleAnswers.hex(SampleJoins.filled(own, columns)))
        }
        out.writeStringField("matched", SampleAnswers.hex(SampleJoins.bits(partners, None)))
        out.writeArrayFieldStart("hits")
        hits(inner, sample, until).foreach { kept =>
          SampleAnswers.write(out, kept.map(bits => SampleJoins.bits(partners, Some(bits))))
        }
        out.writeEndArray()
        writeHashes(out, inner, sample, partners)
        out.writeEndObject()
      case (None, _) => out.writeNull()
    }
    out.writeEndArray()
  }

  private def budget = SampleReader.Budget(
    request.path("rows").asInt(4096),
    request.path("pieces").asInt(16),
    request.path("maxBytes").asLong(16L << 20),
    request.path("maxValues").asLong(500000),
    until = System.nanoTime + nanos("readMs", 10000),
    wholeRows = request.path("wholeRows").asInt(131072)
  )

  /** Of a random sample: many places, each as a whole. */
  private def randomBudget(entry: JsonNode) = SampleReader.Budget(
    request.path("randomRows").asInt(8192),
    request.path("draws").asInt(entry.path("draws").asInt(256)),
    entry.path("maxBytes").asLong(1L << 30),
    entry.path("maxValues").asLong(1L << 27),
    until = System.nanoTime + nanos("readMs", 10000),
    random = true
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

  /** Larger samples are read anew: that takes no longer than to read them from the store. */
  private val MaxStoredRows = 20000

  def write(out: JsonGenerator, bits: Option[Array[Byte]]): Unit = bits match {
    case Some(bytes) => out.writeString(hex(bytes))
    case None => out.writeNull()
  }

  def hex(bytes: Array[Byte]): String = {
    val text = new Array[Byte](bytes.length * 2)
    bytes.indices.foreach { i =>
      text(2 * i) = Digits(bytes(i) >> 4 & 15)
      text(2 * i + 1) = Digits(bytes(i) & 15)
    }
    new String(text, java.nio.charset.StandardCharsets.US_ASCII)
  }
}
