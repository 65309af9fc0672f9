package org.apache.spark.sql.pyjoinopt

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateExpression, Average}
import org.apache.spark.sql.catalyst.optimizer.DecimalAggregates
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{DataType, DecimalType}

/**
 * An average of which the sum and the count are known: `Average`'s own last expression over these, so that the result
 * is rounded as Spark's version does it.
 *
 * Law: an average of decimals of up to 11 digits is that of their unscaled values, as `DecimalAggregates` makes it. There
 * `total` is a sum of unscaled values, else one of values. Without that rule they are averaged as decimals.
 */
private[pyjoinopt] object AverageOfResults {

  /** [digits] `DecimalAggregates` adds up decimals as floating-point numbers whose average has no more than these. */
  private val MostDigits = 15

  def apply(total: Expression, count: Expression, function: Expression): Expression = function match {
    case AggregateExpression(average: Average, _, _, _, _) =>
      val result = average.child.dataType match {
        case decimal: DecimalType if decimal.precision + 4 <= MostDigits && isExcluded =>
          over(average, MakeDecimal(total, decimal.precision + 10, decimal.scale), count)
        case decimal: DecimalType if decimal.precision + 4 <= MostDigits =>
          val unscaled = average.withNewChildren(Seq(UnscaledValue(average.child))).asInstanceOf[Average]
          val scaled = new Divide(over(unscaled, total, count), Literal(math.pow(10.0, decimal.scale)))
          new Cast(scaled, DecimalType(decimal.precision + 4, decimal.scale + 4), None)
        case _ => over(average, total, count)
      }
      if (result.dataType == function.dataType) result
      else Support.fail(s"An average is of type ${result.dataType.sql}, not ${function.dataType.sql}")
    case other => Support.fail(s"${other.nodeName} is no average")
  }

  /** Whether the session runs without `DecimalAggregates`. */
  private def isExcluded: Boolean =
    SQLConf.get.optimizerExcludedRules.exists(_.split(',').map(_.trim).contains(DecimalAggregates.ruleName))

  private def over(average: Average, total: Expression, count: Expression): Expression =
    average.aggBufferAttributes match {
      case Seq(sumColumn, countColumn) =>
        average.evaluateExpression.transform {
          case column: AttributeReference if column.exprId == sumColumn.exprId => as(total, sumColumn.dataType)
          case column: AttributeReference if column.exprId == countColumn.exprId => as(count, countColumn.dataType)
        }
      case other => Support.fail(s"An average has ${other.size} buffers")
    }

  private def as(value: Expression, dataType: DataType): Expression =
    if (value.dataType == dataType) value else new Cast(value, dataType, None)
}
