"""From an order to a plan.

* `emit_plan`: joins. `join_predicates`: what each of them evaluates. `transitive_filters`: filters that follow for the
  other side of an equality.
* `pinned_semi_joins`: semi joins that Spark must not push down again. `original_joins`: joins that keep their place,
  and their estimates. `unchanged_order`: why nothing changed.
"""
