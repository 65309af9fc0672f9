"""The way of one plan: rewrite, find groups, choose an order, emit, hint.

* `optimize`: all of it, top to bottom. `plan_statistics`: what is read before a plan is estimated.
* `reorder`: the groups of a plan. `order_group`: one group, from its graph to its best order, without side effects.
  `spark_strategies`: the strategies `heuristic` and `spark`, which order as Catalyst does.
* `group_synopses`: the samples of joins that a group can use. `semi_join_samples`: what samples show of its semi joins.
  `join_rows`: what the plan above a group takes over from the group's estimates.
* `describe_group`: the report of a group. `forecast_operators`: which join operators Spark will choose.
"""
