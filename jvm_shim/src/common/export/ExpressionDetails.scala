package org.apache.spark.sql.pyjoinopt

import java.time.Instant
import java.util.IdentityHashMap

import com.fasterxml.jackson.core.JsonGenerator

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/**
 * Exports details of some kinds of expressions beyond class and flags: the attribute, the value, the subquery's plan.
 *
 * Law: a value is exported only if a JSON number or a short string represents it exactly. Other values are exported as
 * SQL text only, for reports.
 */
private[pyjoinopt] final class ExpressionDetails(
    attributes: AttributeTable,
    number: Expression => Int,
    subqueryPlans: IdentityHashMap[Expression, Integer],
    constants: IdentityHashMap[Expression, ConstantValue],
    out: JsonGenerator) {

  import ExpressionDetails._

  /** Writes the field with the value of the constant that is being exported. */
  private var valueField: () => Unit = () => ()

  def write(expression: Expression, typeNumber: Int): Unit = {
    val found = Option(constants.get(expression))
    val plain = found.map(_.value).filter(isPlain(_, expression.dataType))
    valueField = () =>
      plain.foreach { value =>
        out.writeFieldName("v")
        writeValue(value, expression.dataType)
      }
    writeKind(expression, typeNumber, isConstant = plain.isDefined)
  }

  private def writeKind(expression: Expression, typeNumber: Int, isConstant: Boolean): Unit = expression match {
    case attribute: Attribute => record(writeAttribute(attribute))
    case alias: Alias =>
      record {
        writeAttribute(alias.toAttribute)
        out.writeStringField("n", alias.name)
      }
    case outer: NamedExpression if ExpressionExporter.isOuter(outer) =>
      record(ExpressionExporter.outerAttribute(outer).foreach(writeAttribute))
    case literal: Literal => record(writeLiteral(literal))
    case set: InSet => record(writeSet(set))
    case subquery: SubqueryExpression =>
      record {
        out.writeNumberField("plan", subqueryPlans.get(subquery).intValue)
        if (subquery.isCorrelated) {
          out.writeArrayFieldStart("outer")
          outerAttributes(subquery).foreach(e => out.writeNumber(number(e)))
          out.writeEndArray()
        }
      }
    case cast: Cast => record(writeCast(cast, typeNumber))
    case field: GetStructField => record(out.writeNumberField("ordinal", field.ordinal))
    case field: GetArrayStructFields => record(out.writeNumberField("ordinal", field.ordinal))
    case aggregate: AggregateExpression =>
      record {
        out.writeBooleanField("distinct", aggregate.isDistinct)
        out.writeStringField("fn", Support.className(aggregate.aggregateFunction))
        out.writeStringField("parameters", parameters(aggregate.aggregateFunction))
      }
    case order: SortOrder => record(out.writeBooleanField("asc", order.direction == Ascending))
    case udf: UserDefinedExpression =>
      record(out.writeStringField("name", Support.cut(Support.attempt("?")(String.valueOf(udf.name)))))
    case other =>
      (Compat.commonId(other), ExpressionExporter.castOf(other)) match {
        case (Some(id), _) => record(out.writeNumberField("id", id))
        case (None, Some(cast)) =>
          record {
            out.writeBooleanField("cast", true)
            writeCast(cast, typeNumber)
          }
        case _ => if (isConstant) record(()) else out.writeNull()
      }
  }

  private def writeCast(cast: Cast, typeNumber: Int): Unit = {
    out.writeNumberField("to", typeNumber)
    if (Support.attempt(true)(Cast.needsTimeZone(cast.child.dataType, cast.dataType))) {
      out.writeStringField("tz", cast.timeZoneId.getOrElse(""))
      Support.attempt(Option.empty[Int])(standardOffset(cast)).foreach(out.writeNumberField("offset", _))
    }
  }

  /** Writes nothing for an unresolved attribute, which has no id. */
  private def writeAttribute(attribute: Attribute): Unit = {
    val known = attributes.number(attribute)
    if (known >= 0) out.writeNumberField("a", known)
  }

  private def record(fields: => Unit): Unit = {
    out.writeStartObject()
    fields
    valueField()
    out.writeEndObject()
  }

  private def writeLiteral(literal: Literal): Unit = {
    if (isPlain(literal.value, literal.dataType)) {
      out.writeFieldName("v")
      writeValue(literal.value, literal.dataType)
    }
    out.writeStringField("s", Support.cut(sqlText(literal)))
  }

  private def writeSet(set: InSet): Unit = {
    out.writeNumberField("hset", set.hset.size)
    val dataType = Support.attempt[DataType](NullType)(set.child.dataType)
    if (set.hset.size <= MaxSetSize && set.hset.forall(isPlain(_, dataType))) {
      out.writeArrayFieldStart("values")
      set.hset.foreach(writeValue(_, dataType))
      out.writeEndArray()
    }
  }

  private def writeValue(value: Any, dataType: DataType): Unit = (value, dataType) match {
    case (null, _) => out.writeNull()
    case (days: Int, DateType) => writeTagged("date", days.toLong)
    case (micros: Long, TimestampType | TimestampNTZType) => writeTagged("ts", micros)
    case (flag: Boolean, _) => out.writeBoolean(flag)
    case (n: Byte, _) => out.writeNumber(n.toInt)
    case (n: Short, _) => out.writeNumber(n.toInt)
    case (n: Int, _) => out.writeNumber(n)
    case (n: Long, _) => out.writeNumber(n)
    case (n: Float, _) => out.writeNumber(n)
    case (n: Double, _) => out.writeNumber(n)
    case (n: Decimal, _) =>
      out.writeStartObject()
      out.writeStringField("d", n.toJavaBigDecimal.toPlainString)
      out.writeEndObject()
    case (other, _) => out.writeString(other.toString)
  }

  private def writeTagged(tag: String, value: Long): Unit = {
    out.writeStartObject()
    out.writeNumberField(tag, value)
    out.writeEndObject()
  }
}

