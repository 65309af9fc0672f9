"""Rows of any set of relations of a group.

* `estimator`: the estimate, the same for every order. `graph_model`: what relations, classes of equal columns and
  predicates contribute to it. `log_cardinality`: sums of logarithms.
* `composite_keys`: keys of several columns. `outer_joins`: rows that outer joins keep. `null_keys`: rows whose key is
  NULL.
* `upper_bounds`: proven bounds. `row_widths`: bytes of a row.
"""
