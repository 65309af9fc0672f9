"""What is legal: a join group as a hypergraph.

* `hypergraph`: vertices (relations) and edges (predicates). `build_hypergraph`: from a group.
* `eligibility`: the total eligibility sets (TES) of every join that is no inner join. `algebra`: which pairs of joins
  are associative and asscom, and under which conditions.
* `fallible_predicates`: co-requirements of a predicate that may throw. `transitive_equalities`:
  equalities that follow. `canonical_order`: one order of vertices, however the query is written.
"""
