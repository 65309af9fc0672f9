"""What queries did when they ran, for the next time.

* Row counts: `listener`: Spark's metrics after a run. `match_metrics`: which operator is which join. `fingerprint`: how
  a join group is recognised when it comes again. `learned_rows`: true counts, kept and used.
* Times: `query_shape`: how a query is recognised when it comes again. `planned_query`: what is known of it when it is
  planned. `query_store`: its runs. `compare_runs`: is one plan slower than another one? `guard`: what is done then.
"""
