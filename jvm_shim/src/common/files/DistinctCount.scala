package org.apache.spark.sql.pyjoinopt

/**
 * The distinct counts (NDV) of some parts (row groups) of a column.
 *
 * @param most the largest distinct count of a part
 * @param sum the sum over all parts; a value of several parts counts once for each
 * @param filled the rows of these parts that are not NULL
 * @param parts the number of parts
 * @param known false if the distinct count of some part is unknown
 * @param disjoint whether no value is in two parts
 */
private[pyjoinopt] final case class DistinctCount(
    most: Double,
    sum: Double,
    filled: Double,
    parts: Int,
    known: Boolean,
    disjoint: Boolean = true) {

  /** For two groups of parts; `separate`: all values of the one are greater than all of the other. */
  def and(other: DistinctCount, separate: Boolean): DistinctCount =
    if (other.parts == 0 && other.known) this
    else if (parts == 0 && known) other
    else
      DistinctCount(
        math.max(most, other.most),
        sum + other.sum,
        filled + other.filled,
        parts + other.parts,
        known && other.known,
        this.disjoint && other.disjoint && separate)

  /**
   * The estimate for the whole column, which has `rows` rows that are not NULL.
   *
   * Every part of a column with few values has all of them; the parts of a key have no value in common. In between,
   * ln(values) / ln(rows) of a part interpolates how many values of another part are new.
   */
  def estimate(rows: Double): Option[Double] =
    if (!known || parts == 0) None
    else {
      val of = filled / parts
      val all = math.max(sum, sum * rows / filled)
      val newness = if (disjoint && parts > 1 || of <= 1) 1.0 else math.min(1.0, math.log(most) / math.log(of))
      Some(math.rint(math.min(rows, most * math.pow(all / most, newness))))
    }
}

private[pyjoinopt] object DistinctCount {

  /** No part. */
  val nothing: DistinctCount = DistinctCount(0, 0, 0, 0, known = true)
  val unknown: DistinctCount = nothing.copy(known = false)

  def part(values: Long, filled: Double): DistinctCount =
    if (values <= 0 || filled <= 0) nothing
    else DistinctCount(values.toDouble, values.toDouble, filled, 1, known = true)

  /** At most `most` parts of a file, evenly spaced, which represent all of them. */
  def evenly[A](parts: IndexedSeq[A], most: Int): IndexedSeq[A] = {
    val count = math.min(most, parts.length)
    (0 until count).map(i => parts((i.toLong * parts.length / count).toInt))
  }
}
