"""Rows of any operator.

* `plan_estimator`: a whole plan, each node once. `operators`: one operator. `join`, `join_domains`: a join outside of
  any group. `selectivity`: which share of rows a predicate keeps; `intervals`: ranges, `like_patterns`: LIKE.
* `filters_above_groups`: filters above GROUP BY and UNION ALL. `runs`: rows that are stored together and share values.
  `value_ranges`: between which numbers the values of an expression lie.
* `unique_keys`: keys that operators keep. `composite_key_rows`: how many values a key of several columns has.
"""
