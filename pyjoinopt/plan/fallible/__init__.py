"""Which expressions may throw at run time. One that may throw must see no row that the written query keeps from it.

* `fallibility`: may an expression throw, may it move?
* `nonzero_divisors`, `value_ranges`, `window_ranks`: proofs that it cannot.
"""
