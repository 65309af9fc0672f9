package org.apache.spark.sql.pyjoinopt

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.objects.{Invoke, StaticInvoke}
import org.apache.spark.sql.types.{ObjectType, StructType}

/**
 * Catalyst's own predicates, evaluated over the rows of a sample.
 *
 * Laws: nobody's own code is run (functions of users, methods called by name), nothing that would answer differently
 * another time, nothing that would need a query. A predicate that throws on some row, or for which there is no time,
 * is unknown as a whole. Nothing is compiled: for some thousand rows that takes longer than to walk the tree.
 */
private[pyjoinopt] object SamplePredicates {

  /** For each row whether the predicate is true, as bits, the first row lowest; None if it cannot be told. */
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

  /** An expression as it may be evaluated here, as of this moment; None if it may not. */
  def safe(e: Expression): Option[Expression] = {
    val plain = e.transform { case replaceable: RuntimeReplaceable => replaceable.replacement }
    // What is found is remembered under the predicate, so the predicate must name the day.
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
