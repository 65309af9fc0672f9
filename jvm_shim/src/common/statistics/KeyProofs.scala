package org.apache.spark.sql.pyjoinopt

import java.util.{BitSet, LinkedHashMap}
import java.util.concurrent.{Callable, ConcurrentHashMap, FutureTask}

import scala.util.control.NonFatal

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
 * larger table has no proof. A proof holds for the files that were read.
 */
private[pyjoinopt] object KeyProofs {
  type Proof = FutureTask[Boolean]

  /** Limits of a proof: rows of the table, bytes of the columns, row groups or stripes. */
  final case class Limits(rows: Long = 50L * 1000 * 1000, bytes: Long = 512L << 20, parts: Int = 1000)

  private val MaxProofs = 10000

  private lazy val pool = ThreadUtils.newDaemonFixedThreadPool(1, "pyjoinopt-keys")
  private val known = new LinkedHashMap[(Samples.Key, Set[String]), Boolean](64, 0.75f, true)
  private val reading = new ConcurrentHashMap[(Samples.Key, Set[String]), Proof]

  def forget(): Unit = synchronized(known.clear())

  /** Start a proof, or return the one under way; None if there can be no proof. */
  def begin(
      session: Compat.Session,
      files: Samples.Key,
      relation: LogicalRelation,
      columns: Set[String],
      partitions: Seq[Expression],
      limits: Limits): Option[Proof] = relation.relation match {
    case source: HadoopFsRelation if FileStatistics.hasFooters(source) =>
      val key = (files, columns)
      val found = synchronized(Option(known.get(key)))
      val task = new FutureTask(new Callable[Boolean] {
        override def call(): Boolean = found.getOrElse {
          try {
            val unique = session.withActive(isUnique(session, files, relation, source, columns, partitions, limits))
            synchronized(keep(key, unique))
            unique
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

  private def keep(key: (Samples.Key, Set[String]), unique: Boolean): Unit = {
    known.put(key, unique)
    val eldest = known.keySet.iterator
    while (known.size > MaxProofs && eldest.hasNext) {
      eldest.next()
      eldest.remove()
    }
  }

  private def isUnique(
      session: Compat.Session,
      requested: Samples.Key,
      relation: LogicalRelation,
      files: HadoopFsRelation,
      columns: Set[String],
      partitions: Seq[Expression],
      limits: Limits): Boolean = {
    val partitioned = files.partitionSchema.fieldNames.toSet
    val required = StructType(files.dataSchema.filter(f => columns(f.name) && !partitioned(f.name)))
    val all = StructType(required ++ files.partitionSchema)
    val read = columns.toSeq.flatMap(all.getFieldIndex)
    val until = System.nanoTime + MaxNanos
    read.length == columns.size && read.forall(i => isExact(all(i).dataType)) &&
    FileStatistics.list(session, files, until, partitions).exists { directories =>
      val listed = for (directory <- directories; file <- directory.files if file.fileStatus.getLen > 0)
        yield (file.fileStatus, directory.values)
      val footers = FileStatistics.footers(
        files,
        listed.map(_._1),
        FileStatistics.Limits(listed.length, Long.MaxValue, until),
        session.sessionState.newHadoopConfWithOptions(files.options)).map(_._2)
      val same = FileIdentity.of(relation, files, listed.map(_._1))
      val values = new Values(all, read)
      footers.length == listed.length && (same.id, same.schema) == requested &&
      seen(session, footers, required, values.whole, limits).exists { before =>
        val rows = new FileRows(session, files, required)
        SQLConf.withExistingConf(session.sessionState.conf.clone()) {
          listed.forall { case (file, partition) => everyNew(rows(file, partition, 0, file.getLen), values, before) }
        }
      }
    }
  }

  private val MaxNanos = 60L * 1000 * 1000 * 1000

  /** The set for the values read so far; None if it may need too much memory. */
  private def seen(
      session: Compat.Session,
      footers: Seq[FileFooter],
      columns: StructType,
      whole: Boolean,
      limits: Limits): Option[Seen] = {
    val sensitive = session.sessionState.conf.caseSensitiveAnalysis
    val rows = footers.map(_.rows).sum
    val bytes = footers.map(f => f.share(columns.fieldNames, sensitive) * f.parts.map(_.length.toDouble).sum).sum
    val memory = Runtime.getRuntime.maxMemory / 8
    val merged =
      if (whole && columns.length == 1) footers.filter(_.rows > 0).map(_.column(columns.head.name, sensitive)) else Nil
    val bounds = if (merged.isEmpty || merged.exists(_.isEmpty)) None
    else {
      val column = merged.flatten.reduce(FileFooter.merge)
      for (min <- column.min.collect { case n: Long => n }; max <- column.max.collect { case n: Long => n })
        yield (min, max)
    }
    if (rows > limits.rows || bytes > limits.bytes || footers.map(_.parts.length).sum > limits.parts) None
    else bounds match {
      case Some((min, max))
          if max - min >= 0 && max - min < math.min(memory * 8, rows * 64 + 64) &&
            max - min < Int.MaxValue => Some(new SeenBits(min, (max - min).toInt + 1))
      case _ if rows * 24 <= memory => Some(new SeenHashes)
      case _ => None
    }
  }

  /** Whether all rows have new values. A reader of columnar files can be closed at any row. */
  private def everyNew(rows: Iterator[InternalRow], values: Values, before: Seen): Boolean =
    try {
      var every = true
      while (every && rows.hasNext) {
        val row = rows.next()
        every = if (values.isNull(row)) before.addNull() else before.add(values(row))
      }
      every
    } finally rows match {
        case closeable: AutoCloseable => closeable.close()
        case _ =>
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
