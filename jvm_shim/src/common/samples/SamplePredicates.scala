package org.apache.spark.sql.pyjoinopt

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.objects.{Invoke, StaticInvoke}
import org.apache.spark.sql.types.{ObjectType, StructType}

/**
 * Evaluates Catalyst predicates over the rows of a sample.
 *
 * Laws: no user's code is run (user-defined functions, methods called by reflection), no nondeterministic function, no
 * subquery. A predicate that throws on some row, or that is not evaluated in time, has no result. Expressions are
 * interpreted: for some thousand rows code generation would take longer.
 */
private[pyjoinopt] object SamplePredicates {

  /** One bit a row, 1 if the predicate is true, the first row in the lowest bit; None if it is unknown. */
  def hits(
      predicate: Expression,
      sample: RelationSample,
      ordinals: ExprId => Option[Int],
      until: Long): Option[Array[Byte]] =
    Support.attempt(Option.empty[Array[Byte]]) {
      bound(predicate, sample.columns, ordinals).flatMap { local =>
        sample.remembered(local.canonicalized)(run(local, sample, until))
      }
    }

  private def run(predicate: Expression, sample: RelationSample, until: Long): Option[Array[Byte]] = {
    val bits = new Array[Byte]((sample.rows.length + 7) / 8)
    var (i, late) = (0, false)
    while (i < sample.rows.length && !late) {
      if (i % 64 == 0) late = System.nanoTime >= until
      if (!late && true == predicate.eval(sample.rows(i))) bits(i >> 3) = (bits(i >> 3) | 1 << (i & 7)).toByte
      i += 1
    }
    if (late) None else Some(bits)
  }

  /** The expression in a form that may be evaluated here, with the current time filled in; None if it may not. */
  def safe(e: Expression): Option[Expression] = {
    val plain = e.transform { case replaceable: RuntimeReplaceable => replaceable.replacement }
    // Results are cached by predicate, so the predicate must contain the day.
    val now = if (ConstantValues.isCurrent(plain)) ConstantValues.asOfNow(Seq(plain)).head else plain
    if (!now.deterministic || now.exists(refused)) None else Some(now)
  }

  private def bound(predicate: Expression, columns: StructType, ordinals: ExprId => Option[Int]): Option[Expression] =
    safe(predicate).flatMap { plain =>
      val local = plain.transform {
        case a: Attribute =>
          ordinals(a.exprId).filter(i => columns(i).dataType == a.dataType) match {
            case Some(i) => BoundReference(i, a.dataType, nullable = true)
            case None => a
          }
      }
      if (local.exists(_.isInstanceOf[Attribute])) None else Some(local)
    }

  private def refused(e: Expression): Boolean = e match {
    case _: Attribute => false // which is unevaluable until it is bound
    case _: Unevaluable | _: PlanExpression[_] | _: UserDefinedExpression | _: Nondeterministic => true
    case invoke: Invoke =>
      invoke.targetObject.dataType match {
        case ObjectType(of) => !sparks(of)
        case _ => false
      }
    case invoke: StaticInvoke => !sparks(invoke.staticObject)
    case other => !sparks(other.getClass)
  }

  private def sparks(of: Class[_]): Boolean =
    of.getName.startsWith("org.apache.spark.") || of.getName.startsWith("java.")
}
