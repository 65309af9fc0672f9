package org.apache.spark.sql.delta.standin

import java.util.concurrent.atomic.AtomicInteger

import org.apache.spark.sql.api.java.UDF1

/** A user-defined function that counts its calls. */
class Touching extends UDF1[Integer, Integer] {
  override def call(value: Integer): Integer = {
    Touching.calls.incrementAndGet()
    if (value == null) null else value + 1
  }
}

object Touching {
  private val calls = new AtomicInteger

  def count: Int = calls.get
}
