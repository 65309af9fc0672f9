"""Columns of which it is proved that no two rows share all values, followed through the operators of a plan.

Groups of an aggregate, rows of a DISTINCT, local rows that were counted: what `RelationStatistics.keys` holds. They
survive whatever only drops rows. A join whose other side is unique on what it is compared by repeats no row, so the
keys of this side are kept, and this side's bound is a bound of the result. Where all rows were counted, it is known how
many of them share a value at most: a row of the other side has no more matches than that.

Statistics of files suggest a likely key, but prove none; `ColumnStatistics.key_values` is for those.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import reduce
from operator import or_

from pyjoinopt.estimation.model.relation_statistics import RelationStatistics
from pyjoinopt.plan.equi_keys import hash_keys
from pyjoinopt.plan.expressions import Attribute, Expression
from pyjoinopt.plan.facts.distinct_keys import joined_keys
from pyjoinopt.plan.nodes import INNER, LEFT, RIGHT, Aggregate, Join
from pyjoinopt.util.bitset import singletons


def group_key(node: Aggregate) -> frozenset[int]:
    """The grouping columns, if the result has them all."""
    given = {e.children[0].key if e.kind == "Alias" else e.key: a for e, a in zip(node.aggregates, node.output)}
    columns = [given.get(e.key) for e in node.grouping]
    if not columns or None in columns:
        return frozenset()
    return frozenset({reduce(or_, (a.mask for a in columns if a is not None))})


def keys_under(child: RelationStatistics, listed: Iterable[tuple[Expression, Attribute]]) -> frozenset[int]:
    """The child's keys, by the names that a list of columns and aliases gives them."""
    if not child.keys:
        return frozenset()
    names: dict[int, int] = {}
    for e, attribute in listed:
        inner = plain_column(e.children[0] if e.kind == "Alias" and e.children else e)
        if inner is not None:
            names.setdefault(inner.mask, attribute.mask)
    return renamed_keys(child.keys, names)


def renamed_keys(keys: Iterable[int], names: Mapping[int, int]) -> frozenset[int]:
    """Keys of which all columns have a new name (both as bits).

    >>> renamed_keys({0b11, 0b100}, {0b1: 0b1000, 0b10: 0b10}) == frozenset({0b1010})
    True
    """
    found = set()
    for key in keys:
        renamed = 0
        for column in singletons(key):
            if column not in names:
                break
            renamed |= names[column]
        else:
            found.add(renamed)
    return frozenset(found)


def plain_column(e: Expression) -> Attribute | None:
    """The attribute that an expression is, without a cast: casts may make two values one."""
    return e.attribute if e.kind == "AttributeReference" else None


def plain_mask(expressions: Iterable[Expression]) -> int:
    """Those of some expressions that are plain columns, as bits."""
    return reduce(or_, (a.mask for a in map(plain_column, expressions) if a is not None), 0)


def of_join(
    node: Join, left: RelationStatistics, right: RelationStatistics
) -> tuple[frozenset[int], tuple[float, float]]:
    """The keys of a join's result, and of how many of its rows a row of the left and of the right side is part at most.

    Args:
        node: the join; semi and anti joins keep what the left side has, and are not passed here.
        left, right: what is known of its sides.

    Returns:
        The keys, and two factors: the result has at most so many rows for each of the left, and of the right side;
        infinite where that is not known, or where the result has rows without one of that side.
    """
    if not (left.keys or right.keys or left.max_rows_per_value or right.max_rows_per_value):
        return frozenset(), (math.inf, math.inf)
    of_left, of_right = _compared(node)
    left_unique, right_unique = left.is_unique(of_left), right.is_unique(of_right)
    of_left_row = min(1.0 if right_unique else math.inf, most_met(right, of_right))
    of_right_row = min(1.0 if left_unique else math.inf, most_met(left, of_left))
    if node.join_type == LEFT:
        of_left_row, of_right_row = max(1.0, of_left_row), math.inf
    elif node.join_type == RIGHT:
        of_left_row, of_right_row = math.inf, max(1.0, of_right_row)
    elif node.join_type != INNER:
        of_left_row = of_right_row = math.inf
    keys = joined_keys(node.join_type, left.keys, right.keys, left_unique, right_unique)
    return keys, (of_left_row, of_right_row)


def most_met(known: RelationStatistics, columns: int) -> float:
    """Rows of a relation that share the values of some columns (as bits), at most; infinite if nothing is proved.

    >>> counted = RelationStatistics(9.0, 72.0, max_rows_per_value={0: 3.0, 1: 2.0})
    >>> most_met(counted, 0b1), most_met(counted, 0b100)
    (3.0, inf)
    """
    return min((count for bit, count in known.max_rows_per_value.items() if columns >> bit & 1), default=math.inf)


def times(a: float, b: float) -> float:
    """A product in which 0 times anything is 0."""
    return 0.0 if a == 0 or b == 0 else a * b


def _compared(node: Join) -> tuple[int, int]:
    """The columns of either side that are equal to an expression over the other one, NULLs never."""
    keys = hash_keys(node)
    return plain_mask(left for left, _ in keys), plain_mask(right for _, right in keys)
