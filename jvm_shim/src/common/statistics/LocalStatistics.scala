package org.apache.spark.sql.pyjoinopt

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation
import org.apache.spark.sql.types.{AtomicType, BinaryType}

/**
 * The statistics of a LocalRelation, whose rows are part of the plan: they are counted.
 *
 * Law: if it has more than `MaxValues` values, only its rows are counted.
 */
private[pyjoinopt] object LocalStatistics {
  private val MaxValues = 100000L

  def of(relation: LocalRelation): NodeFacts = {
    val rows = relation.data.length
    val columns =
      if (rows.toLong * relation.output.length > MaxValues) Nil
      else relation.output.zipWithIndex.toList.collect {
        case (attribute, i) if attribute.dataType.isInstanceOf[AtomicType] && attribute.dataType != BinaryType =>
          attribute -> column(relation, attribute, i)
      }
    NodeFacts(Some(rows.toDouble), Some(relation.computeStats().sizeInBytes.toDouble), "local", exact = true, columns)
  }

  private def column(relation: LocalRelation, attribute: Attribute, position: Int): ColumnFacts = {
    val counts = new mutable.HashMap[Any, Int]
    var nulls = 0L
    relation.data.foreach { row =>
      if (row.isNullAt(position)) nulls += 1
      else {
        val value = row.get(position, attribute.dataType)
        counts.put(value, counts.getOrElse(value, 0) + 1)
      }
    }
    val bounds = counts.keys.toList.map(NodeFacts.bound)
    def extreme(upper: Boolean) = if (bounds.isEmpty) None else bounds.reduce(NodeFacts.extreme(_, _, upper))
    val most = if (SampledColumn.hasPlainEquality(attribute.dataType))
      Some(counts.values.foldLeft(0)(math.max(_, _)).toDouble)
    else None
    ColumnFacts(
      Some(counts.size.toDouble),
      extreme(upper = false),
      extreme(upper = true),
      Some(nulls.toDouble),
      most = most)
  }
}
