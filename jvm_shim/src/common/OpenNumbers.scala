package org.apache.spark.sql.pyjoinopt

import java.security.SecureRandom
import java.util.LinkedHashMap

/**
 * A registry of objects that Python refers to by number until it releases them.
 *
 * Laws: memory is bounded; beyond the limit the oldest object is dropped. A number cannot be guessed: the SQL function
 * `reflect` calls any static method with numbers and strings, and a session must not reach another's objects that way.
 */
private[pyjoinopt] final class OpenNumbers[T](limit: Int) {
  private val open = new LinkedHashMap[Long, T]

  def put(one: T): Long = synchronized {
    var number = 0L
    while (number == 0 || open.containsKey(number)) number = OpenNumbers.next()
    open.put(number, one)
    val oldest = open.values.iterator
    while (open.size > limit && oldest.hasNext) {
      oldest.next()
      oldest.remove()
    }
    number
  }

  def get(number: Long): Option[T] = synchronized(Option(open.get(number)))

  def remove(number: Long): Unit = synchronized(open.remove(number))

  def size: Int = synchronized(open.size)
}

private[pyjoinopt] object OpenNumbers {
  private lazy val random = new SecureRandom

  /** An unpredictable number, 0 or greater. */
  def next(): Long = random.nextLong() >>> 1
}
