package org.apache.spark.sql.pyjoinopt

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._

/**
 * Whether a predicate is null-rejecting: it is never true if all its columns are NULL. Then an outer join below it that
 * adds such rows can be demoted.
 *
 * The predicate is evaluated over NULLs, as Catalyst's EliminateOuterJoin does. Laws: true only if the evaluation ended
 * in NULL or false. False for predicates that cannot be evaluated here (subqueries, functions of users,
 * nondeterministic functions, functions that may take much memory), and for predicates that read the current time,
 * whose value may differ when the query runs. Every column counts as nullable, as it is above an outer join; the value
 * of a column that is declared not nullable would be read as zero.
 */
private[pyjoinopt] object NullRejection {

  def rejectsNulls(predicate: Expression): Boolean = Support.attempt(false) {
    !ConstantValues.isCurrent(predicate) && SamplePredicates.safe(predicate).exists { plain =>
      val attributes = plain.references.toList.map(_.withNullability(true))
      val bound = BindReferences.bindReference(plain, AttributeSeq(attributes))
      if (bound.exists(e => e.isInstanceOf[Unevaluable] || ConstantValues.grows(e))) false
      else {
        val result = bound.eval(new GenericInternalRow(attributes.length): InternalRow)
        result == null || result == false
      }
    }
  }

  /** The operands of a chain of ANDs. */
  def conjuncts(condition: Expression): Seq[Expression] = {
    val found = Seq.newBuilder[Expression]
    Support.preOrder(condition)(_.children) {
      case _: And => true
      case other =>
        found += other
        false
    }
    found.result()
  }
}
