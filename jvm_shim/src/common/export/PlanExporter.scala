package org.apache.spark.sql.pyjoinopt

import java.util.IdentityHashMap

import scala.collection.mutable

import com.fasterxml.jackson.core.JsonGenerator

import org.apache.spark.SPARK_VERSION
import org.apache.spark.sql.catalyst.catalog.HiveTableRelation
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.catalyst.plans.{FullOuter, LeftOuter, RightOuter}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation, TextBasedFileFormat}

/**
 * Exports a plan as one JSON text and keeps the plan's objects under the numbers in it.
 *
 * Laws: one traversal, children first, in time linear in the size of the plan; a shared object is exported once.
 * Unknown nodes are exported with name, children, output and expressions; the export never fails on a plan that Spark
 * accepted. The objects are registered after the text has been written, so every number in the text has its object.
 * Writing details may add expressions, attributes and types, so their lists follow the nodes, and the handle's number
 * is the last field. A plan that is being optimised has its cached data in place already. A join for which `keep` has a
 * mark is exported with the mark as its hint.
 */
private[pyjoinopt] final class PlanExporter(
    session: Compat.Session,
    root: LogicalPlan,
    optimizing: Boolean = false,
    keep: Join => Option[String] = _ => None) {
  private val marks = if (optimizing) keep else JoinOrderHints.keptBelowScopes(root)
  private val types = new TypeTable
  private val attributes = new AttributeTable(types)
  private val nodes = new Numbering[LogicalPlan]
  private val outputs = new mutable.ArrayBuffer[Array[Int]]
  private val expressions = new ExpressionExporter(session, types, attributes, number)
  private val nodeExpressions = new IdentityHashMap[LogicalPlan, Seq[Expression]]
  private val listings = new IdentityHashMap[AnyRef, Integer]
  private val sourceNumbers = new mutable.HashMap[(LogicalPlan, Int), Int]
  private val isCached = if (optimizing) (_: LogicalPlan) => false else CachedPlans.find(session, root)

  /** The number of the handle, after `run`. */
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
        Handle(
          session,
          root,
          nodes.items.toVector,
          outputs.toVector,
          expressions.numbering.items.toVector,
          attributes.items.toVector))
      out.writeNumberField("handle", handle)
      out.writeEndObject()
    }
  }

  /** The number of a plan or of the plan of a subquery; its descendants get their numbers first. */
  private def number(plan: LogicalPlan): Int = {
    Support.postOrder(plan)(_.children, nodes.contains)(add)
    nodes(plan)
  }

  private def add(node: LogicalPlan): Unit = {
    val found = Support.attempt(Seq.empty[Expression])(node.expressions.toList)
    // A leaf has its own columns among its expressions; they are exported as its output.
    val own = if (node.children.isEmpty) found.filterNot(_.isInstanceOf[Attribute]) else found
    own.foreach(expressions.number)
    nodeExpressions.put(node, own)
    outputs += NodeOutputs.of(node, child => outputs(nodes(child)), attributes.number)
    nodes.add(node)
  }

  private def writeNodes(out: JsonGenerator): Unit = {
    val details = new NodeDetails(attributes, expressions.number, out, marks, hidden)
    val leaves = new LeafDetails(attributes, out)
    val sides = new ExceptSides(nodes.items.toList, nodes(_), out)
    out.writeArrayFieldStart("nodes")
    var written = 0
    while (written < nodes.items.length) { // details may add the plan of a subquery
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
        writeSourceNumber(node, out)
      }
      sides.write(node)
      if (isCached(node)) out.writeBooleanField("cached", true)
      out.writeEndObject()
    }
    out.writeEndArray()
  }

  /**
   * The columns that a join with USING hides below this projection, if its child still has them. Rules of Spark's
   * optimizer copy the tag to projections over other children; names are resolved by then.
   */
  private def hidden(project: Project): Seq[Attribute] =
    if (optimizing) Nil
    else project.getTagValue(Project.hiddenOutputTag).toSeq.flatten.filter { column =>
      Support.attempt(Option.empty[Int])(attributes.get(column.exprId)).exists(
        outputs(nodes(project.child)).contains(_))
    }

  /**
   * One number for all leaves that read the same and differ only in the ids of their columns. Files are listed once for
   * each index, so two indexes of one folder may differ. Files of text have none: which rows a scan of CSV or JSON has,
   * and which values, may depend on the columns that it reads, and so do its errors (`mode`).
   */
  private def writeSourceNumber(leaf: LogicalPlan, out: JsonGenerator): Unit = {
    val listing = leaf match {
      case relation: LogicalRelation =>
        relation.relation match {
          case files: HadoopFsRelation if files.fileFormat.isInstanceOf[TextBasedFileFormat] => None
          case files: HadoopFsRelation =>
            listings.putIfAbsent(files.location, listings.size + 1)
            Some(listings.get(files.location).intValue)
          case _ => Some(0)
        }
      case _: CTERelationRef | _: HiveTableRelation => Some(0)
      case _ => None
    }
    for (l <- listing; same <- Support.attempt(Option.empty[LogicalPlan])(Some(leaf.canonicalized)))
      out.writeNumberField("alike", sourceNumbers.getOrElseUpdate((same, l), sourceNumbers.size))
  }

  private def writeNumbers(out: JsonGenerator, field: String, numbers: Iterable[Int]): Unit = {
    out.writeArrayFieldStart(field)
    numbers.foreach(out.writeNumber(_: Int))
    out.writeEndArray()
  }

  /** The null-rejecting conjuncts, if the plan has an outer join. */
  private def writeNullRejecting(out: JsonGenerator): Unit = {
    val hasOuterJoin = nodes.items.exists {
      case join: Join => join.joinType == LeftOuter || join.joinType == RightOuter || join.joinType == FullOuter
      case _ => false
    }
    val conditions = if (!hasOuterJoin) Nil
    else nodes.items.toList.flatMap {
      case filter: Filter => Seq(filter.condition)
      case join: Join => join.condition.toList
      case _ => Nil
    }
    val found = conditions.flatMap(NullRejection.conjuncts).map(c => expressions.number(c) -> c).toMap
    writeNumbers(out, "filtersNull", found.filter(c => NullRejection.rejectsNulls(c._2)).keys.toSeq.sorted)
  }
}
