"""What is known of relations and columns, and how predicates are read.

* `relation_statistics`: rows, bytes, columns, proven bounds. `histogram`, `most_common_values`: of one column.
* `assumptions`: every default share and floor of the estimator, with its source.
* `comparisons`: comparisons of a column with a constant. `literals`: constants as numbers. `monotone_functions`: ranges
  through functions that keep the order of values.
"""
