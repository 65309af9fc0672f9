package org.apache.spark.sql.pyjoinopt

import java.util.{Collections, LinkedHashMap, Map => JavaMap}

import org.apache.hadoop.fs.FileStatus

/** What the footer of one file says: rows, and for top-level columns bounds and nulls. */
private[pyjoinopt] final case class FileFooter(rows: Long, columns: Map[String, FooterColumn]) {

  def column(name: String, caseSensitive: Boolean): Option[FooterColumn] =
    columns.get(name).orElse {
      if (caseSensitive) None else columns.collectFirst { case (other, c) if other.equalsIgnoreCase(name) => c }
    }
}

/** `allNull` columns have no bounds and need none; other columns without bounds are unknown. */
private[pyjoinopt] final case class FooterColumn(
    min: Option[Any],
    max: Option[Any],
    nulls: Option[Double],
    allNull: Boolean)

private[pyjoinopt] object FileFooter {

  def merge(a: FooterColumn, b: FooterColumn): FooterColumn = {
    val nulls = for (x <- a.nulls; y <- b.nulls) yield x + y
    if (a.allNull) b.copy(nulls = nulls)
    else if (b.allNull) a.copy(nulls = nulls)
    else
      FooterColumn(
        NodeFacts.extreme(a.min, b.min, upper = false),
        NodeFacts.extreme(a.max, b.max, upper = true),
        nulls,
        allNull = false)
  }
}

/**
 * The footers read so far, so that a file is opened once.
 *
 * Law: a footer belongs to a path, a length and a modification time; a file that changed is another file. The oldest
 * go when there are too many.
 */
private[pyjoinopt] object FileFooters {
  private val Limit = 2048
  private type Key = (String, Long, Long)

  private val known = Collections.synchronizedMap(new LinkedHashMap[Key, FileFooter](64, 0.75f, true) {
    override def removeEldestEntry(eldest: JavaMap.Entry[Key, FileFooter]): Boolean = size > Limit
  })

  def cached(file: FileStatus)(read: FileStatus => FileFooter): FileFooter = {
    val key = (file.getPath.toString, file.getLen, file.getModificationTime)
    val found = known.get(key)
    if (found != null) found
    else {
      val footer = read(file)
      known.put(key, footer)
      footer
    }
  }
}
