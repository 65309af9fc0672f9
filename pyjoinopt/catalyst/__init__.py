"""Spark's own optimizer, mirrored. Each file is compared with Spark's own object by a test; nothing here is our
decision.

Without this room a report could not say what Spark itself would have done, a hint not what Spark believes of a size.

* `rules/`: one Catalyst rule a file, named as Catalyst names it; `registry` knows them by name, `spark_batches` the
  batches that `pyjoinopt.rules.trace` runs. `support/` holds what several rules share.
* `statistics/`: Spark's cost-based estimator (`spark.sql.cbo.enabled`).
* `planner/`: JoinSelection, build sides, and the sizes in bytes that Spark plans by.

It imports `plan`, and data types of `estimation`.
"""
