"""Caps on how large expressions and sets of predicates may grow, so that planning time is bounded.

Sizes are counted in expression nodes. Inlining definitions can double an expression with every level
(`x = x + x`, fifty times), and equalities imply quadratically many others; beyond a cap the plan is left as it is,
which is always correct.
"""

from __future__ import annotations

# -- sizes of one expression, in nodes ---------------------------------------------------------------------------

#: A predicate whose aliases are replaced by their definitions, in reimplementations of Catalyst's rules that must
#: give Catalyst's very plan. (Catalyst has no cap of its own.)
PREDICATE_AS_CATALYST = 400
#: The same where Catalyst's very plan is not needed: a tower of n filters, each over a column made of the one below,
#: costs n predicates times their length.
PREDICATE = 80
#: A predicate after BETWEEN and other common expressions are inlined.
COMMON_EXPRESSIONS = 2000
#: The definition of a column over the columns of leaves, for samples and keys.
COLUMN_DEFINITION = 500
#: A predicate of a join group into which deferred columns are inlined.
DEFERRED_COLUMN = 400
#: All predicates of a join group into which deferred columns are inlined, together.
DEFERRED_COLUMNS = 2000
#: Operands of a chain of AND, OR, + or * that is compared in any order.
CHAIN = 64
#: Depth of an expression whose key is structural; deeper ones are equal only to themselves.
KEY_DEPTH = 100
#: Depth to which operands are examined for their ranges and divisors.
OPERAND_DEPTH = 16

# -- numbers of predicates ---------------------------------------------------------------------------------------

#: Constraints of a node, beyond which no others are inferred (`plan.facts.constraints`). No TPC query comes near
#: it.
CONSTRAINTS = 200
#: The same in the reimplementation of InferFiltersFromConstraints, so that it gives Catalyst's plan for longer.
CONSTRAINTS_AS_CATALYST = 400
#: Columns of one equality class whose implied equalities are added to a join graph.
EQUAL_COLUMNS = 100
#: Implied equalities of a join graph.
IMPLIED_EQUALITIES = 10_000
#: Substitution sets of a predicate that can throw.
SUBSTITUTION_SETS = 200
#: Filters that a join group's equality classes propagate.
PROPAGATED_FILTERS = 200
