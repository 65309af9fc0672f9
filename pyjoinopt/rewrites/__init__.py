"""Our own rewrites, which Spark does not do. They run before join groups are looked for.

Without this room join groups would contain outer joins that filters make redundant, and redundant joins.

* `normalise` runs them, in order.
* `simplify_outer_joins`: null-rejecting predicates, carried down, turn outer joins into inner ones.
  `left_join_to_anti_join`: left joins of which only the rows without a partner are kept.
* `set_operations_to_joins`, `existence_to_semi_joins`: set operations and existence joins become semi and anti joins.
* `extract_common_factors`: conjuncts that all alternatives of an OR share.
* `fuse_aggregates`, `pivot_self_join`, `self_join_to_semi_join`: self-joins that are avoided.
* `fuse_joined_aggregates`, `inner_to_semi_joins`, `top_k_through_joins`: alternatives, which the search decides about.
* `fuse_scalar_subqueries`: runs first, on the whole query; scalar subqueries over one table become one scan.
* `restore_subqueries`: semi joins over sensitive columns become predicates with IN or EXISTS again.
* `inner_join_region`, `plan_equivalence`, `filtered_aggregates`: shared by several of them.

Each of the others removes work, and none adds an operator whose cost would have to be weighed against the joins.
The rewrites that do so come after the orders (`optimizer.eager_aggregation`, `optimizer.prefilter`).

It imports `plan` and `catalyst`.
"""
