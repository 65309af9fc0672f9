"""Rows are grouped before they are joined, where that leaves the joins much less to do (eager aggregation).

* `split_functions`: which functions can be computed in two steps, and the first step of each;
* `second_step`: the second one, over the results of groups or over rows that stand for several;
* `candidates`: below which joins of a plan an aggregate may be computed in part, and by which columns;
* `partitioning`: by which columns the rows of a plan are partitioned already;
* `price`: the work with and without the early aggregate;
* `early_plan`: the plan of an aggregate over groups instead of rows;
* `eager_aggregation`: which of them are worth it, and the plan with these.
"""
