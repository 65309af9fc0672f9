"""Join groups: joins that may change places, and the best order for them.

Without this room joins run as they are written. Inner joins may be ordered freely; outer, semi and anti joins only as
far as NULLs allow, and predicates that may throw only behind the filters that protect them.

* `groups/` decides what may be ordered together, and what separates two groups.
* `graph/` decides what is legal: the group as a hypergraph, its edges with the total eligibility sets of their sides.
* `cardinality/` estimates the rows of any set of relations.
* `search/` finds the cheapest legal order: DPhyp, linearized DP, greedy.
* `emit/` makes a plan of the order.
* `join_tree`: a binary tree over relations.

It imports `plan`, `estimation` and `cost`.
"""
