package newer

import org.apache.spark.sql.catalyst.plans.logical._

/** A HintInfo as in Spark versions after 4.3, with another field in addition to the strategy. */
class NewerHint(of: Option[JoinStrategyHint], val filter: Option[String]) extends HintInfo(of) {
  override def productArity: Int = 2
  override def productElement(n: Int): Any = if (n == 0) strategy else filter
  override def productIterator: Iterator[Any] = Iterator(strategy, filter)
  override def toString: String = s"newer hint $strategy $filter"
}

/** The declaration of such a class. */
case class TwoFields(strategy: Option[JoinStrategyHint] = None, filter: Option[String] = Some("by default"))

object NewerHints {
  def twoFields: Class[TwoFields] = classOf[TwoFields]

  def strategy: Option[JoinStrategyHint] = Some(SHUFFLE_HASH)

  def hint(filter: String): HintInfo = new NewerHint(None, Option(filter))

  def over(plan: LogicalPlan, filter: String): LogicalPlan = ResolvedHint(plan, hint(filter))

  /** The other fields of the hints on a plan's joins. */
  def filters(plan: LogicalPlan): String = plan.collect {
    case join: Join =>
      Seq(join.hint.leftHint, join.hint.rightHint).flatten.collect { case hint: NewerHint => hint.filter }
  }.flatten.flatten.mkString(",")
}
