"""Which order.

* `choose_order`: DPhyp within its budget of pairs; beyond it linearized DP over IKKBZ's order, and greedy.
* `dphyp`, `dphyp_enumerator`: all connected subgraphs and their complements. `pair_budget`: the budget, and whether a
  graph can fit it.
* `lookup_joins`: left joins that keep each row once, put on top of the order of all others.
* `linearized_dp`: the best tree over intervals of one linear order. `ikkbz`: the best left-deep order. `greedy`: pairs
  by merit.
* `interesting_partitionings`: plans kept for the key by which their result is partitioned. `join_costs`: costs of joins
  and of orders. `cross_products`: components that no predicate connects.
* `search_context`: what all of them read, and their limits. `deadline`: when they stop.
"""
