package org.apache.spark.sql.pyjoinopt

import java.util.TreeSet

/**
 * A KMV sketch: the k minimum hash values of a set, which estimate the NDV of unions (Bar-Yossef and others,
 * "Counting Distinct Elements in a Data Stream", RANDOM 2002). With 256 hashes the standard error is 6 %.
 */
private[pyjoinopt] final class ValueSketch private (
    private val least: TreeSet[java.lang.Long],
    private val full: Boolean) {

  /** The number of different values. */
  def count: Double =
    if (!full) least.size.toDouble
    else (least.size - 1) / ((least.last.toDouble - Long.MinValue.toDouble) / math.pow(2, 64))

  def union(other: ValueSketch): ValueSketch = {
    val both = new TreeSet[java.lang.Long](least)
    both.addAll(other.least)
    ValueSketch.cut(both, this.full || other.full)
  }
}

private[pyjoinopt] object ValueSketch {
  private val Size = 256

  /** Of values by their hash codes, which are spread over all numbers here. */
  def of(hashes: Iterator[Long]): ValueSketch = {
    val least = new TreeSet[java.lang.Long]
    var full = false
    hashes.foreach { hash =>
      val spread = mix(hash)
      if (least.size < Size || spread < least.last) {
        least.add(spread)
        if (least.size > Size) {
          least.pollLast()
          full = true
        }
      } else if (spread > least.last) full = true
    }
    new ValueSketch(least, full)
  }

  private def cut(least: TreeSet[java.lang.Long], full: Boolean): ValueSketch = {
    val cuts = least.size > Size
    while (least.size > Size) least.pollLast()
    new ValueSketch(least, full || cuts)
  }

  /** The finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014). */
  private def mix(x: Long): Long = {
    val a = (x ^ (x >>> 30)) * 0xbf58476d1ce4e5b9L
    val b = (a ^ (a >>> 27)) * 0x94d049bb133111ebL
    b ^ (b >>> 31)
  }
}
