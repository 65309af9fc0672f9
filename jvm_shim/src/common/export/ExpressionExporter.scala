package org.apache.spark.sql.pyjoinopt

import java.lang.reflect.Method
import java.util.IdentityHashMap

import scala.collection.mutable

import com.fasterxml.jackson.core.JsonGenerator

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateExpression, AggregateFunction}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.types.{DataType, DateType, TimestampNTZType, TimestampType}

/**
 * Numbers expressions and exports the properties of each that an optimizer needs: is it deterministic, can it fail,
 * does it reject NULLs, which others are semantically equal. The expressions themselves are kept in the JVM under their
 * numbers.
 *
 * Laws: an expression of an unknown class is exported with its class name and flags, and nothing throws. Two
 * expressions have the same value number only if their canonical forms are equal and deterministic. The inner nodes of
 * a chain of ANDs (or ORs) get value numbers of their own, because each canonical form collects the whole chain again:
 * a thousand conjuncts would cost a million steps.
 */
private[pyjoinopt] final class ExpressionExporter(
    session: Compat.Session,
    types: TypeTable,
    attributes: AttributeTable,
    planNumber: LogicalPlan => Int) {

  val numbering = new Numbering[Expression]
  private val subqueryPlans = new IdentityHashMap[Expression, Integer]
  private val innerLinks = new IdentityHashMap[Expression, Expression]
  private val tops = new mutable.ArrayBuffer[Expression]

  def number(root: Expression): Int = {
    if (!root.isInstanceOf[Attribute]) tops += root
    Support.postOrder(root)(_.children, numbering.contains)(add)
    numbering(root)
  }

  private def add(expression: Expression): Unit = {
    expression match {
      case attribute: Attribute => attributes.number(attribute)
      case alias: Alias => attributes.number(alias.toAttribute)
      case subquery: SubqueryExpression => subqueryPlans.put(subquery, planNumber(subquery.plan))
      case _: And | _: Or =>
        expression.children.foreach(c => if (c.getClass eq expression.getClass) innerLinks.put(c, c))
      case _ => ExpressionExporter.outerAttribute(expression).foreach(attributes.number)
    }
    numbering.add(expression)
  }

  /** All expressions numbered so far, each as `[class, type, flags, value number, children, details]`. */
  def write(out: JsonGenerator): Unit = {
    val valueNumbers = new mutable.HashMap[Expression, Int]
    var fresh = 0
    def valueNumber(expression: Expression, deterministic: Boolean): Int = {
      val canonical =
        if (!deterministic || innerLinks.containsKey(expression)) None
        else Support.attempt(Option.empty[Expression])(Some(expression.canonicalized))
      def next = { fresh += 1; fresh - 1 }
      canonical.fold(next)(c => Support.attempt(next)(valueNumbers.getOrElseUpdate(c, next)))
    }
    val constants = new ConstantValues(session).of(numbering.items, tops)
    val details = new ExpressionDetails(attributes, number, subqueryPlans, constants, out)
    out.writeStartArray()
    numbering.items.foreach { expression =>
      val typeNumber = types.number(expression.dataType)
      val flags = ExpressionExporter.flags(expression) |
        ExpressionExporter.constantFlags(Option(constants.get(expression)))
      out.writeStartArray()
      out.writeString(Support.className(expression))
      out.writeNumber(typeNumber)
      out.writeNumber(flags)
      out.writeNumber(valueNumber(expression, (flags & ExpressionExporter.Deterministic) != 0))
      out.writeStartArray()
      expression.children.foreach(child => out.writeNumber(numbering(child)))
      out.writeEndArray()
      details.write(expression, typeNumber)
      out.writeEndArray()
    }
    out.writeEndArray()
  }
}

