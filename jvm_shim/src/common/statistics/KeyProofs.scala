package org.apache.spark.sql.pyjoinopt

import java.util.{BitSet, LinkedHashMap}
import java.util.concurrent.{Callable, ConcurrentHashMap, FutureTask}

import scala.util.control.NonFatal

import org.apache.spark.deploy.SparkHadoopUtil
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, XxHash64Function}
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._
import org.apache.spark.util.ThreadUtils
import org.apache.spark.util.collection.OpenHashSet

/**
 * Proves that a set of columns is a key of a table of files, by reading these columns once.
 *
 * Footers make a key likely; only the values prove it. One background thread reads them until the first duplicate,
 * which comes soon if there is no key. Values of a dense range of integers take one bit each, others a hash of eight
 * bytes a row. Different hashes prove different values; a collision of hashes only misses a key. NULL counts as a
 * value.
 *
 * Laws: only Parquet and ORC files all of whose rows are visible. Memory, rows, bytes and row groups are bounded; a
 * larger table has no proof, but a reason. A query and a session have a budget of bytes (`ReadBudget`): no proof begins
 * that would exceed it by the footers, and one that does all the same ends. A proof holds for the files that were read.
 */
private[pyjoinopt] object KeyProofs {

  /** Whether the columns are a key, or why that is not proved. */
  type Outcome = Either[String, Boolean]
  type Proof = FutureTask[Outcome]

  /** Limits of a proof: rows of the table, bytes of the columns, row groups or stripes. */
  final case class Limits(rows: Long = 50L * 1000 * 1000, bytes: Long = 512L << 20, parts: Int = 1000)

  private val MaxProofs = 10000
  private val RowsBetweenChecks = 4096

  private lazy val pool = ThreadUtils.newDaemonFixedThreadPool(1, "pyjoinopt-keys")
  private val known = new LinkedHashMap[(Samples.Key, Set[String]), Outcome](64, 0.75f, true)
  private val reading = new ConcurrentHashMap[(Samples.Key, Set[String]), Proof]

  def forget(): Unit = synchronized(known.clear())

  /** Start a proof, or return the one under way; None if there can be no proof. */
  def begin(
      session: Compat.Session,
      files: Samples.Key,
      relation: LogicalRelation,
      columns: Set[String],
      partitions: Seq[Expression],
      limits: Limits,
      budget: ReadBudget): Option[Proof] = relation.relation match {
    case source: HadoopFsRelation if FileStatistics.hasFooters(source) =>
      val key = (files, columns)
      val found = synchronized(Option(known.get(key)))
      val task = new FutureTask(new Callable[Outcome] {
        override def call(): Outcome = found.getOrElse {
          try {
            val reads = new Reads(budget)
            val outcome =
              session.withActive(prove(session, files, relation, source, columns, partitions, limits, reads))
            // What a budget refused, another query may read.
            if (outcome.isRight || reads.refused.isEmpty) synchronized(keep(key, outcome))
            outcome
          } finally reading.remove(key)
        }
      })
      if (found.isDefined) {
        task.run()
        Some(task)
      } else Some(Option(reading.putIfAbsent(key, task)).getOrElse(started(key, task)))
    case _ => None
  }

  private def started(key: (Samples.Key, Set[String]), task: Proof): Proof =
    try {
      pool.execute(task)
      task
    } catch { case NonFatal(error) => reading.remove(key); throw error }

  private def keep(key: (Samples.Key, Set[String]), outcome: Outcome): Unit = {
    known.put(key, outcome)
    val eldest = known.keySet.iterator
    while (known.size > MaxProofs && eldest.hasNext) {
      eldest.next()
      eldest.remove()
    }
  }

  /** The bytes that one proof reads: those that the file system counts, but no less than the share of rows in all. */
  private final class Reads(budget: ReadBudget) {
    private lazy val counted = SparkHadoopUtil.get.getFSBytesReadOnThreadCallback()
    private var (added, expected) = (0L, 0.0)

    /** Why no more is read; None as long as the budget allows for it. */
    var refused: Option[String] = None

    def begin(bytes: Double): Unit = {
      counted
      refused = budget.refusal(bytes)
    }

    /** Count rows that were read, of so many bytes by the footers. Some readers read in threads of their own. */
    def count(bytes: Double): Unit = {
      expected += bytes
      val now = math.max(counted(), expected.toLong)
      if (now > added) {
        budget.add(now - added)
        added = now
      }
    }

    def mayContinue(bytes: Double): Boolean = {
      count(bytes)
      if (refused.isEmpty) refused = budget.refusal(0)
      refused.isEmpty
    }
  }

  private def prove(
      session: Compat.Session,
      requested: Samples.Key,
      relation: LogicalRelation,
      files: HadoopFsRelation,
      columns: Set[String],
      partitions: Seq[Expression],
      limits: Limits,
      reads: Reads): Outcome = {
    val partitioned = files.partitionSchema.fieldNames.toSet
    val required = StructType(files.dataSchema.filter(f => columns(f.name) && !partitioned(f.name)))
    val all = StructType(required ++ files.partitionSchema)
    val read = columns.toSeq.flatMap(all.getFieldIndex)
    val until = System.nanoTime + MaxNanos
    val readable = read.length == columns.size && read.forall(i => isExact(all(i).dataType))
    val listing = if (readable) FileStatistics.list(session, files, until, partitions) else None
    listing.fold[Outcome](Right(false)) { directories =>
      val listed = for (directory <- directories; file <- directory.files if file.fileStatus.getLen > 0)
        yield (file.fileStatus, directory.values)
      val footers = FileStatistics.footers(
        files,
        listed.map(_._1),
        FileStatistics.Limits(listed.length, Long.MaxValue, until),
        session.sessionState.newHadoopConfWithOptions(files.options)).map(_._2)
      val same = FileIdentity.of(relation, files, listed.map(_._1))
      val values = new Values(all, read)
      if (footers.length != listed.length || (same.id, same.schema) != requested) Right(false)
      else {
        val sensitive = session.sessionState.conf.caseSensitiveAnalysis
        val sizes = footers.map(f => f.share(required.fieldNames, sensitive) * f.parts.map(_.length.toDouble).sum)
        seen(footers, sizes.sum, required, values.whole, sensitive, limits).flatMap { before =>
          reads.begin(sizes.sum)
          val rows = new FileRows(session, files, required)
          val unique = SQLConf.withExistingConf(session.sessionState.conf.clone()) {
            listed.zip(footers.zip(sizes)).forall { case ((file, partition), (footer, size)) =>
              reads.mayContinue(0) &&
              everyNew(rows(file, partition, 0, file.getLen), values, before, reads, size / math.max(1, footer.rows))
            }
          }
          if (unique) Right(true) else reads.refused.toLeft(false)
        }
      }
    }
  }

  private val MaxNanos = 60L * 1000 * 1000 * 1000

  /** The set for the values read so far, or why the table is too large. */
  private def seen(
      footers: Seq[FileFooter],
      bytes: Double,
      columns: StructType,
      whole: Boolean,
      sensitive: Boolean,
      limits: Limits): Either[String, Seen] = {
    val rows = footers.map(_.rows).sum
    val parts = footers.map(_.parts.length).sum
    val memory = Runtime.getRuntime.maxMemory / 8
    val merged =
      if (whole && columns.length == 1) footers.filter(_.rows > 0).map(_.column(columns.head.name, sensitive)) else Nil
    val bounds = if (merged.isEmpty || merged.exists(_.isEmpty)) None
    else {
      val column = merged.flatten.reduce(FileFooter.merge)
      for (min <- column.min.collect { case n: Long => n }; max <- column.max.collect { case n: Long => n })
        yield (min, max)
    }
    if (rows > limits.rows) Left(s"it has more than ${limits.rows} rows")
    else if (bytes > limits.bytes) Left(s"these columns have more than ${limits.bytes >> 20} MiB")
    else if (parts > limits.parts) Left(s"it has more than ${limits.parts} row groups")
    else bounds match {
      case Some((min, max))
          if max - min >= 0 && max - min < math.min(memory * 8, rows * 64 + 64) &&
            max - min < Int.MaxValue => Right(new SeenBits(min, (max - min).toInt + 1))
      case _ if rows * 24 <= memory => Right(new SeenHashes)
      case _ => Left("the driver has too little memory for its values")
    }
  }

  /** Whether all rows have new values, and may be read. A reader of columnar files can be closed at any row. */
  private def everyNew(rows: Iterator[InternalRow], values: Values, before: Seen, reads: Reads, width: Double) = {
    var (every, count) = (true, 0L)
    try {
      while (every && rows.hasNext) {
        val row = rows.next()
        every = if (values.isNull(row)) before.addNull() else before.add(values(row))
        count += 1
        if (count % RowsBetweenChecks == 0) every = reads.mayContinue(RowsBetweenChecks * width) && every
      }
    } finally rows match {
        case closeable: AutoCloseable => closeable.close()
        case _ =>
      }
    reads.count(count % RowsBetweenChecks * width)
    every
  }

  /** Whether equal values have equal hashes: for text only if equality is that of bytes. */
  private def isExact(of: DataType): Boolean = of match {
    case ByteType | ShortType | IntegerType | LongType | DateType | TimestampType | TimestampNTZType => true
    case _: DecimalType | BooleanType | BinaryType => true
    case StringType => true // this very type, no other collation of it
    case _ => false
  }

  /** The values of some columns of a row as one number: the value of a single integer column, else a hash. */
  private final class Values(columns: StructType, read: Seq[Int]) {
    private val types = read.map(columns(_).dataType).toArray
    private val at = read.toArray
    val whole: Boolean = types match {
      case Array(ByteType | ShortType | IntegerType | LongType | DateType) => true
      case _ => false
    }

    /** Of a single column. With several columns, NULL is one more value of each. */
    def isNull(row: InternalRow): Boolean = at.length == 1 && row.isNullAt(at(0))

    def apply(row: InternalRow): Long =
      if (whole) row.get(at(0), types(0)).asInstanceOf[Number].longValue
      else {
        var (hash, i) = (42L, 0)
        while (i < at.length) {
          val value = if (row.isNullAt(at(i))) null else row.get(at(i), types(i))
          hash = if (value == null) 31 * hash + 7 else XxHash64Function.hash(value, types(i), hash)
          i += 1
        }
        hash
      }
  }

  private trait Seen {
    private var nulls = 0

    /** Whether the value is new. */
    def add(value: Long): Boolean
    def addNull(): Boolean = {
      nulls += 1
      nulls == 1
    }
  }

  private final class SeenBits(min: Long, size: Int) extends Seen {
    private val bits = new BitSet(size)
    override def add(value: Long): Boolean = {
      val at = value - min
      val fresh = at >= 0 && at < size && !bits.get(at.toInt)
      if (fresh) bits.set(at.toInt)
      fresh
    }
  }

  private final class SeenHashes extends Seen {
    private val hashes = new OpenHashSet[Long](1024)
    override def add(value: Long): Boolean = {
      val fresh = !hashes.contains(value)
      if (fresh) hashes.add(value)
      fresh
    }
  }
}
