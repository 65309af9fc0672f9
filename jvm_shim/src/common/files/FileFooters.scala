package org.apache.spark.sql.pyjoinopt

import java.util.LinkedHashMap
import java.util.concurrent.{Callable, ConcurrentHashMap, ExecutionException, FutureTask}

import org.apache.hadoop.fs.FileStatus
import org.apache.parquet.hadoop.metadata.CompressionCodecName

/** The footer of one file: rows, bounds and NULL counts of top-level columns, and the parts of the file. */
private[pyjoinopt] final case class FileFooter(
    rows: Long,
    columns: Map[String, FooterColumn],
    parts: Seq[FilePart] = Nil) {

  /** Distinct counts of the columns whose dictionaries were counted. */
  val counted = new ConcurrentHashMap[String, DistinctCount]

  /** The name of a column in the file. */
  def nameOf(name: String, caseSensitive: Boolean): Option[String] =
    if (columns.contains(name)) Some(name)
    else if (caseSensitive) None
    else columns.keysIterator.find(_.equalsIgnoreCase(name))

  def column(name: String, caseSensitive: Boolean): Option[FooterColumn] = nameOf(name, caseSensitive).map { own =>
    val column = columns(own)
    val distinct = counted.get(own)
    if (distinct != null) column.copy(distinct = distinct)
    else if (column.places.isEmpty) column.copy(distinct = DistinctCount.unknown)
    else column
  }

  /** The share of these columns in the bytes of the file. */
  def share(names: Iterable[String], caseSensitive: Boolean): Double = {
    val whole = parts.map(_.length.toDouble).sum
    val found = names.map(nameOf(_, caseSensitive).map(columns(_).bytes).filter(_ > 0)).toList
    val evenly = whole / math.max(1, columns.size) // for nested columns, and for formats without sizes of columns
    if (whole <= 0) 1.0 else math.min(1.0, found.map(_.fold(evenly)(_.toDouble)).sum / whole)
  }
}

/** A row group or stripe. A reader of this range of bytes reads it and no other. */
private[pyjoinopt] final case class FilePart(start: Long, length: Long, rows: Long)

/**
 * The offset of the dictionary of a chunk, and the chunk's rows that are not NULL and their bounds. `codec` is the
 * compression of a dictionary of text.
 */
private[pyjoinopt] final case class DictionaryPlace(
    offset: Long,
    filled: Double,
    min: Option[Any],
    max: Option[Any],
    codec: Option[CompressionCodecName] = None)

/**
 * The statistics of a column in a footer. `allNull` columns have no bounds; the bounds of other columns without bounds
 * are unknown. `places` are the offsets of dictionaries: None if these lack values. `bytes` is the size of the column,
 * 0 if unknown; `text` is the size of text and binary values before compression, which a dictionary makes smaller than
 * the sum of their lengths; `lengths` is that sum, which newer files have. `unit` is the unit of integer bounds: "days", "micros", or "" for none.
 */
private[pyjoinopt] final case class FooterColumn(
    min: Option[Any],
    max: Option[Any],
    nulls: Option[Double],
    allNull: Boolean,
    distinct: DistinctCount = DistinctCount.nothing,
    places: Option[List[DictionaryPlace]] = None,
    bytes: Long = 0,
    text: Option[Double] = None,
    lengths: Option[Double] = None,
    unit: String = "")

private[pyjoinopt] object FooterColumn {
  val days = "days"
  val micros = "micros"
  val mixed = "mixed"
}

private[pyjoinopt] object FileFooter {

  def merge(a: FooterColumn, b: FooterColumn): FooterColumn = {
    val nulls = for (x <- a.nulls; y <- b.nulls) yield x + y
    val distinct = a.distinct.and(b.distinct, below(a.max, b.min) || below(b.max, a.min))
    val places = for (x <- a.places; y <- b.places) yield x ++ y
    val bytes = a.bytes + b.bytes
    val text = for (x <- a.text; y <- b.text) yield x + y
    val lengths = for (x <- a.lengths; y <- b.lengths) yield x + y
    val unit = if (a.unit == b.unit || b.allNull) a.unit else if (a.allNull) b.unit else FooterColumn.mixed
    if (a.allNull || b.allNull) {
      val bounded = if (a.allNull) b else a
      bounded.copy(
        nulls = nulls,
        distinct = distinct,
        places = places,
        bytes = bytes,
        text = text,
        lengths = lengths)
    } else
      FooterColumn(
        NodeFacts.extreme(a.min, b.min, upper = false),
        NodeFacts.extreme(a.max, b.max, upper = true),
        nulls,
        allNull = false,
        distinct,
        places,
        bytes,
        text,
        lengths,
        unit)
  }

  private def below(a: Option[Any], b: Option[Any]): Boolean = (a, b) match {
    case (Some(x: Long), Some(y: Long)) => x < y
    case (Some(x: Double), Some(y: Double)) => x < y
    case _ => false
  }
}

/**
 * A cache of footers, so that a file is opened once.
 *
 * Law: the key is path, length and modification time, so a changed file is another file. The cache is bounded by the
 * number of columns; the least recently used footers are dropped. Concurrent requests for one footer read it once.
 */
private[pyjoinopt] object FileFooters {
  private val MaxColumns = 200000L
  private type Key = (String, Long, Long)

  private val known = new LinkedHashMap[Key, FileFooter](64, 0.75f, true)
  private var columns = 0L
  private val reading = new ConcurrentHashMap[Key, FutureTask[FileFooter]]

  def cached(file: FileStatus)(read: FileStatus => FileFooter): FileFooter = {
    val key = (file.getPath.toString, file.getLen, file.getModificationTime)
    val found = synchronized(known.get(key))
    if (found != null) found
    else {
      val task = new FutureTask(new Callable[FileFooter] {
        override def call(): FileFooter = {
          val footer = read(file)
          FileFooters.synchronized(keep(key, footer))
          footer
        }
      })
      val other = reading.putIfAbsent(key, task)
      if (other == null)
        try task.run()
        finally reading.remove(key, task)
      val reader = if (other == null) task else other
      try reader.get()
      catch { case failed: ExecutionException => throw failed.getCause }
    }
  }

  private def keep(key: Key, footer: FileFooter): Unit = {
    val before = known.put(key, footer)
    columns += weight(footer) - (if (before == null) 0 else weight(before))
    val eldest = known.values.iterator
    while (columns > MaxColumns && eldest.hasNext) {
      columns -= weight(eldest.next())
      eldest.remove()
    }
  }

  private def weight(footer: FileFooter): Long = footer.columns.size + footer.parts.size + 10L
}
