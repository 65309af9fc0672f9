package org.apache.spark.sql.pyjoinopt

import java.util.IdentityHashMap

import scala.collection.immutable.BitSet
import scala.collection.mutable

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.exchange.Exchange
import org.apache.spark.sql.execution.metric.SQLMetric

/** An operator of a running plan that joins relations of a group, and the rows that were estimated for it. */
private[pyjoinopt] final case class ExpectedJoin(
    relations: Seq[String],
    estimated: Double,
    counted: SQLMetric,
    operator: SparkPlan)

/**
 * A join group whose rows were estimated, as the worker describes it (`ExpectedGroup.to_dict` in `learned_rows.py`).
 *
 * @param owners column id -> the relation that it comes from, or -1 if there are several
 * @param leaves of each relation, how many it is read from at least
 * @param estimates of sets of relations
 * @param changed whether the query does not run as written
 * @param stored whether there is a store for what its joins count
 */
private[pyjoinopt] final class ExpectedJoins(
    names: IndexedSeq[String],
    val owners: Map[Long, Int],
    leaves: IndexedSeq[Int],
    estimates: Map[BitSet, Double],
    val changed: Boolean,
    val stored: Boolean) {
  import ExpectedJoins.Below

  /**
   * The joins of a plan that have an estimate: the operators that `located` in `match_metrics.py` finds in a plan that
   * has ended. Two of its conditions are not needed for a count that is only compared upwards: a limit, and inputs
   * that were not read, leave too few rows. An exchange is passed over, which may count after the join below it.
   */
  def located(root: SparkPlan): Seq[ExpectedJoin] = {
    val below = new IdentityHashMap[SparkPlan, Below]
    val read = Array.fill(leaves.size)(0)
    val nodes = mutable.ArrayBuffer.empty[SparkPlan]
    Support.postOrder(bare(root))(children, below.containsKey) { node =>
      val inputs = children(node).map(below.get)
      below.put(
        node,
        if (inputs.isEmpty) leaf(node, read)
        else {
          val known = !ExecutedPlan.isReduced(node) && inputs.forall(_.known)
          Below(inputs.map(_.relations).reduce(_ | _), inputs.map(_.leaves).sum, known)
        }
      )
      nodes += node
    }
    val found = mutable.LinkedHashMap.empty[BitSet, (SQLMetric, SparkPlan)]
    for (node <- nodes if !node.isInstanceOf[Exchange]) {
      val inputs = below.get(node)
      val relations = inputs.relations
      // operators above the whole group are no part of it
      if (inputs.known && estimates.contains(relations) && (relations.size < leaves.size || joins(node))) {
        val isWhole = inputs.leaves == relations.toList.map(read(_)).sum && relations.forall(v => read(v) >= leaves(v))
        if (isWhole) node.metrics.get(ExecutedPlan.Rows).foreach(metric => found(relations) = (metric, node))
      }
    }
    found.iterator.map { case (relations, (metric, operator)) =>
      ExpectedJoin(relations.iterator.map(names(_)).toList, estimates(relations), metric, operator)
    }.toList
  }

  private def leaf(node: SparkPlan, read: Array[Int]): Below = {
    val from = node.output.map(attribute => owners.getOrElse(attribute.exprId.id, -1)).distinct
    if (ExecutedPlan.isReduced(node) || from.size != 1 || from.head < 0) Below(BitSet.empty, 1, known = false)
    else {
      read(from.head) += 1
      Below(BitSet(from.head), 1, known = true)
    }
  }

  /** Whether rows of two inputs meet here: in a join, or in the filter over what an existence join has marked. */
  private def joins(node: SparkPlan): Boolean = children(node) match {
    case Seq(below) => Support.className(node) == "FilterExec" && ExecutedPlan.marks(below)
    case Seq(_, _) =>
      val name = Support.className(node)
      (name.contains("Join") || name.contains("Product")) && !ExecutedPlan.marks(node)
    case _ => false
  }

  private def children(node: SparkPlan): Seq[SparkPlan] = node.children.map(bare)

  private def bare(node: SparkPlan): SparkPlan = ExecutedPlan.bare(node, running = true)
}

private[pyjoinopt] object ExpectedJoins {

  /** What is below an operator; `known` if these relations are all there is. */
  private final case class Below(relations: BitSet, leaves: Int, known: Boolean)

  def of(groups: JsonNode, changed: Boolean, stored: Boolean): Seq[ExpectedJoins] = elements(groups).map { group =>
    val columns = elements(group.path("columns")).map(_.asLong)
    val estimates = elements(group.path("joins")).map { join =>
      BitSet(elements(join.path("of")).map(_.asInt): _*) -> join.path("rows").asDouble
    }
    new ExpectedJoins(
      elements(group.path("names")).map(_.asText),
      columns.zip(elements(group.path("owners")).map(_.asInt)).toMap,
      elements(group.path("leaves")).map(_.asInt),
      estimates.toMap,
      changed,
      stored
    )
  }

  /** Those that share no column with another one: groups of a query that do cannot be distinguished. */
  def distinguished(groups: Seq[ExpectedJoins]): Seq[ExpectedJoins] = {
    val readers = groups.flatMap(_.owners.keys).groupBy(identity).map { case (column, all) => column -> all.size }
    groups.filter(_.owners.keys.forall(readers(_) == 1))
  }

  private def elements(node: JsonNode): IndexedSeq[JsonNode] = (0 until node.size).map(node.get(_))
}
