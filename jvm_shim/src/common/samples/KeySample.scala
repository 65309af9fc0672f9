package org.apache.spark.sql.pyjoinopt

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, DataInputStream, DataOutputStream}
import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.SparkConf
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.types.StructType

/**
 * The rows of a relation whose value of one column, its *key*, has a hash below a threshold.
 *
 * The hash is the same for all relations, so two of these samples have the same values, up to the smaller threshold:
 * each sampled row has its partners of the other relation in the sample there, if it has any. This is correlated
 * sampling (Vengerov, Menck, Zait and Chakkappen, VLDB 2015). Rows with NULL as the key are left out.
 *
 * Rows are in the order of `hashes`, so those of one value are neighbours.
 */
private[pyjoinopt] final class KeySample(
    val key: String,
    val threshold: Long,
    hashes: Array[Long],
    val columns: StructType,
    rows: Array[UnsafeRow]) {

  lazy val size: Long = rows.map(_.getSizeInBytes.toLong + 72).sum + 1024

  /** The rows whose keys have hashes below a threshold that is not above this sample's; each key is a place. */
  def below(least: Long): RelationSample = {
    if (narrowed.size >= KeySample.MaxNarrowed) narrowed.clear()
    narrowed.computeIfAbsent(
      least,
      _ => {
        val count = hashes.iterator.takeWhile(_ < least).size
        val starts = KeySample.starts(hashes, count)
        val sample = new RelationSample(
          columns,
          rows.take(count),
          seen = count,
          complete = false,
          pieces = starts.length,
          starts = if (starts.length == count) Array.empty else starts)
        sample.stored = true
        sample
      }
    )
  }

  private val narrowed = new ConcurrentHashMap[Long, RelationSample]

  def bytes(conf: SparkConf): Array[Byte] = {
    val buffer = new ByteArrayOutputStream
    val out = new DataOutputStream(buffer)
    out.writeInt(KeySample.Layout)
    out.writeUTF(key)
    out.writeLong(threshold)
    out.writeInt(hashes.length)
    hashes.foreach(out.writeLong)
    out.write(below(threshold).bytes(conf))
    out.close()
    buffer.toByteArray
  }
}

private[pyjoinopt] object KeySample {
  private val Layout = 1
  private val MaxNarrowed = 8

  /** With fewer values a sample says little of a join. */
  private val MinKeys = 64

  /** Hash over the files, hash over the schema, name of the key. */
  type Id = (String, String, String)

  /**
   * The sample of at most so many rows, with a lower threshold if there are more of them; None if it has too few keys.
   */
  def of(
      key: String,
      threshold: Long,
      columns: StructType,
      found: Seq[(Long, UnsafeRow)],
      most: Int): Option[KeySample] = {
    val sorted = found.sortBy(_._1)
    val lower = if (sorted.length > most) sorted(most)._1 else threshold
    val (hashes, rows) = sorted.takeWhile(_._1 < lower).unzip
    val sample = new KeySample(key, lower, hashes.toArray, columns, rows.toArray)
    if (starts(hashes.toArray, hashes.length).length < MinKeys) None else Some(sample)
  }

  def parse(bytes: Array[Byte], conf: SparkConf): Option[KeySample] = Support.attempt(Option.empty[KeySample]) {
    val in = new DataInputStream(new ByteArrayInputStream(bytes))
    if (in.readInt() != Layout) None
    else {
      val (key, threshold) = (in.readUTF(), in.readLong())
      val hashes = Array.fill(in.readInt())(in.readLong())
      RelationSample.parse(bytes.takeRight(in.available), conf).filter(_.rows.length == hashes.length)
        .map(sample => new KeySample(key, threshold, hashes, sample.columns, sample.rows))
    }
  }

  /** The first row of each value. */
  private def starts(hashes: Array[Long], count: Int): Array[Int] =
    (0 until count).filter(i => i == 0 || hashes(i) != hashes(i - 1)).toArray
}

/**
 * The key samples in this JVM's memory. Law: memory is bounded; the least recently used samples are dropped.
 */
private[pyjoinopt] object KeySamples {
  private val MaxBytes = math.max(16L << 20, math.min(64L << 20, Runtime.getRuntime.maxMemory / 64))
  private val known = new RecentlyUsed[KeySample.Id, KeySample](MaxBytes, _.size)

  def get(id: KeySample.Id): Option[KeySample] = known.get(id)

  def put(id: KeySample.Id, sample: KeySample): Unit = known.put(id, sample)

  def forget(): Unit = known.clear()
}
