"""Spark's physical choice of joins (`JoinSelection`), and the sizes it rests on.

* `join_selection`: which strategy. `build_side`: which side is the build side. `equi_keys`, `key_types`: by which keys.
* `size_in_bytes`: Spark's belief of a size (`SizeInBytesOnlyStatsPlanVisitor`). `distinct_keys`: `DistinctKeyVisitor`.
"""
