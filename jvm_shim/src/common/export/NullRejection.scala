package org.apache.spark.sql.pyjoinopt

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._

/**
 * Does a predicate turn away every row whose columns are all null? Then an outer join below it that would add such
 * rows adds nothing.
 *
 * The question is put to the predicate itself: it is evaluated over nulls, as Catalyst's EliminateOuterJoin does.
 * Laws: true only if the evaluation ended, and ended in null or false; whatever cannot be evaluated here (subqueries,
 * functions of users, anything random, anything that may take much memory) is false. So is what reads the current time,
 * for the answer may be another one when the query runs. Every column counts as nullable, wherever the predicate stands: it is
 * asked what it would do above an outer join, and a column believed never null would be read as zero.
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
