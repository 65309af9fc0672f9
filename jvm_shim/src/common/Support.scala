package org.apache.spark.sql.pyjoinopt

import java.io.StringWriter
import java.util.{ArrayDeque, IdentityHashMap}

import scala.util.control.NonFatal

import com.fasterxml.jackson.core.JsonGenerator
import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}

/** An error with a message for the author of the query. */
class PyJoinOptShimException(message: String, cause: Throwable = null) extends RuntimeException(message, cause)

/**
 * Helpers for all files of the shim: JSON, tolerance of errors in other code, and tree traversals without recursion.
 *
 * Law: plans may be thousands of levels deep, so nothing in the shim recurses over a tree of nodes or expressions.
 */
private[pyjoinopt] object Support {
  val mapper = new ObjectMapper

  def parse(json: String): JsonNode =
    if (json == null || json.trim.isEmpty) mapper.createObjectNode()
    else
      try mapper.readTree(json)
      catch { case NonFatal(error) => throw new PyJoinOptShimException(s"This is not JSON: ${error.getMessage}") }

  /** The JSON that `write` generates, as text. */
  def json(write: JsonGenerator => Unit): String = {
    val text = new StringWriter
    val out = mapper.getFactory.createGenerator(text)
    write(out)
    out.close()
    text.toString
  }

  def fail(message: String): Nothing = throw new PyJoinOptShimException(message)

  /** `body`, or `otherwise` if it throws. For calls of Spark's code and of other libraries' nodes, which may throw. */
  def attempt[T](otherwise: => T)(body: => T): T =
    try body
    catch {
      case NonFatal(_) | _: LinkageError | _: StackOverflowError => otherwise
    }

  /** The class name without package, enclosing objects and the `$` of Scala objects. */
  def className(value: AnyRef): String = classNames.get(value.getClass)

  private val classNames = new ClassValue[String] {
    override def computeValue(of: Class[_]): String = {
      val name = of.getName
      val bare = name.substring(name.lastIndexOf('.') + 1).stripSuffix("$")
      bare.substring(bare.lastIndexOf('$') + 1)
    }
  }

  /** A string, cut at `limit` characters. */
  def cut(text: String, limit: Int = 200): String = if (text.length <= limit) text else text.substring(0, limit)

  /**
   * Visit the tree under `root`, children first and each object once; subtrees for which `known` is true are skipped.
   */
  def postOrder[T <: AnyRef](root: T)(children: T => Iterable[T], known: T => Boolean)(visit: T => Unit): Unit = {
    val path = new ArrayDeque[(T, Iterator[T])]
    if (!known(root)) path.push((root, children(root).iterator))
    while (!path.isEmpty) {
      val (node, rest) = path.peek
      if (rest.hasNext) {
        val child = rest.next()
        if (!known(child)) path.push((child, children(child).iterator))
      } else {
        path.pop()
        visit(node)
      }
    }
  }

  /** Visit the tree under `root`, parents first; the subtree below a node for which `descend` is false is skipped. */
  def preOrder[T <: AnyRef](root: T)(children: T => Iterable[T])(descend: T => Boolean): Unit = {
    val waiting = new ArrayDeque[T]
    val seen = new IdentityHashMap[T, T]
    waiting.push(root)
    while (!waiting.isEmpty) {
      val node = waiting.pop()
      if (seen.put(node, node) == null && descend(node)) children(node).foreach(waiting.push)
    }
  }
}
