"""How wide a row of each relation of a join group is: columns that nobody reads are pruned by Spark."""

from __future__ import annotations

from collections.abc import Sequence

from pyjoinopt.estimation.model.relation_statistics import RelationStatistics, row_width
from pyjoinopt.plan.nodes import LogicalPlan


def widths(
    plans: Sequence[LogicalPlan],
    statistics: Sequence[RelationStatistics],
    read: int | None,
) -> list[float]:
    """Bytes that the columns of each relation add to a row of a join.

    Args:
        plans, statistics: of the relations.
        read: attributes that are read by the joins or above them; None for all.
    """
    found = []
    for plan, known in zip(plans, statistics):
        if plan.output:
            output = [a for a in plan.output if read is None or read >> a.bit & 1]
            found.append(row_width(output, known.columns) - 8.0)
        else:
            found.append(max(0.0, known.width - 8.0))
    return found
