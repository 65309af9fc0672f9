package org.apache.spark.sql.pyjoinopt

import org.apache.spark.sql.catalyst.expressions.{Cast, Expression, Multiply}
import org.apache.spark.sql.types.{DataType, DecimalType, LongType}

/**
 * The value of a row that stands for `times` rows, in their sum.
 *
 * Law: whole numbers are multiplied as BIGINT, as `Sum` adds them up. A decimal of p digits is multiplied by a decimal
 * of as many digits as leave all digits of the product: 37 - p, and no more than a BIGINT has. The caller has proved
 * that `times` has no more.
 */
private[pyjoinopt] object RepeatedValue {

  /** [digits] of a BIGINT as a decimal. */
  private val MostDigits = 20

  def apply(value: Expression, times: Expression): Expression = value.dataType match {
    case decimal: DecimalType =>
      val digits = math.min(MostDigits, DecimalType.MAX_PRECISION - 1 - decimal.precision)
      if (digits < 1) Support.fail(s"A value of type ${decimal.sql} has too many digits to be repeated")
      new Multiply(value, as(times, DecimalType(digits, 0)))
    case _ => new Multiply(as(value, LongType), as(times, LongType))
  }

  private def as(value: Expression, dataType: DataType): Expression =
    if (value.dataType == dataType) value else new Cast(value, dataType, None)
}
