package org.apache.spark.sql.pyjoinopt

import org.apache.spark.sql.catalyst.plans.logical.{HintInfo, Join, JoinStrategyHint, LogicalPlan, ResolvedHint}

/**
 * Hints of joins, by name.
 *
 * Later Sparks put more into a HintInfo than the strategy. So one is made by reflection, every other field with its
 * default, and whatever differs from an empty one counts as a hint of the user's, strategy or not.
 *
 * Law: a hint that holds more than a strategy is never made, only taken over from the plan that has it.
 */
private[pyjoinopt] object HintInfos {
  lazy val empty: HintInfo = of(None)

  def of(strategy: Option[JoinStrategyHint]): HintInfo = filled(classOf[HintInfo], strategy)

  /** An instance of a case class: its first field as given, the others by their defaults. */
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

  /** The hint of this plan that has a name that no strategy has. */
  def named(name: String, nodes: Iterable[LogicalPlan]): Option[HintInfo] = nodes.iterator.flatMap {
    case join: Join => join.hint.leftHint.iterator ++ join.hint.rightHint.iterator
    case hint: ResolvedHint => Iterator(hint.hints)
    case _ => Iterator.empty
  }.find(hint => this.name(hint) == name)

  private def fields(hint: Product): List[Any] = hint.productIterator.toList
}
