package org.apache.spark.sql.pyjoinopt

import java.util.{Collections, IdentityHashMap}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.optimizer.{ComputeCurrentTime, ReplaceCurrentLike, SpecialDatetimeValues}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, OneRowRelation, Project}
import org.apache.spark.sql.catalyst.trees.TreePattern.CURRENT_LIKE
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** The value of a constant expression. `current`: the value may differ when the query runs. */
private[pyjoinopt] final case class ConstantValue(value: Any, current: Boolean)

/**
 * Evaluates the constant expressions of a plan, as Catalyst will. Runtime-replaceable functions are replaced first, and
 * so are the current time, the session's time zone, its user and its catalog.
 *
 * The value is used in estimates, and it proves that the expression can be evaluated. The expression itself is kept in
 * the plan, since a DataFrame that is optimised today may be collected tomorrow.
 *
 * Laws: only maximal constant subexpressions are evaluated, and on copies, so that nothing is cached in the plan's own
 * objects. Only Catalyst's own expressions are evaluated, and of these only those that take little time and memory for
 * any operands: no user's code, no subquery, no regular expression, nothing that makes long text or long arrays. An
 * expression that is refused or fails has no value. Nothing throws.
 */
private[pyjoinopt] final class ConstantValues(session: Compat.Session) {
  import ConstantValues._

  /** The values of the maximal constants. `listed` has children before their parents; `tops` have no parent. */
  def of(listed: Iterable[Expression], tops: Iterable[Expression]): IdentityHashMap[Expression, ConstantValue] = {
    val sizes = new IdentityHashMap[Expression, Integer]
    val roots = Collections.newSetFromMap(new IdentityHashMap[Expression, java.lang.Boolean])
    def isConstant(e: Expression) = sizes.containsKey(e)
    def consider(e: Expression): Unit = if (!e.isInstanceOf[Literal] && isConstant(e)) roots.add(e)
    listed.foreach { e =>
      val size = e.children.foldLeft(1)((sum, c) => if (isConstant(c)) sum + sizes.get(c) else MaxSize)
      if (size < MaxSize && Support.attempt(false)(evaluable(e))) sizes.put(e, size)
      else e.children.foreach(consider)
    }
    tops.foreach(consider)
    val values = new IdentityHashMap[Expression, ConstantValue]
    if (!roots.isEmpty) evaluateAll(listed.filter(roots.contains(_)).toSeq, values)
    values
  }

  private def evaluateAll(roots: Seq[Expression], values: IdentityHashMap[Expression, ConstantValue]): Unit = {
    val plain = roots.flatMap(root => Support.attempt(Option.empty[Expression])(replaced(root)).map(root -> _))
    val (current, fixed) = plain.partition { case (_, e) => isCurrent(e) }
    val now = if (current.isEmpty) Nil
    else Support.attempt[Seq[Expression]](Nil) {
      asOfNow(current.map(_._2), ReplaceCurrentLike(catalogManager)(_))
    }
    val until = System.nanoTime + MaxNanos
    def put(root: Expression, e: Expression, isCurrent: Boolean): Unit = if (System.nanoTime < until) {
      Support.attempt(Option.empty[Any])(evaluated(e)).foreach(v => values.put(root, ConstantValue(v, isCurrent)))
    }
    fixed.foreach { case (root, e) => put(root, e, isCurrent = false) }
    current.map(_._1).zip(now).foreach { case (root, e) => put(root, e, isCurrent = true) }
  }

  private def catalogManager = session.sessionState.catalogManager

  /** A copy with runtime-replaceable functions replaced; None if it must not be evaluated here. */
  private def replaced(root: Expression): Option[Expression] = {
    val plain = root.clone().transform { case e: RuntimeReplaceable => e.replacement }
    if (plain.deterministic && !plain.exists(!evaluable(_))) Some(plain) else None
  }

  private def evaluated(e: Expression): Option[Any] =
    if (e.foldable && !e.exists(_.isInstanceOf[Unevaluable])) Some(e.eval(InternalRow.empty)) else None
}

