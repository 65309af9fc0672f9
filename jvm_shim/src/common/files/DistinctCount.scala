package org.apache.spark.sql.pyjoinopt

/**
 * How many different values there are in some parts (row groups) of a column.
 *
 * @param most in the part that has most
 * @param sum of all parts, a value that several have counted as often
 * @param filled rows of these parts that are not NULL
 * @param parts how many
 * @param known false if of some part it cannot be told
 * @param apart whether no value is in two parts
 */
private[pyjoinopt] final case class DistinctCount(
    most: Double,
    sum: Double,
    filled: Double,
    parts: Int,
    known: Boolean,
    apart: Boolean = true) {

  /** Of two groups of parts; `disjoint` if all values of the one are greater than all of the other. */
  def and(other: DistinctCount, disjoint: Boolean): DistinctCount =
    if (other.parts == 0 && other.known) this
    else if (parts == 0 && known) other
    else
      DistinctCount(
        math.max(most, other.most),
        sum + other.sum,
        filled + other.filled,
        parts + other.parts,
        known && other.known,
        apart && other.apart && disjoint)

  /**
   * Of the whole column, which has `rows` rows that are not NULL.
   *
   * Every part of a column with few values has all of them, every part of a key has values of its own. Between these
   * two, ln(values) / ln(rows) of a part tells how much of another part is new.
   */
  def estimate(rows: Double): Option[Double] =
    if (!known || parts == 0) None
    else {
      val of = filled / parts
      val all = math.max(sum, sum * rows / filled)
      val newness = if (apart && parts > 1 || of <= 1) 1.0 else math.min(1.0, math.log(most) / math.log(of))
      Some(math.rint(math.min(rows, most * math.pow(all / most, newness))))
    }
}

private[pyjoinopt] object DistinctCount {
  /** Nothing was looked at. */
  val nothing: DistinctCount = DistinctCount(0, 0, 0, 0, known = true)
  val unknown: DistinctCount = nothing.copy(known = false)

  def part(values: Long, filled: Double): DistinctCount =
    if (values <= 0 || filled <= 0) nothing
    else DistinctCount(values.toDouble, values.toDouble, filled, 1, known = true)

  /** At most so many of the parts of a file, evenly chosen: what is told of these stands for all. */
  def evenly[A](parts: IndexedSeq[A], most: Int): IndexedSeq[A] = {
    val count = math.min(most, parts.length)
    (0 until count).map(i => parts((i.toLong * parts.length / count).toInt))
  }
}
