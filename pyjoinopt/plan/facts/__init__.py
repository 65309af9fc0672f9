"""What holds for every row that a plan gives, whatever the data.

* `constraints`, `inference`: predicates that hold above an operator, and what follows from them (Catalyst's constraint
  propagation). `or_extraction`: what an OR implies for one relation. `max_rows`: a bound on rows (Catalyst's
  `maxRows`).
* `distinct_keys`: column sets without two equal rows (`DistinctKeyVisitor`). `never_null`: columns without NULL.
* `null_rejection`: which predicates are null-rejecting, by the outcomes that a predicate may have over NULLs.
* `value_numbers`: equal expressions have one number. `constant_values`: expressions that Catalyst has evaluated.
* `equality_substitution`: where one of two equal columns may replace the other.
"""