private[pyjoinopt] object ExpressionDetails {
  private val MaxSetSize = 200
  private val MaxTextLength = 200

  private def isPlain(value: Any, dataType: DataType): Boolean = (value, dataType) match {
    case (null, _) => true
    case (_: Byte | _: Short | _: Boolean | _: Decimal, _) => true
    case (_: Int, IntegerType | DateType) => true
    case (_: Long, LongType | TimestampType | TimestampNTZType) => true
    case (n: Float, _) => !n.isNaN && !n.isInfinite
    case (n: Double, _) => !n.isNaN && !n.isInfinite
    case (text: UTF8String, _: StringType) => text.numBytes <= 4 * MaxTextLength && text.numChars <= MaxTextLength
    case _ => false
  }

  /** Seconds by which local time is ahead of UTC, without daylight saving. */
  private def standardOffset(cast: Cast): Option[Int] =
    cast.timeZoneId.map(_ => cast.zoneId.getRules.getStandardOffset(Instant.EPOCH).getTotalSeconds)

  /** The parameters of a function other than its arguments, for example its error mode. */
  private def parameters(function: Expression): String =
    Support.cut(Support.attempt("?")(function.productIterator.filter {
      case _: Expression | _: Iterable[_] => false
      case _ => true
    }.mkString(" ")))

  /** SQL text, with large values abbreviated. */
  private def sqlText(literal: Literal): String = literal.value match {
    case bytes: Array[Byte] if bytes.length > MaxTextLength => s"${bytes.length} bytes"
    case text: UTF8String if text.numBytes > 8 * MaxTextLength => text.substring(0, MaxTextLength).toString
    case _ =>
      literal.dataType match {
        case _: AtomicType | _: CalendarIntervalType | NullType => Support.attempt("?")(literal.sql)
        case nested => nested.typeName
      }
  }

  def outerAttributes(subquery: SubqueryExpression): Seq[Expression] = subquery match {
    case s: ScalarSubquery => s.outerAttrs.toList
    case s: Exists => s.outerAttrs.toList
    case s: ListQuery => s.outerAttrs.toList
    case s: LateralSubquery => s.outerAttrs.toList
    case other => other.children.toList
  }
}
