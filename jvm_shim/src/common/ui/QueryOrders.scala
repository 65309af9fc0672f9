package org.apache.spark.sql.pyjoinopt

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, InputStream}
import java.nio.charset.StandardCharsets.UTF_8
import java.util.Base64
import java.util.zip.{GZIPInputStream, GZIPOutputStream}

import scala.collection.mutable.ArrayBuffer

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.status.KVUtils.KVIndexParam
import org.apache.spark.util.kvstore.KVStore

/**
 * A query in the list of the UI.
 *
 * @param executionId -1 outside of an execution
 * @param description the execution's; empty outside of one
 * @param status one of `QueryOrders`
 * @param started, ended times (milliseconds since the epoch); `ended` is 0 before the end
 * @param changed whether a plan of it was changed
 * @param outcomes of its plans, see `PlanMetrics`
 * @param costBefore, costAfter of the written and the chosen orders; -1 if there are none
 * @param planning how long it was planned (milliseconds); -1 if that is not known
 * @param error the first line of the error of a failed query
 */
private[pyjoinopt] class QueryOrders(
    @KVIndexParam val number: Long,
    val executionId: Long,
    val description: String,
    val status: String,
    val started: Long,
    val ended: Long,
    val changed: Boolean,
    val outcomes: String,
    val costBefore: Double,
    val costAfter: Double,
    val planning: Double,
    val error: String) {

  /** Milliseconds until now or until the end; -1 for a query that was not run. */
  def duration(now: Long): Long = status match {
    case QueryOrders.Planned => -1
    case _ => math.max(0, (if (ended > 0) ended else now) - started)
  }
}

private[pyjoinopt] object QueryOrders {
  val Planning = "planning"
  val Running = "running"
  val Finished = "finished"
  val Failed = "failed"

  /** Planned outside of an execution, such as by EXPLAIN. */
  val Planned = "planned"
}

/** The reports, pictures and counted joins of a query, as packed JSON. They are many times larger than its row. */
private[pyjoinopt] class QueryOrdersDetails(@KVIndexParam val number: Long, val packed: Array[Byte])

/** What the store of an application's UI has of join orders. */
private[pyjoinopt] final class JoinOrdersStore(store: KVStore) {

  /** Whether any query was planned. */
  def nonEmpty: Boolean = store.count(classOf[QueryOrders]) > 0

  /** All queries, by their numbers. */
  def all: Seq[QueryOrders] = {
    val found = ArrayBuffer.empty[QueryOrders]
    val rows = store.view(classOf[QueryOrders]).closeableIterator()
    try while (rows.hasNext) found += rows.next()
    finally rows.close()
    found.toList
  }

  def query(number: Long): Option[QueryOrders] = read(classOf[QueryOrders], number)

  /** `{"plans": [{"time": 1, "report": {...}, "pictures": "..."}], "joins": [...]}` */
  def details(number: Long): JsonNode =
    read(classOf[QueryOrdersDetails], number).fold(Support.parse(""))(found => Support.parse(Packed.text(found.packed)))

  private def read[T](kind: Class[T], number: Long): Option[T] =
    try Some(store.read(kind, number))
    catch { case _: NoSuchElementException => None }
}

/** Compressed text. Logs may come from anyone, so a text is cut at a length that fits the memory of a server. */
private[pyjoinopt] object Packed {
  private val MaxLength = 128 << 20

  def apply(text: String): Array[Byte] = {
    val bytes = new ByteArrayOutputStream
    val out = new GZIPOutputStream(bytes)
    out.write(text.getBytes(UTF_8))
    out.close()
    bytes.toByteArray
  }

  /** The text; empty if it is too long. */
  def text(packed: Array[Byte], most: Int = MaxLength): String = {
    val in = new GZIPInputStream(new ByteArrayInputStream(packed))
    try read(in, most)
    finally in.close()
  }

  /** The text of bytes in Base64; empty if it is too long. */
  def text(base64: String, most: Int): String = text(Base64.getDecoder.decode(base64), most)

  private def read(in: InputStream, most: Int): String = {
    val out = new ByteArrayOutputStream
    val buffer = new Array[Byte](1 << 14)
    var length = in.read(buffer)
    while (length >= 0 && out.size <= most) {
      out.write(buffer, 0, length)
      length = in.read(buffer)
    }
    if (length >= 0) "" else new String(out.toByteArray, UTF_8)
  }
}
