"""Which order.

* `choose_order`: DPhyp, within its budget of pairs; beyond it linearized DP over IKKBZ's order, and greedy.
* `dphyp`, `dphyp_enumerator`: all connected subgraphs and their complements. `pair_budget`: is that affordable?
* `linearized_dp`: the best tree over intervals of one order. `ikkbz`: the best left-deep order. `greedy`: pairs by
  merit.
* `interesting_partitionings`: plans kept for the key by which their result is partitioned. `join_costs`: prices of
  trees. `cross_products`: parts that no predicate connects.
"""
