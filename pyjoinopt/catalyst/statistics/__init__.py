"""Spark's estimator of rows and sizes, as `spark.sql.cbo.enabled` switches it on (`org.apache.spark.sql.catalyst.plans
.logical.statsEstimation`).

* `column_stat`, `histogram`: what a column holds. `predicate_estimation`, `filter_estimation`, `join_estimation`,
  `operator_estimation`: one operator. `plan_stats_visitor`: a whole plan (`BasicStatsPlanVisitor`).
"""
