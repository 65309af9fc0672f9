"""Equalities that may fail, as keys of joins: in ANSI mode a cast can fail on a row that another join takes away.

Spark computes both sides of an equality for all rows of its join's sides. As written, those were the rows of certain
joins; an order that has the same sides together meets no other row.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import or_

from pyjoinopt.joins.graph import vertices
from pyjoinopt.joins.region import Conjunct, bits
from pyjoinopt.joins.tree import JoinTree
from pyjoinopt.plan import safety
from pyjoinopt.plan.expressions import Expression, conjuncts

#: Of an equality: for each side the vertices that it reads, and the expression.
Keys = tuple[tuple[int, Expression], tuple[int, Expression]]


def set_equal(written: Iterable[Conjunct], owner: dict[int, int]) -> dict[int, int]:
    """Column -> the vertices of all columns that are set equal to it, its own among them, directly or by others."""
    known: dict[int, set[int]] = {}
    for e in (e for conjunct in written for e in conjuncts(conjunct.predicate)):
        if e.kind in ("EqualTo", "EqualNullSafe") and all(child.kind == "AttributeReference" for child in e.children):
            one, other = (known.setdefault(_bit(child), {_bit(child)}) for child in e.children)
            if one is not other:
                one |= other
                known.update(dict.fromkeys(other, one))
    return {bit: reduce(or_, (owner.get(column, 0) for column in columns)) for bit, columns in known.items()}


def kept_apart(keys: Keys | None, lowest: JoinTree, equals: dict[int, int]) -> tuple[tuple[int, int], ...]:
    """What keeps the sides of an equality that may fail from being computed for rows that they do not meet as written.

    From `int(at) = bk` and `bk = dk` Spark infers `int(at) = dk`, and moves that to where it finds both: what a side is
    set equal to counts as the side itself.

    Args:
        keys: of the equality.
        lowest: the smallest part of the written order that has all it reads.
        equals: see `set_equal`.
    """
    if keys is None or lowest.left is None or lowest.right is None:
        return ()
    sides = lowest.left.relations, lowest.right.relations
    found = [(reads, lowest.relations) for reads, _ in keys if reads & sides[0] and reads & sides[1]]
    if found:  # it is no key of this join, but tested pair by pair
        return tuple(found)
    for (reads, e), (others, other) in (keys, keys[::-1]):
        if safety.may_throw(e):
            side = sides[0] if reads & sides[0] else sides[1]
            meets = {others, *(1 << vertex for vertex in vertices(_copies(other, equals) & ~side))}
            strangers = _copies(e, equals) & ~side
            found += [(met | 1 << vertex, side) for met in meets for vertex in vertices(side)]
            found += [(met | 1 << vertex, lowest.relations) for met in meets for vertex in vertices(strangers)]
    return tuple(found)


def _copies(e: Expression, equals: dict[int, int]) -> int:
    """The vertices that have a column equal to one that an expression reads."""
    return reduce(or_, (equals.get(bit, 0) for bit in bits(e.references)), 0)


def _bit(column: Expression) -> int:
    assert column.attribute is not None
    return column.attribute.bit
