package org.apache.spark.sql.pyjoinopt

import java.util.IdentityHashMap

import scala.collection.mutable

import com.fasterxml.jackson.core.JsonGenerator

import org.apache.spark.sql.catalyst.expressions.{Attribute, ExprId}
import org.apache.spark.sql.types.DataType

/** Numbers objects in the order in which they are added, by identity. */
private[pyjoinopt] final class Numbering[T <: AnyRef] {
  private val numbers = new IdentityHashMap[T, Integer]
  val items = new mutable.ArrayBuffer[T]

  def contains(item: T): Boolean = numbers.containsKey(item)
  def apply(item: T): Int = numbers.get(item)
  def add(item: T): Int = {
    numbers.put(item, items.length)
    items += item
    items.length - 1
  }
}

/**
 * The attributes of a plan, one per expression id.
 *
 * Law: plans are traversed leaves first, so the attribute of an id is that of the node that produces it, before any
 * outer join above makes it nullable.
 */
private[pyjoinopt] final class AttributeTable(types: TypeTable) {
  private val numbers = new mutable.HashMap[ExprId, Int]
  val items = new mutable.ArrayBuffer[Attribute]

  /** The attribute's number, or -1 if it is unresolved and has no id. */
  def number(attribute: Attribute): Int =
    Support.attempt(Option.empty[ExprId])(Some(attribute.exprId)).fold(-1) { id =>
      numbers.getOrElseUpdate(
        id, {
          items += attribute
          items.length - 1
        })
    }

  def get(id: ExprId): Option[Int] = numbers.get(id)

  def write(out: JsonGenerator): Unit = {
    out.writeStartArray()
    items.foreach { attribute =>
      out.writeStartArray()
      out.writeNumber(attribute.exprId.id)
      out.writeString(attribute.exprId.jvmId.toString)
      out.writeString(attribute.name)
      out.writeNumber(types.number(attribute.dataType))
      out.writeNumber(if (attribute.nullable) 1 else 0)
      out.writeEndArray()
    }
    out.writeEndArray()
  }
}

/** The data types of a plan, each as its catalog string. */
private[pyjoinopt] final class TypeTable {
  private val byIdentity = new IdentityHashMap[DataType, Integer]
  private val byText = new mutable.HashMap[String, Int]
  val texts = new mutable.ArrayBuffer[String]

  def number(dataType: => DataType): Int = {
    val known = Support.attempt[DataType](null)(dataType)
    if (known == null) -1
    else {
      val found = byIdentity.get(known)
      if (found != null) found
      else {
        val text = Support.attempt(known.getClass.getName)(known.catalogString)
        val number = byText.getOrElseUpdate(
          text, {
            texts += text
            texts.length - 1
          })
        byIdentity.put(known, number)
        number
      }
    }
  }

  def write(out: JsonGenerator): Unit = {
    out.writeStartArray()
    texts.foreach(out.writeString)
    out.writeEndArray()
  }
}
