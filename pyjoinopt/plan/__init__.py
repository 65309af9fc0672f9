"""The mirror of a Catalyst plan, and what follows from the plan alone.

Without this room every other one would read py4j objects, a call to the JVM for each attribute.

* `expressions`, `nodes`: immutable expressions and operators; sets of columns and of relations are bits of an int.
* `traversal`: walks without recursion, rewriting, fixed points. `constructors`: new columns, literals and operators.
* `facts/`: what holds for every row of a plan. `fallible/`: which expressions may throw, and so may not move.
* `operator_kinds`: what an operator does to the rows of its child, in one table.
* `equi_keys`: equalities of a condition, and which are keys of a join.
* `info_keys`: the meaning of `LogicalPlan.info` and `Expression.info`.
* `rewritten`: a plan with the notes of a rewrite.
* `limits`: caps of expression sizes. `spark_defaults`: defaults of Spark's settings.
* `common_expressions`, `outer_references`, `required_columns`, `leaves`, `relation_names`, `digest`, `format`.

It imports no other room.
"""
