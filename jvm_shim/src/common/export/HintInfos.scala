package org.apache.spark.sql.pyjoinopt

import org.apache.spark.sql.catalyst.plans.logical.{HintInfo, Join, JoinStrategyHint, LogicalPlan, ResolvedHint}

/**
 * Hints of joins, by name.
 *
 * Later versions of Spark have more fields than the strategy in a HintInfo. So an instance is made by reflection, with
 * the default of every other field. A HintInfo that differs from the empty one counts as a hint of the user, even
 * without a strategy.
 *
 * Law: a hint with more than a strategy is never made, only copied from the plan.
 */
private[pyjoinopt] object HintInfos {
  lazy val empty: HintInfo = of(None)

  def of(strategy: Option[JoinStrategyHint]): HintInfo = filled(classOf[HintInfo], strategy)

  /** An instance of a case class with this first field and the defaults of the others. */
  def filled[T <: Product](of: Class[T], first: AnyRef): T = {
    val constructor = of.getConstructors.maxBy(_.getParameterCount)
    val others = (2 to constructor.getParameterCount).map { position =>
      of.getMethod("$lessinit$greater$default$" + position).invoke(null)
    }
    val made = of.cast(constructor.newInstance(first +: others: _*))
    if (made.productElement(0) != first) Support.fail(s"${of.getName} keeps something else in its first field.")
    made
  }

  /** The name of the strategy if that is all that the hint holds, a description if it holds more, null if nothing. */
  def name(hint: Option[HintInfo]): String = hint.map(name).orNull

  private def name(hint: HintInfo): String = {
    val only = of(hint.strategy)
    if (!fields(hint).sameElements(fields(only))) fields(hint).mkString("HintInfo(", ", ", ")")
    else hint.strategy.map(Support.className).orNull
  }

  /** The hint of this plan with a name that is no name of a strategy. */
  def named(name: String, nodes: Iterable[LogicalPlan]): Option[HintInfo] = nodes.iterator.flatMap {
    case join: Join => join.hint.leftHint.iterator ++ join.hint.rightHint.iterator
    case hint: ResolvedHint => Iterator(hint.hints)
    case _ => Iterator.empty
  }.find(hint => this.name(hint) == name)

  private def fields(hint: Product): List[Any] = hint.productIterator.toList
}
