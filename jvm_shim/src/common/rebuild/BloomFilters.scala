package org.apache.spark.sql.pyjoinopt

import org.apache.spark.sql.catalyst.expressions.{
  Alias,
  BloomFilterMightContain,
  Expression,
  Literal,
  ScalarSubquery,
  XxHash64
}
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateExpression, BloomFilterAggregate, Complete}
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, Filter, LogicalPlan}

/**
 * Rows whose key may be among the keys of another plan, by a Bloom filter: what Spark's InjectRuntimeFilter makes for
 * scans of ten gigabytes.
 *
 *     Filter might_contain((SELECT bloom_filter_agg(xxhash64(key)) FROM keys), xxhash64(column))
 *
 * No key is missed, and of other rows some are kept. Of no keys at all the aggregate is NULL, and no row is kept.
 */
private[pyjoinopt] object BloomFilters {
  private val BitsPerKey = 8L

  /**
   * @param keys a plan with a single column, of the type of `column`
   * @param items how many keys are expected; with more of them the filter keeps more rows than it should
   */
  def filter(child: LogicalPlan, column: Expression, keys: LogicalPlan, items: Long): LogicalPlan = {
    val function =
      new BloomFilterAggregate(new XxHash64(Seq(keys.output.head)), Literal(items), Literal(items * BitsPerKey))
    val built = Alias(AggregateExpression(function, Complete, isDistinct = false), "keys")()
    Filter(
      BloomFilterMightContain(ScalarSubquery(Aggregate(Nil, Seq(built), keys)), new XxHash64(Seq(column))),
      child)
  }
}
