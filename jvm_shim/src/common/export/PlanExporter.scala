package org.apache.spark.sql.pyjoinopt

import java.util.IdentityHashMap

import scala.collection.mutable

import com.fasterxml.jackson.core.JsonGenerator

import org.apache.spark.SPARK_VERSION
import org.apache.spark.sql.catalyst.catalog.HiveTableRelation
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.catalyst.plans.{FullOuter, LeftOuter, RightOuter}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}

/**
 * Tells a plan as one JSON text and keeps the plan's objects under the numbers used in it.
 *
 * Laws: one walk, children first, in time linear in the size of the plan; an object met twice is told once. Unknown
 * nodes are told by name, children, output and expressions; export never fails on a plan that Spark accepted.
 * The objects are kept after the text was written, so every number that the text mentions has its object: whatever is
 * met while details are written is in the lists that come after them. For that reason the lists of expressions,
 * attributes and types follow the nodes, and the number of the handle is the last field.
 * A plan that is being optimised has its cached data in place already. A join to `keep` is told with a mark.
 */
private[pyjoinopt] final class PlanExporter(
    session: Compat.Session,
    root: LogicalPlan,
    optimizing: Boolean = false,
    keep: Join => Option[String] = _ => None) {
  private val kept = if (optimizing) keep else JoinOrderHints.keptBelowScopes(root)
  private val types = new TypeTable
  private val attributes = new AttributeTable(types)
  private val nodes = new Numbering[LogicalPlan]
  private val outputs = new mutable.ArrayBuffer[Array[Int]]
  private val expressions = new ExpressionExporter(session, types, attributes, number)
  private val nodeExpressions = new IdentityHashMap[LogicalPlan, Seq[Expression]]
  private val listings = new IdentityHashMap[AnyRef, Integer]
  private val alike = new mutable.HashMap[(LogicalPlan, Int), Int]
  private val isCached = if (optimizing) (_: LogicalPlan) => false else CachedPlans.find(session, root)

  /** The number under which the plan's objects are kept, once it was told. */
  var handle: Long = 0

  def run(): String = {
    number(root)
    Support.json { out =>
      out.writeStartObject()
      out.writeNumberField("protocol", PyJoinOptBridge.Protocol)
      out.writeStringField("spark", SPARK_VERSION)
      out.writeBooleanField("streaming", Support.attempt(true)(root.isStreaming))
      out.writeBooleanField("resolved", Support.attempt(false)(root.resolved))
      out.writeBooleanField("command", nodes.items.exists(_.isInstanceOf[Command]))
      out.writeFieldName("conf")
      SessionSettings.write(session, out)
      writeNodes(out)
      out.writeNumberField("root", nodes(root))
      writeNullRejecting(out)
      out.writeFieldName("expressions")
      expressions.write(out)
      out.writeFieldName("attributes")
      attributes.write(out)
      out.writeFieldName("types")
      types.write(out)
      handle = Handles.register(
        Handle(session, root, nodes.items.toVector, outputs.toVector, expressions.numbering.items.toVector,
          attributes.items.toVector))
      out.writeNumberField("handle", handle)
      out.writeEndObject()
    }
  }

  /** The number of a plan, be it the whole or the plan of a subquery; what is below it gets numbers first. */
  private def number(plan: LogicalPlan): Int = {
    Support.postOrder(plan)(_.children, nodes.contains)(add)
    nodes(plan)
  }

  private def add(node: LogicalPlan): Unit = {
    val found = Support.attempt(Seq.empty[Expression])(node.expressions.toList)
    // A leaf lists its own columns among its expressions; they are told as output already.
    val told = if (node.children.isEmpty) found.filterNot(_.isInstanceOf[Attribute]) else found
    told.foreach(expressions.number)
    nodeExpressions.put(node, told)
    outputs += NodeOutputs.of(node, child => outputs(nodes(child)), attributes.number)
    nodes.add(node)
  }

  private def writeNodes(out: JsonGenerator): Unit = {
    val details = new NodeDetails(attributes, expressions.number, out, kept, hidden)
    val leaves = new LeafDetails(attributes, out)
    val sides = new ExceptSides(nodes.items.toList, nodes(_), out)
    out.writeArrayFieldStart("nodes")
    var written = 0
    while (written < nodes.items.length) { // details may meet another plan
      val node = nodes.items(written)
      written += 1
      out.writeStartObject()
      out.writeStringField("c", Support.className(node))
      writeNumbers(out, "k", node.children.map(nodes(_)))
      writeNumbers(out, "o", outputs(nodes(node)))
      writeNumbers(out, "x", nodeExpressions.get(node).map(expressions.number))
      details.write(node)
      if (node.children.isEmpty) {
        leaves.write(node)
        writeAlike(node, out)
      }
      sides.write(node)
      if (isCached(node)) out.writeBooleanField("cached", true)
      out.writeEndObject()
    }
    out.writeEndArray()
  }

  /**
   * The columns that a join USING them hid below this projection, as far as they are still below it. Rules of Spark's
   * optimizer copy the mark to projections over anything else, and no name is looked up any more by then.
   */
  private def hidden(project: Project): Seq[Attribute] =
    if (optimizing) Nil
    else project.getTagValue(Project.hiddenOutputTag).toSeq.flatten.filter { column =>
      Support.attempt(Option.empty[Int])(attributes.get(column.exprId)).exists(outputs(nodes(project.child)).contains(_))
    }

  /**
   * One number for all leaves that read the same: only the ids of their columns tell them apart. Files are listed once
   * for each index, so two indexes of one folder may differ.
   */
  private def writeAlike(leaf: LogicalPlan, out: JsonGenerator): Unit = {
    val listing = leaf match {
      case relation: LogicalRelation =>
        relation.relation match {
          case files: HadoopFsRelation =>
            listings.putIfAbsent(files.location, listings.size + 1)
            Some(listings.get(files.location).intValue)
          case _ => Some(0)
        }
      case _: CTERelationRef | _: HiveTableRelation => Some(0)
      case _ => None
    }
    for (l <- listing; same <- Support.attempt(Option.empty[LogicalPlan])(Some(leaf.canonicalized)))
      out.writeNumberField("alike", alike.getOrElseUpdate((same, l), alike.size))
  }

  private def writeNumbers(out: JsonGenerator, field: String, numbers: Iterable[Int]): Unit = {
    out.writeArrayFieldStart(field)
    numbers.foreach(out.writeNumber(_: Int))
    out.writeEndArray()
  }

  /** The conjuncts that reject nulls; asked only where the answer can matter. */
  private def writeNullRejecting(out: JsonGenerator): Unit = {
    val hasOuterJoin = nodes.items.exists {
      case join: Join => join.joinType == LeftOuter || join.joinType == RightOuter || join.joinType == FullOuter
      case _ => false
    }
    val conditions = if (!hasOuterJoin) Nil else nodes.items.toList.flatMap {
      case filter: Filter => Seq(filter.condition)
      case join: Join => join.condition.toList
      case _ => Nil
    }
    val found = conditions.flatMap(NullRejection.conjuncts).map(c => expressions.number(c) -> c).toMap
    writeNumbers(out, "filtersNull", found.filter(c => NullRejection.rejectsNulls(c._2)).keys.toSeq.sorted)
  }
}
