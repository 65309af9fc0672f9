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
 * @param values the values of some of these parts
 * @param read the largest count of these parts, and the sum of their counts
 */
private[pyjoinopt] final case class DistinctCount(
    most: Double,
    sum: Double,
    filled: Double,
    parts: Int,
    known: Boolean,
    disjoint: Boolean = true,
    values: Option[ValueSketch] = None,
    read: (Double, Double) = (0.0, 0.0)) {

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
        this.disjoint && other.disjoint && separate,
        (values ++ other.values).reduceOption(_ union _),
        (math.max(read._1, other.read._1), read._2 + other.read._2)
      )

  /**
   * The estimate for the whole column, which has `rows` rows that are not NULL.
   *
   * Every part of a column with few values has all of them; the parts of a key have no value in common. In between, how
   * many values of another part are new is seen in the values of some parts, if these were read; or else ln(values) /
   * ln(rows) of a part interpolates it.
   */
  def estimate(rows: Double): Option[Double] =
    if (!known || parts == 0) None
    else {
      val of = filled / parts
      val all = math.max(sum, sum * rows / filled)
      val newness = seen.getOrElse {
        if (disjoint && parts > 1 || of <= 1) 1.0 else math.min(1.0, math.log(most) / math.log(of))
      }
      Some(math.rint(math.min(rows, most * math.pow(all / most, newness))))
    }

  /** The part of the values of another part that are new, on a logarithmic scale: 0 for none, 1 for all. */
  private def seen: Option[Double] = values.collect {
    case sketch if read._2 > 1.5 * read._1 =>
      math.max(0.0, math.min(1.0, math.log(sketch.count / read._1) / math.log(read._2 / read._1)))
  }
}

private[pyjoinopt] object DistinctCount {

  /** No part. */
  val nothing: DistinctCount = DistinctCount(0, 0, 0, 0, known = true)
  val unknown: DistinctCount = nothing.copy(known = false)

  def part(count: Long, filled: Double, values: Option[ValueSketch] = None): DistinctCount =
    if (count <= 0 || filled <= 0) nothing
    else {
      val read = values.fold((0.0, 0.0))(_ => (count.toDouble, count.toDouble))
      DistinctCount(count.toDouble, count.toDouble, filled, 1, known = true, values = values, read = read)
    }

  /** At most `most` parts of a file, evenly spaced, which represent all of them. */
  def evenly[A](parts: IndexedSeq[A], most: Int): IndexedSeq[A] = {
    val count = math.min(most, parts.length)
    (0 until count).map(i => parts((i.toLong * parts.length / count).toInt))
  }
}
