"""Between which numbers the values of an expression lie, by interval arithmetic over the ranges of its columns.

    SELECT customer, sum(list_price - discount) AS paid FROM sales GROUP BY customer HAVING sum(...) > 0

Footers give the smallest and the largest price and discount, so that the average payment can be guessed, and the sum of
a group's payments. Most sums are positive, then: not a third of them, which would be assumed of an unknown column.
"""

from __future__ import annotations

import math

from pyjoinopt.estimation.model.literals import column_of, constant_value
from pyjoinopt.estimation.model.relation_statistics import ColumnStatistics, RelationStatistics
from pyjoinopt.plan.expressions import Expression

Range = tuple[float, float]
_SAME = frozenset({"Alias", "Cast", "UpCast", "CheckOverflow", "PromotePrecision", "KnownNotNull"})
_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")


def sum_statistics(e: Expression, child: RelationStatistics, groups: float) -> ColumnStatistics | None:
    """What is known of a sum over the rows of a group; None if it need not be positive.

    Args:
        e: what is added up.
        child: the rows.
        groups: how many groups they make.
    """
    values = value_range(e, child)
    if values is None:
        return None
    mean = sum(values) / 2.0 * child.rows / max(1.0, groups)
    return ColumnStatistics(mean=max(1.0, mean)) if 0.0 < mean < math.inf else None


def value_range(e: Expression, relation: RelationStatistics) -> Range | None:
    """The smallest and the largest number that an expression may be, NULL aside; None if that is not known.

    >>> from pyjoinopt.plan.expressions import Attribute, literal, reference
    >>> columns = {0: ColumnStatistics(min=0, max=9), 1: ColumnStatistics(min=1, max=2)}
    >>> rows = RelationStatistics(9.0, 72.0, columns=columns)
    >>> a, b = (reference(Attribute(i, i, "ab"[i], "int")) for i in (0, 1))
    >>> difference = Expression("Subtract", (a, b), "int")
    >>> value_range(Expression("Multiply", (difference, literal(2, "int")), "int"), rows)
    (-4.0, 16.0)
    """
    if not e.type.startswith(_NUMBERS):
        return None
    column = column_of(e)
    if column is not None:
        known = relation.column(column.bit)
        return None if known.min is None or known.max is None else (float(known.min), float(known.max))
    if not e.references:
        value = constant_value(e)
        return None if value is None else (value, value)
    operands = [value_range(operand, relation) for operand in e.children]
    ranges = [found for found in operands if found is not None]
    return _combined(e.kind, ranges) if ranges and len(ranges) == len(operands) else None


def _combined(kind: str, ranges: list[Range]) -> Range | None:
    (low, high), last = ranges[0], ranges[-1]
    if len(ranges) == 1:
        return (low, high) if kind in _SAME else (-high, -low) if kind == "UnaryMinus" else None
    if kind == "Coalesce":
        return min(found[0] for found in ranges), max(found[1] for found in ranges)
    if len(ranges) > 2:
        return None
    if kind == "Add":
        return low + last[0], high + last[1]
    if kind == "Subtract":
        return low - last[1], high - last[0]
    if kind == "Multiply":
        ends = [x * y for x in (low, high) for y in last]
        return min(ends), max(ends)
    if kind == "Divide" and last[0] == last[1] != 0.0:
        ends = [low / last[0], high / last[0]]
        return min(ends), max(ends)
    return None
