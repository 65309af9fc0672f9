"""What may be ordered together.

* `find_groups`: the groups of a plan, and the operators at which one ends. `join_group`: a group, with its inputs and
  conjuncts. `open_group`: a group that the walk may still extend. `merge_groups`: groups under groups.
  `barriers`: what separates the joins of a plan, for a report that has no other reason.
* `eliminate_joins`: left joins that nobody reads, semi joins that are equivalent to inner ones.
* `rank_predicates`: comparisons of row numbers that cannot overflow.
"""
