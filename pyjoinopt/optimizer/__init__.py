"""The way of one plan: rewrite, find groups, choose an order, emit, hint.

* `optimize`: all of it, top to bottom. `reorder`: the groups of a plan. `spark_strategies`: the strategies `heuristic`
  and `spark`, which order as Catalyst does. `describe_group`: the report of a group. `forecast_operators`:
  which join operators Spark will choose.
"""
