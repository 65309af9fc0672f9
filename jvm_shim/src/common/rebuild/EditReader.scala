package org.apache.spark.sql.pyjoinopt

import scala.collection.mutable
import scala.util.control.{NonFatal, NoStackTrace}

import com.fasterxml.jackson.databind.JsonNode

/**
 * One of the two lists of an edit message. Its entries are built in order. They refer to objects of the export by the
 * numbers 0, 1, ..., and to earlier entries by -1, -2, ...
 *
 * Law: an entry is built once, after everything it refers to; any other reference is an error that names the entry. The
 * depth of calls does not grow with the list.
 */
private[pyjoinopt] final class EditList[T](kind: String, entries: JsonNode, exported: IndexedSeq[T])(
    build: JsonNode => T) {

  private val count = if (entries == null) 0 else entries.size
  private val built = new mutable.ArrayBuffer[T]

  def done: Boolean = built.length == count

  /** Build as many entries as can be built now. Returns whether there was one. */
  def advance(): Boolean = {
    val before = built.length
    try while (!done) built += named(entries.get(built.length))
    catch { case EditList.NotYet => }
    built.length > before
  }

  private def named(entry: JsonNode): T =
    try build(entry)
    catch {
      case EditList.NotYet => throw EditList.NotYet
      case error: PyJoinOptShimException => Support.fail(s"${error.getMessage} ($waiting)")
      case NonFatal(error) =>
        throw new PyJoinOptShimException(s"Spark refuses $waiting: ${error.getMessage}", error)
    }

  def apply(reference: JsonNode): T = {
    if (reference == null || !reference.isIntegralNumber) Support.fail(s"A number of a $kind is missing.")
    val number = reference.intValue
    if (number >= exported.length || -1 - number >= count) Support.fail(s"There is no $kind $number.")
    else if (number >= 0) exported(number)
    else if (-1 - number < built.length) built(-1 - number)
    else throw EditList.NotYet
  }

  /** The next entry to build, for messages. */
  def waiting: String = s"$kind ${-1 - built.length}: ${Support.cut(entries.get(built.length).toString)}"
}

private[pyjoinopt] object EditList {
  case object NotYet extends RuntimeException with NoStackTrace

  /** Build two lists that refer to each other. */
  def buildAll(first: EditList[_], second: EditList[_]): Unit =
    while (!first.done || !second.done) {
      val moved = first.advance() | second.advance()
      if (!moved) Support.fail(s"An entry refers to a later one: ${(if (first.done) second else first).waiting}")
    }
}