private[pyjoinopt] object ConstantValues {
  private val MaxSize = 1000
  private val MaxTextLength = 10000
  private val MaxDigits = 100
  private val MaxNanos = 100L * 1000 * 1000
  private val Catalyst = "org.apache.spark.sql.catalyst.expressions."

  /** Expressions with text or nested values as result, hardly larger than their operands. */
  private val Bounded = Set(
    "Literal", "If", "CaseWhen", "Coalesce", "NullIf", "Cast", "Upper", "Lower", "Substring", "Concat", "StringTrim",
    "StringTrimLeft", "StringTrimRight", "DateFormatClass", "FromUnixTime", "CreateArray", "CreateNamedStruct",
    "GetStructField", "GetArrayItem", "ElementAt", "Greatest", "Least", "Reverse", "DayName", "MonthName", "Chr",
    "KnownNotNull", "Collate")

  /** Expressions with a number or a Boolean as result that may take long. */
  private val Slow = Set(
    "RLike", "Like", "LikeAll", "LikeAny", "NotLikeAll", "NotLikeAny", "RegExpInStr", "Levenshtein", "Invoke")

  /** Expressions whose result may be far larger than their operands. */
  private val Growing = Set(
    "StringRepeat", "StringSpace", "StringLPad", "StringRPad", "ArrayRepeat", "Sequence", "ArrayInsert", "FormatString",
    "FormatNumber")

  /** Whether evaluating this operator alone may take much memory. */
  def grows(e: Expression): Boolean = Growing(Support.className(e))

  /**
   * The expressions with the current date and time, the time zone, and texts such as 'today' replaced by their values.
   * `more` is applied, too.
   */
  def asOfNow(expressions: Seq[Expression], more: LogicalPlan => LogicalPlan = identity): Seq[Expression] = {
    val project: LogicalPlan = Project(expressions.map(Alias(_, "constant")()), OneRowRelation())
    SpecialDatetimeValues(more(ComputeCurrentTime(project))).expressions.flatMap(_.children)
  }

  /** Whether it reads the current date or time, or anything else that may differ when the query runs. */
  def isCurrent(e: Expression): Boolean = e.containsPattern(CURRENT_LIKE) || e.exists {
    case Cast(text, DateType | TimestampType | TimestampNTZType, _, _) if text.dataType.isInstanceOf[StringType] =>
      text match {
        case Literal(null, _) => false
        case Literal(value, _) => SpecialTexts.exists(value.toString.trim.toLowerCase(java.util.Locale.ROOT).startsWith)
        case other => other.foldable
      }
    case _ => false
  }

  private val SpecialTexts = Seq("now", "today", "yesterday", "tomorrow", "epoch")

  /** Whether this operator may be evaluated here, given that its operands may. */
  private def evaluable(e: Expression): Boolean = e match {
    case _: Attribute => false
    case Literal(text: UTF8String, _) => text.numBytes <= MaxTextLength
    case Literal(_, dataType) => isSmall(dataType)
    case leaf if leaf.children.isEmpty && !leaf.isInstanceOf[RuntimeReplaceable] =>
      kindIsSafe(leaf) && (leaf.foldable || leaf.containsPattern(CURRENT_LIKE))
    case cast: Cast => kindIsSafe(cast) && keepsShort(cast)
    case rounded: RoundBase =>
      rounded.right match {
        case Literal(digits: Int, _) => math.abs(digits.toLong) <= MaxDigits
        case _ => false
      }
    case replaced: RuntimeReplaceable => isCatalysts(replaced.getClass) // its replacement is checked
    case other => kindIsSafe(other) && (isSmall(other.dataType) || Bounded(Support.className(other)))
  }

  private def kindIsSafe(e: Expression): Boolean = e match {
    case call: objects.StaticInvoke =>
      call.staticObject.getName.stripSuffix("$").endsWith(".catalyst.util.DateTimeUtils")
    case _: Nondeterministic | _: UserDefinedExpression | _: PlanExpression[_] | _: HigherOrderFunction => false
    case _: ApplyFunctionExpression | _: Generator | _: aggregate.AggregateFunction => false
    case unevaluable: Unevaluable => unevaluable.children.isEmpty && unevaluable.containsPattern(CURRENT_LIKE)
    case other => quick.get(other.getClass)
  }

  private val quick = new ClassValue[java.lang.Boolean] {
    override def computeValue(of: Class[_]): java.lang.Boolean = {
      val name = of.getName.substring(of.getName.lastIndexOf('.') + 1)
      isCatalysts(of) && !Slow(name) && !Growing(name)
    }
  }

  /** Whether a class is in this package itself, not in a subpackage such as those of objects and of XML. */
  private def isCatalysts(of: Class[_]): Boolean = {
    val name = of.getName
    name.startsWith(Catalyst) && name.indexOf('.', Catalyst.length) < 0
  }

  /** Whether a cast has a short result. Text with a large exponent is short, but its decimal has that many digits. */
  private def keepsShort(cast: Cast): Boolean = (cast.child, cast.dataType) match {
    case (Literal(text: UTF8String, _), _: DecimalType) =>
      text.numBytes <= MaxDigits && !text.toString.exists(c => c == 'e' || c == 'E')
    case (child, _: DecimalType) => isSmall(child.dataType)
    case (child, _: StringType) => isSmall(child.dataType) || child.dataType.isInstanceOf[StringType]
    case (child, to) => isSmall(to) && (isSmall(child.dataType) || child.dataType.isInstanceOf[StringType])
  }

  private def isSmall(dataType: DataType): Boolean = dataType match {
    case _: NumericType | BooleanType | DateType | TimestampType | TimestampNTZType | NullType => true
    case _: YearMonthIntervalType | _: DayTimeIntervalType | CalendarIntervalType => true
    case _: StringType | BinaryType => false
    case other => other.typeName.startsWith("time(")
  }
}
