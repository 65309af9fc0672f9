"""What a query counted when it ran, for the next time.

* `listener`: Spark's metrics after a run. `match_metrics`: which operator is which join. `fingerprint`: how a join
  group is recognised when it comes again. `learned_rows`: true counts, kept and used.
"""
