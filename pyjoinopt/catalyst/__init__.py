"""Spark's own optimizer, mirrored. Each file is compared with Spark's own object by a test; nothing here is our
decision.

Without this room a report could not show Spark's own plan, and a hint could not be compared with Spark's estimate.

* `rules/`: one Catalyst rule a file, named as Catalyst names it; `registry` has them by name, `spark_batches` the
  batches that `pyjoinopt.rules.trace` runs. `support/` holds what several rules share.
* `statistics/`: Spark's cost-based estimator (`spark.sql.cbo.enabled`).
* `planner/`: JoinSelection, build sides, and the sizes in bytes that Spark plans by.

It imports `plan`, and data types of `estimation`.
"""
