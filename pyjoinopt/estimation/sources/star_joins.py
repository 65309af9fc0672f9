"""Which relations of a plan refer to the keys of small ones, directly or through others.

A *star* is a relation and the small relations whose keys its columns are compared with, its dimensions. A dimension may
have dimensions of its own:

    sales JOIN customers ON s_customer = c_id JOIN cities ON c_city = y_id WHERE y_country = 'FR'

Rows of `sales` are sampled and joined with all customers and cities in the JVM (`SampleJoins`), so that the share of
sales to French cities is seen, whatever the filters have to do with each other and with the references. Whether a
column is a key is known once all rows of its relation are there.

Stars are sampled if a dimension is filtered, or if the relation is compared with texts of a tiny one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from pyjoinopt.estimation.model.literals import column_of
from pyjoinopt.plan.equi_keys import equalities
from pyjoinopt.plan.expressions import Attribute, Expression
from pyjoinopt.plan.nodes import INNER, Join, LogicalPlan

#: [rows] Larger relations are not read whole; about the days of three hundred years, or the customers of a scale-1
#: TPC-DS. `SampleAnswers` has the same limit.
SMALL = 131072
#: [rows] Dimensions up to this are read even if nothing filters them, for partners that are missing.
TINY = 4096
#: References between the centre and a dimension: regions of the nations of the customers of orders are four away. In a
#: long chain, each relation would otherwise be joined with all that follow.
_DEEPEST = 4


class LeafEquality(NamedTuple):
    """An equality of columns of two leaves that a join tests."""

    one: Attribute
    other: Attribute


class Dimension(NamedTuple):
    """A small relation that another one of the star refers to.

    Attributes:
        leaf: the relation.
        of: the place among the star's dimensions of the relation that refers to it; -1 for the centre.
        columns: the referring columns.
        key: what each of them is compared with.
    """

    leaf: LogicalPlan
    of: int
    columns: tuple[Attribute, ...]
    key: tuple[Attribute, ...]


@dataclass(frozen=True)
class Star:
    """A relation with its dimensions; each follows the one that refers to it."""

    center: LogicalPlan
    dimensions: tuple[Dimension, ...]

    @cached_property
    def columns(self) -> Mapping[int, int]:
        """Number of each leaf -> the columns that are needed of it, as an attribute mask."""
        leaves = [self.center, *(d.leaf for d in self.dimensions)]
        found = {_number(leaf): 0 for leaf in leaves}
        for d in self.dimensions:
            for leaf, columns in ((leaves[d.of + 1], d.columns), (d.leaf, d.key)):
                for column in columns:
                    found[_number(leaf)] |= column.mask
        return found


def leaf_equalities(
    nodes: Iterable[LogicalPlan],
    meaning: Callable[[Expression], Expression],
    join_types: Collection[str] = frozenset({INNER}),
) -> list[LeafEquality]:
    """The equalities that joins of a plan test.

    Args:
        nodes: of the plan.
        meaning: an expression -> the same over columns of leaves.
        join_types: of the joins.
    """
    found = []
    for node in nodes:
        if isinstance(node, Join) and node.join_type in join_types:
            for left, right, null_safe in equalities(node.condition):
                one, other = column_of(meaning(left)), column_of(meaning(right))
                if one is not None and other is not None and not null_safe:
                    found.append(LeafEquality(one, other))
    return found


def find_stars(
    leaves: Sequence[LogicalPlan],
    compared: Iterable[LeafEquality],
    filtered: Callable[[LogicalPlan], bool],
    rows: Callable[[LogicalPlan], float],
) -> list[Star]:
    """The stars of a plan in which something is filtered, or compared with texts of a tiny relation.

    Args:
        leaves: those that can be sampled.
        compared: equalities of their columns.
        filtered: whether a leaf has a filter, or a column that a semi join compares.
        rows: of a leaf, without filters.
    """
    owner = {a.bit: leaf for leaf in leaves for a in leaf.output}
    pairs: dict[tuple[int, int], list[tuple[Attribute, Attribute]]] = {}
    for equality in dict.fromkeys(compared):
        for column, key in ((equality.one, equality.other), (equality.other, equality.one)):
            left, right = owner.get(column.bit), owner.get(key.bit)
            if left is None or right is None or left is right:
                continue
            if rows(right) <= SMALL:
                pairs.setdefault((_number(left), _number(right)), []).append((column, key))
    by_number = {_number(leaf): leaf for leaf in leaves}
    refers: dict[int, list[_Reference]] = {}
    for (left_number, right_number), both in pairs.items():
        columns, key_columns = zip(*dict.fromkeys(both))
        refers.setdefault(left_number, []).append(_Reference(by_number[right_number], columns, key_columns))
    stars = []
    for center in leaves:
        found = _reached(center, refers)
        kept = _worthwhile(found, filtered, rows)
        if kept:
            stars.append(Star(center, kept))
    return stars


class _Reference(NamedTuple):
    """A relation, the columns that refer to it, and what each is compared with."""

    leaf: LogicalPlan
    columns: tuple[Attribute, ...]
    key: tuple[Attribute, ...]


def _reached(center: LogicalPlan, refers: dict[int, list[_Reference]]) -> list[Dimension]:
    """All that a relation refers to, directly or through a few others; the nearest first."""
    found: list[Dimension] = []
    seen = {_number(center)}
    waiting = deque([(-1, center, 1)])
    while waiting:
        at, leaf, depth = waiting.popleft()
        for right, columns, key in refers.get(_number(leaf), ()):
            if _number(right) not in seen:
                seen.add(_number(right))
                found.append(Dimension(right, at, columns, key))
                if depth < _DEEPEST:
                    waiting.append((len(found) - 1, right, depth + 1))
    return found


def _worthwhile(
    found: Sequence[Dimension], filtered: Callable[[LogicalPlan], bool], rows: Callable[[LogicalPlan], float]
) -> tuple[Dimension, ...]:
    """The dimensions that are filtered, those on the way to them, and tiny ones; none if nothing is filtered.

    Tiny ones count as filtered if the centre is compared with their texts.
    """
    wanted = [filtered(d.leaf) or d.of < 0 and _is_compared_by_text(d, rows) for d in found]
    if not any(wanted):
        return ()
    for i in reversed(range(len(found))):
        if wanted[i] and found[i].of >= 0:
            wanted[found[i].of] = True
    wanted = [one or rows(d.leaf) <= TINY and (d.of < 0 or wanted[d.of]) for one, d in zip(wanted, found)]
    place = {-1: -1}
    kept: list[Dimension] = []
    for i, d in enumerate(found):
        if wanted[i] and d.of in place:
            place[i] = len(kept)
            kept.append(d if place[d.of] == d.of else d._replace(of=place[d.of]))
    return tuple(kept)


def _is_compared_by_text(dimension: Dimension, rows: Callable[[LogicalPlan], float]) -> bool:
    """Whether only a sample can show which rows have a partner among the few of a relation.

        SELECT * FROM customers JOIN stores ON c_county = s_county

    Of numbers and dates, footers show where the values lie. Of texts they show nothing, and so the counties of all
    customers would be taken for those of the few stores.
    """
    return rows(dimension.leaf) <= TINY and any(column.type == "string" for column in dimension.key)


def _number(leaf: LogicalPlan) -> int:
    return leaf.number if leaf.number is not None else -1
