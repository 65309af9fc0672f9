"""Conditions of lateral joins, which Spark makes ordinary joins of before it moves predicates.

    SELECT * FROM a JOIN LATERAL (SELECT max(v) m FROM b WHERE b.k = a.k) ON 10 / a.y > 2

Catalyst has a node with one child, and the lateral subquery and the condition as its expressions. Spark moves a
conjunct of the condition, or of a filter above, that reads the left side alone into that side.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyjoinopt.plan.expressions import Expression, conjuncts
from pyjoinopt.plan.nodes import Filter, Join, LogicalPlan

LATERAL = "LateralJoin"


def predicates_of(node: LogicalPlan) -> Iterator[Expression]:
    """The conjuncts of a filter's or a join's condition, lateral joins among these; none of other nodes."""
    if isinstance(node, (Filter, Join)):
        yield from conjuncts(node.condition)
    elif node.kind == LATERAL:
        for e in node.expressions:
            yield from conjuncts(e) if e.type == "boolean" else ()