private[pyjoinopt] object ExpressionExporter {
  val Deterministic = 1
  private val NullIntolerant = 2
  private val Foldable = 4
  private val Throwable = 8
  private val Python = 16
  private val NotEvaluable = 32
  private val Outer = 64
  private val Subquery = 128
  private val Aggregating = 256
  private val Ansi = 512
  private val Nullable = 1024
  private val Correlated = 2048
  private val Trying = 4096
  private val Constant = 8192
  private val Current = 16384
  private val Replaced = 32768

  /** Whether it is a column of an enclosing query. By name, because OuterScopeReference exists in new versions only. */
  def isOuter(expression: Expression): Boolean = {
    val name = Support.className(expression)
    name == "OuterReference" || name == "OuterScopeReference"
  }

  /** The column of an enclosing query that this expression refers to. */
  def outerAttribute(expression: Expression): Option[Attribute] = expression match {
    case named: NamedExpression if isOuter(named) => Support.attempt(Option.empty[Attribute])(Some(named.toAttribute))
    case _ => None
  }

  def flags(e: Expression): Int =
    flag(Deterministic, e.deterministic) |
      flag(NullIntolerant, Compat.nullIntolerant(e)) |
      flag(Foldable, isFoldable(e)) |
      flag(Throwable, Compat.throwable(e)) |
      flag(Python, e.isInstanceOf[PythonFuncExpression] || Support.className(e).startsWith("Python")) |
      flag(NotEvaluable, e.isInstanceOf[Unevaluable]) |
      flag(Outer, isOuter(e)) |
      flag(Subquery, e.isInstanceOf[PlanExpression[_]]) |
      flag(Aggregating, isAggregating(e)) |
      flag(Ansi, failsOnError(e)) |
      flag(Nullable, e.nullable) |
      flag(
        Correlated,
        e match {
          case subquery: SubqueryExpression => subquery.isCorrelated
          case _ => false
        }) |
      flag(Trying, hasMode(e, EvalMode.TRY)) |
      flag(
        Replaced,
        e match {
          case named: InheritAnalysisRules with RuntimeReplaceable => named.child eq named.replacement
          case _ => false
        })

  /** Whether it was evaluated, and whether its value may differ when the query runs. */
  def constantFlags(found: Option[ConstantValue]): Int =
    found.fold(0)(constant => if (constant.current) Constant | Current else Constant)

  private def flag(bit: Int, holds: => Boolean): Int = if (Support.attempt(false)(holds)) bit else 0

  /** Checks the short right side of a chain of ANDs first: `foldable` of the left side recurses down the chain. */
  private def isFoldable(e: Expression): Boolean = e match {
    case chain: BinaryOperator with Predicate => chain.right.foldable && chain.left.foldable
    case other => other.foldable
  }

  private def isAggregating(e: Expression): Boolean = e match {
    case _: AggregateExpression | _: AggregateFunction | _: WindowExpression | _: WindowFunction | _: Generator => true
    case _ => false
  }

  /** Whether this node raises an error instead of returning NULL. A cast that always fits does not. */
  private def failsOnError(e: Expression): Boolean = e match {
    case cast: Cast => cast.ansiEnabled && !fits(cast.child.dataType, cast.dataType)
    case other => castOf(other).fold(hasMode(other, EvalMode.ANSI))(failsOnError)
  }

  private def fits(from: DataType, to: DataType): Boolean = Cast.canUpCast(from, to) || (from match {
    case TimestampType | TimestampNTZType => to == DateType
    case _ => false
  })

  /** The cast that replaces a function of one operand, such as TO_DATE of a timestamp. */
  def castOf(e: Expression): Option[Cast] = e match {
    case named: RuntimeReplaceable if named.children.length == 1 =>
      Support.attempt(Option.empty[Cast])(named.replacement match {
        case cast: Cast if cast.child eq named.children.head => Some(cast)
        case _ => None
      })
    case _ => None
  }

  /**
   * Whether the error mode of an expression is `mode`. Some classes have a Boolean, true for ANSI, instead of a mode.
   */
  private def hasMode(e: Expression, mode: EvalMode.Value): Boolean =
    errorModes.get(e.getClass).exists { accessor =>
      accessor.invoke(e) match {
        case on: java.lang.Boolean => on && mode == EvalMode.ANSI
        case context: Product => context.productIterator.contains(mode)
        case other => other == mode
      }
    }

  private val modeNames = Set("failOnError", "ansiEnabled", "evalMode", "evalContext")

  /** The accessors of the error mode of a class of expressions; looked up once per class. */
  private val errorModes = new ClassValue[Array[Method]] {
    override def computeValue(of: Class[_]): Array[Method] =
      of.getMethods.filter(m => modeNames(m.getName) && m.getParameterCount == 0)
  }
}
