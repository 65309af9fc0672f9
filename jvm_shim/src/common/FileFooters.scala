package org.apache.spark.sql.pyjoinopt

import java.util.LinkedHashMap

import org.apache.hadoop.fs.FileStatus

/** What the footer of one file says: rows, for top-level columns bounds and nulls, and the parts it is made of. */
private[pyjoinopt] final case class FileFooter(
    rows: Long,
    columns: Map[String, FooterColumn],
    parts: Seq[FilePart] = Nil) {

  def column(name: String, caseSensitive: Boolean): Option[FooterColumn] =
    columns.get(name).orElse {
      if (caseSensitive) None else columns.collectFirst { case (other, c) if other.equalsIgnoreCase(name) => c }
    }
}

/** A row group or stripe. A reader that is given these bytes of the file reads it and no other. */
private[pyjoinopt] final case class FilePart(start: Long, length: Long, rows: Long)

/** `allNull` columns have no bounds and need none; other columns without bounds are unknown. */
private[pyjoinopt] final case class FooterColumn(
    min: Option[Any],
    max: Option[Any],
    nulls: Option[Double],
    allNull: Boolean,
    distinct: DistinctCount = DistinctCount.nothing)

private[pyjoinopt] object FileFooter {

  def merge(a: FooterColumn, b: FooterColumn): FooterColumn = {
    val nulls = for (x <- a.nulls; y <- b.nulls) yield x + y
    val distinct = a.distinct.and(b.distinct, below(a.max, b.min) || below(b.max, a.min))
    if (a.allNull) b.copy(nulls = nulls, distinct = distinct)
    else if (b.allNull) a.copy(nulls = nulls, distinct = distinct)
    else
      FooterColumn(
        NodeFacts.extreme(a.min, b.min, upper = false),
        NodeFacts.extreme(a.max, b.max, upper = true),
        nulls,
        allNull = false,
        distinct)
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
 * were not used for longest go when all together describe too many columns.
 */
private[pyjoinopt] object FileFooters {
  private val MostColumns = 200000L
  private type Key = (String, Long, Long)

  private val known = new LinkedHashMap[Key, FileFooter](64, 0.75f, true)
  private var columns = 0L

  def cached(file: FileStatus)(read: FileStatus => FileFooter): FileFooter = {
    val key = (file.getPath.toString, file.getLen, file.getModificationTime)
    val found = synchronized(known.get(key))
    if (found != null) found
    else {
      val footer = read(file)
      synchronized(keep(key, footer))
      footer
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
