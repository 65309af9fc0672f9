"""Small tools that know nothing of plans.

* `bitset`: sets of small numbers as the bits of an int. `disjoint_sets`: union-find. `node_memo`: what was worked out
  for an object, by its identity. `warn_once`: one warning a cause and process.

It imports no other room.
"""
