"""Between which numbers the values of a plan's columns lie, as far as the files that it reads prove it.

    SELECT i.name, avg(v.quantity) FROM inventory v JOIN item i ON i.id = v.item GROUP BY i.name

By its type a quantity could be two billions, and the sum of eleven million of them too large to be exact. By the
footers of the files it is a thousand at most. Filters, joins, new names and the copies of rows for ROLLUP leave values
as they are, or make NULLs of them, so the bounds of a leaf hold for its columns above these. They do not above a UNION
ALL, whose columns are those of its first branch by name alone, nor for a common table expression, which may be one.
"""

from __future__ import annotations

from fractions import Fraction

from pyjoinopt.estimation.model.relation_statistics import StatisticsOf
from pyjoinopt.plan.expressions import Expression
from pyjoinopt.plan.fallible.value_ranges import Range
from pyjoinopt.plan.nodes import Filter, Join, LogicalPlan, Project
from pyjoinopt.plan.operator_kinds import is_only_a_name

#: Bounds of decimals arrive as floating-point numbers, which are rounded by less than this share of them.
_ROUNDED = Fraction(1, 2**50)


def value_bounds(plan: LogicalPlan, estimate: StatisticsOf) -> dict[int, Range]:
    """Column -> the range of its values, for columns of a plan of which that is proved."""
    found: dict[int, Range] = {}
    aliases: list[tuple[int, Expression]] = []  # from the top down
    stack = [plan]
    while stack:
        node = stack.pop()
        if not node.children and node.number is not None and node.kind != "CTERelationRef":
            found.update({bit: _range(*bounds) for bit, bounds in estimate(node).value_bounds.items()})
        elif not node.cached and (_keeps_values(node) or is_only_a_name(node)):
            if isinstance(node, Project):
                listed = zip(node.projections, node.output, strict=True)
                aliases += [(a.bit, e.children[0]) for e, a in listed if e.kind == "Alias"]
            stack += node.children
    for bit, named in reversed(aliases):
        known = found.get(named.attribute.bit) if named.attribute is not None else None
        if known is not None:
            found[bit] = known
        else:
            found.pop(bit, None)
    return found


def _keeps_values(node: LogicalPlan) -> bool:
    return isinstance(node, (Filter, Join, Project)) or node.kind == "Expand"


def _range(low: float, high: float) -> Range:
    return Range(_widened(low, -1), _widened(high, 1))


def _widened(bound: float, direction: int) -> Fraction:
    exact = Fraction(bound)
    return exact if isinstance(bound, int) else exact + direction * abs(exact) * _ROUNDED
