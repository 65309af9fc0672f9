"""Our rewrites, which no Spark does. They run before join groups are looked for.

Without this room a group would have outer joins that filters make needless, and joins that nobody needs at all.

* `normalise` runs them, in order.
* `simplify_outer_joins`: null-rejecting predicates, carried down, turn outer joins into inner ones.
  `left_join_to_anti_join`: a left join of which only the rows without a partner are kept.
* `set_operations_to_joins`, `existence_to_semi_joins`: what a join group can take in becomes a join.
* `extract_common_factors`: what all alternatives of an OR demand.
* `fuse_aggregates`, `pivot_self_join`, `self_join_to_semi_join`: joins of a relation with itself that are avoided.
* `restore_subqueries`: semi joins over sensitive columns become predicates with IN or EXISTS again.
* `inner_join_region`, `plan_equivalence`: what several of them share.

It imports `plan` and `catalyst`.
"""
