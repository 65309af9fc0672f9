"""How wide a row of each relation of a join group is: columns that nobody reads are pruned by Spark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyjoinopt.plan.expressions import Expression
from pyjoinopt.plan.nodes import LogicalPlan
from pyjoinopt.statistics.relation import RelationStatistics, row_width


def widths(
    plans: Sequence[LogicalPlan],
    predicates: Iterable[Expression],
    statistics: Sequence[RelationStatistics],
    needed: int | None,
) -> list[float]:
    """Bytes that the columns of each relation add to a row of a join.

    Args:
        plans, statistics: of the relations.
        predicates: of the joins; they read columns, too.
        needed: attributes that are read above the group; None for all.
    """
    if needed is not None:
        for predicate in predicates:
            needed |= predicate.references
    found = []
    for plan, known in zip(plans, statistics):
        if plan.output:
            output = [a for a in plan.output if needed is None or needed >> a.bit & 1]
            found.append(row_width(output, known.columns) - 8.0)
        else:
            found.append(max(0.0, known.width - 8.0))
    return found
