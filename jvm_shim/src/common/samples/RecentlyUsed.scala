package org.apache.spark.sql.pyjoinopt

import java.util.LinkedHashMap

/** Values in memory, up to a number of bytes: the least recently used ones are dropped, but never the last one. */
private[pyjoinopt] final class RecentlyUsed[K, V <: AnyRef](mostBytes: Long, size: V => Long) {
  private val known = new LinkedHashMap[K, V](64, 0.75f, true)
  private var bytes = 0L

  def get(key: K): Option[V] = synchronized(Option(known.get(key)))

  def put(key: K, value: V): Unit = synchronized {
    val before = Option(known.put(key, value))
    bytes += size(value) - before.map(size).getOrElse(0L)
    val eldest = known.values.iterator
    while (bytes > mostBytes && known.size > 1 && eldest.hasNext) {
      bytes -= size(eldest.next())
      eldest.remove()
    }
  }

  def clear(): Unit = synchronized {
    known.clear()
    bytes = 0
  }
}
