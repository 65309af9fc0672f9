"""Which relations a predicate that may throw needs together.

In ANSI mode an expression may throw on a row that another join would have removed. Spark computes both sides of an
equi-join key for all rows of the join's sides. In the written order these were the rows of certain joins; an order that
has the same sides together evaluates the key for no other row. Any other predicate is evaluated for the rows that have
all its columns.

    a JOIN b JOIN c ON b.y = c.y WHERE 10 / b.y > a.x

Spark also infers such a predicate for equal columns: from `10 / b.y > a.x` and `b.y = c.y` it infers `10 / c.y > a.x`,
and pushes that to where it finds the columns of `a` and `c`. So these sets count, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import or_

from pyjoinopt.joins.groups.join_group import Conjunct
from pyjoinopt.joins.join_tree import JoinTree
from pyjoinopt.plan import limits
from pyjoinopt.plan.expressions import Expression, conjuncts
from pyjoinopt.plan.fallible import fallibility
from pyjoinopt.util.bitset import members
from pyjoinopt.util.disjoint_sets import DisjointSets

#: More sets than this are not told one by one.
_MOST = limits.SUBSTITUTION_SETS
#: Of an equality: for each side the vertices that it reads, and the expression.
Keys = tuple[tuple[int, Expression], tuple[int, Expression]]


def equated_vertices(written: Iterable[Conjunct], owner: dict[int, int]) -> dict[int, int]:
    """Column -> the vertices of all columns that are set equal to it, its own among them, directly or by others."""
    equal = DisjointSets[int]()
    for e in (e for conjunct in written for e in conjuncts(conjunct.predicate)):
        if e.kind in ("EqualTo", "EqualNullSafe") and all(child.kind == "AttributeReference" for child in e.children):
            equal.union(*map(_bit, e.children))
    found: dict[int, int] = {}
    for columns in equal.groups():
        found |= dict.fromkeys(columns, reduce(or_, (owner.get(column, 0) for column in columns)))
    return found


def substitution_sets(predicate: Expression, equals: dict[int, int], owner: dict[int, int]) -> list[int]:
    """The sets of vertices on which Spark may say a predicate that joins no keys: one for each column that it reads.

    Args:
        predicate: what is said.
        equals: see `equated_vertices`.
        owner: column -> its vertex.

    Returns:
        Sets; the empty one alone, which every set of vertices includes, if there are too many to tell.
    """
    sets = {0}
    for bit in members(predicate.references):
        has_it = list(members(equals.get(bit, owner.get(bit, 0))))
        if len(sets) * len(has_it) > _MOST:
            return [0]
        sets = {known | 1 << vertex for known in sets for vertex in has_it} if has_it else sets
    return sorted(sets)


def is_equi_key(keys: Keys | None, lowest: JoinTree) -> bool:
    """True if each side of an equality reads one half of a join: else it is tested pair by pair."""
    halves = [half.relations for half in (lowest.left, lowest.right) if half is not None]
    return keys is not None and all(sum(bool(reads & half) for half in halves) == 1 for reads, _ in keys)


def co_required_by_keys(keys: Keys | None, lowest: JoinTree, equals: dict[int, int]) -> tuple[tuple[int, int], ...]:
    """What keeps the sides of an equality that may fail from being computed for rows that they do not meet as written.

    From `int(at) = bk` and `bk = dk` Spark infers `int(at) = dk`, and moves that to where it finds both: what a side is
    set equal to counts as the side itself.

    Args:
        keys: of the equality.
        lowest: the smallest part of the written order that has all it reads.
        equals: see `equated_vertices`.
    """
    if keys is None or lowest.left is None or lowest.right is None:
        return ()
    sides = lowest.left.relations, lowest.right.relations
    found = [(reads, lowest.relations) for reads, _ in keys if reads & sides[0] and reads & sides[1]]
    if found:  # it is no key of this join, but tested pair by pair
        return tuple(found)
    for (reads, e), (others, other) in (keys, keys[::-1]):
        if fallibility.may_throw(e):
            side = sides[0] if reads & sides[0] else sides[1]
            meets = {others, *(1 << vertex for vertex in members(_copies(other, equals) & ~side))}
            strangers = _copies(e, equals) & ~side
            found += [(met | 1 << vertex, side) for met in meets for vertex in members(side)]
            found += [(met | 1 << vertex, lowest.relations) for met in meets for vertex in members(strangers)]
    return tuple(found)


def _copies(e: Expression, equals: dict[int, int]) -> int:
    """The vertices that have a column equal to one that an expression reads."""
    return reduce(or_, (equals.get(bit, 0) for bit in members(e.references)), 0)


def _bit(column: Expression) -> int:
    assert column.attribute is not None
    return column.attribute.bit
