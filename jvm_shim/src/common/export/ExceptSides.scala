package org.apache.spark.sql.pyjoinopt

import java.util.IdentityHashMap

import com.fasterxml.jackson.core.JsonGenerator

import org.apache.spark.sql.catalyst.expressions.NamedExpression
import org.apache.spark.sql.catalyst.plans.logical._

/**
 * Finds each EXCEPT whose sides differ in filters only, so that a filter can replace it (ReplaceExceptWithFilter).
 *
 * Two relations have the same result if their canonical forms are equal, and canonical forms are not exported. Aliases,
 * views and hints are skipped, because they are removed before the rule runs; the field `below` has the children of a
 * node without them.
 *
 * Laws: a plan without such an EXCEPT costs one pass over its nodes. If the comparison fails, nothing is exported.
 */
private[pyjoinopt] final class ExceptSides(nodes: Seq[LogicalPlan], number: LogicalPlan => Int, out: JsonGenerator) {

  import ExceptSides._

  private val sides = new IdentityHashMap[LogicalPlan, Seq[Int]]

  nodes.foreach {
    case except: Except if !except.isAll =>
      val (left, right) = (nameless(except.left), nameless(except.right))
      if (hasFilter(right) && Support.attempt(false)(source(left).sameResult(source(right))))
        sides.put(except, Seq(left, base(left), right, base(right)).map(number))
    case _ =>
  }

  def write(node: LogicalPlan): Unit =
    if (!sides.isEmpty) {
      if (sides.containsKey(node)) list("sides", sides.get(node))
      if (node.children.exists(isName)) list("below", node.children.map(child => number(nameless(child))))
    }

  private def list(field: String, numbers: Seq[Int]): Unit = {
    out.writeArrayFieldStart(field)
    numbers.foreach(out.writeNumber(_: Int))
    out.writeEndArray()
  }
}

private object ExceptSides {

  private def isName(node: LogicalPlan): Boolean = node match {
    case _: SubqueryAlias | _: View | _: ResolvedHint | _: HintScope => true
    case _ => false
  }

  private def nameless(node: LogicalPlan): LogicalPlan = {
    var found = node
    while (isName(found)) found = found.children.head
    found
  }

  private def belowProject(side: LogicalPlan): LogicalPlan = side match {
    case project: Project => nameless(project.child)
    case other => other
  }

  private def hasFilter(side: LogicalPlan): Boolean = belowProject(side).isInstanceOf[Filter]

  private def base(side: LogicalPlan): LogicalPlan = {
    var found = belowProject(side)
    while (found.isInstanceOf[Filter]) found = nameless(found.children.head)
    found
  }

  private def source(side: LogicalPlan): LogicalPlan = {
    val columns: Seq[NamedExpression] = side match {
      case project: Project => project.projectList
      case other => other.output
    }
    Project(columns.toList, base(side))
  }
}
