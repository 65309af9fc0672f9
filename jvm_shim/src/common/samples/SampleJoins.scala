package org.apache.spark.sql.pyjoinopt

/**
 * Joins the sampled rows of a relation with all rows of small ones, each by a key of the small one, or with the rows of
 * a large one that were drawn by the same keys (KeySample).
 *
 * A row has one partner at most, so the result of each join is an array: of each sampled row the number of its partner,
 * or -1. Partners may have partners of their own. This is the join synopsis of Acharya, Gibbons, Poosala and Ramaswamy
 * (SIGMOD 1999): a sample of the join, which samples of its inputs do not give.
 */
private[pyjoinopt] object SampleJoins {

  /** The sampled rows themselves. */
  def start(sample: RelationSample): Array[Int] = Array.range(0, sample.rows.length)

  /**
   * The partners of rows.
   *
   * @param of
   *   numbers of rows of `left`, or -1
   * @param left
   *   whose columns refer to the key
   * @param columns
   *   their ordinals
   * @param right
   *   a sample that has all partners of these rows in its relation
   * @param key
   *   the ordinals of the key's columns there
   * @return
   *   None if it is no key, or if the values are not comparable
   */
  def partners(
      of: Array[Int],
      left: RelationSample,
      columns: Seq[Int],
      right: RelationSample,
      key: Seq[Int]): Option[Array[Int]] = {
    val (from, to) = (left.typed(columns), right.typed(key))
    if (!from.zip(to).forall { case (one, other) => KeyIndex.comparable(one._2, other._2) }) None
    else right.index(key).map(index => of.map(row => if (row < 0) -1 else index(KeyIndex.value(left.rows(row), from))))
  }

  /** One bit a row: whether none of some columns is NULL. */
  def filled(sample: RelationSample, columns: Seq[Int]): Array[Byte] = {
    val found = new Array[Byte]((sample.rows.length + 7) / 8)
    sample.rows.indices.foreach { i =>
      if (columns.forall(!sample.rows(i).isNullAt(_))) found(i >> 3) = (found(i >> 3) | 1 << (i & 7)).toByte
    }
    found
  }

  /** One bit a row: whether it has a partner that `kept` has; None for all partners. */
  def bits(partners: Array[Int], kept: Option[Array[Byte]]): Array[Byte] = {
    val found = new Array[Byte]((partners.length + 7) / 8)
    partners.indices.foreach { i =>
      val row = partners(i)
      if (row >= 0 && kept.forall(bits => (bits(row >> 3) >> (row & 7) & 1) == 1))
        found(i >> 3) = (found(i >> 3) | 1 << (i & 7)).toByte
    }
    found
  }
}
