"""Hints: which strategy and build side a join gets where Spark by itself would choose badly.

* `buildable_sides`: what may be built of a set of relations. `choose_hint`: the hint for one join. `apply_hints`: into
  a plan. `memory_limits`: how much a broadcast may take.
"""
