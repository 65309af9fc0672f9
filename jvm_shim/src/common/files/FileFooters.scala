package org.apache.spark.sql.pyjoinopt

import java.util.LinkedHashMap
import java.util.concurrent.{Callable, ConcurrentHashMap, ExecutionException, FutureTask}

import org.apache.hadoop.fs.FileStatus

/** What the footer of one file says: rows, for top-level columns bounds and nulls, and the parts it is made of. */
private[pyjoinopt] final case class FileFooter(
    rows: Long,
    columns: Map[String, FooterColumn],
    parts: Seq[FilePart] = Nil) {

  /** Different values of the columns whose dictionaries were looked at. */
  val counted = new ConcurrentHashMap[String, DistinctCount]

  /** The name that a column has in the file. */
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

  /** Which part of the file these columns take up. */
  def share(names: Iterable[String], caseSensitive: Boolean): Double = {
    val whole = parts.map(_.length.toDouble).sum
    val found = names.map(nameOf(_, caseSensitive).map(columns(_).bytes).filter(_ > 0)).toList
    val evenly = whole / math.max(1, columns.size) // of columns that are nested, or of a format that does not tell
    if (whole <= 0) 1.0 else math.min(1.0, found.map(_.fold(evenly)(_.toDouble)).sum / whole)
  }
}

/** A row group or stripe. A reader that is given these bytes of the file reads it and no other. */
private[pyjoinopt] final case class FilePart(start: Long, length: Long, rows: Long)

/** Where the dictionary of a chunk lies, and what it is the dictionary of: rows that are not NULL, and their bounds. */
private[pyjoinopt] final case class DictionaryPlace(offset: Long, filled: Double, min: Option[Any], max: Option[Any])

/**
 * `allNull` columns have no bounds and need none; other columns without bounds are unknown. `places` is where to look
 * for dictionaries: None if what they hold is not all. `bytes` is what the column takes up, 0 if that is not told; `text`
 * what its values of text or bytes take up before compression, if they are such. A dictionary makes that less than their
 * lengths. `unit` is what bounds that are whole numbers count: "days", "micros", or nothing but themselves.
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
    val unit = if (a.unit == b.unit || b.allNull) a.unit else if (a.allNull) b.unit else FooterColumn.mixed
    if (a.allNull) b.copy(nulls = nulls, distinct = distinct, places = places, bytes = bytes, text = text)
    else if (b.allNull) a.copy(nulls = nulls, distinct = distinct, places = places, bytes = bytes, text = text)
    else
      FooterColumn(
        NodeFacts.extreme(a.min, b.min, upper = false),
        NodeFacts.extreme(a.max, b.max, upper = true),
        nulls,
        allNull = false,
        distinct,
        places,
        bytes,
        text,
        unit)
  }

  private def below(a: Option[Any], b: Option[Any]): Boolean = (a, b) match {
    case (Some(x: Long), Some(y: Long)) => x < y
    case (Some(x: Double), Some(y: Double)) => x < y
    case _ => false
  }
}

/**
 * The footers read so far, so that a file is opened once.
 *
 * Law: a footer belongs to a path, a length and a modification time; a file that changed is another file. Those that
 * were not used for longest go when all together describe too many columns. Who wants a footer that somebody else is
 * reading waits for it.
 */
private[pyjoinopt] object FileFooters {
  private val MostColumns = 200000L
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
    while (columns > MostColumns && eldest.hasNext) {
      columns -= weight(eldest.next())
      eldest.remove()
    }
  }

  private def weight(footer: FileFooter): Long = footer.columns.size + footer.parts.size + 10L
}
