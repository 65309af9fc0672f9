"""What may be ordered together.

* `find_groups`: the groups of a plan. `join_group`: a group, with its inputs and conjuncts. `merge_groups`: groups
  under groups. `barriers`: operators that no join is moved through.
* `eliminate_joins`: left joins that nobody reads, semi joins that are equivalent to inner ones.
* `rank_predicates`: comparisons of row numbers that cannot overflow.
"""
