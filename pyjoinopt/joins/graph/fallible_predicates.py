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

from collections.abc import Iterable, Mapping
from functools import reduce
from operator import or_

from pyjoinopt.joins.graph.hypergraph import Keys
from pyjoinopt.joins.groups.join_group import Conjunct
from pyjoinopt.joins.join_tree import JoinTree
from pyjoinopt.plan import limits
from pyjoinopt.plan.equi_keys import equalities
from pyjoinopt.plan.expressions import Expression, conjunction, conjuncts
from pyjoinopt.plan.fallible import fallibility
from pyjoinopt.plan.nodes import Filter, Join, LogicalPlan
from pyjoinopt.plan.traversal import post_order
from pyjoinopt.util.bitset import members
from pyjoinopt.util.disjoint_sets import DisjointSets

#: More sets than this are not listed one by one.
_MOST = limits.SUBSTITUTION_SETS


def equated_vertices(
    written: Iterable[Conjunct], owner: Mapping[int, int], computed: Iterable[Expression] = ()
) -> dict[int, int]:
    """Column -> the vertices of all columns that Spark may substitute for it, its own among them.

    From `a.x = b.y` it substitutes one for the other, and from `CAST(a.x AS BIGINT) = b.y` the cast for `b.y`. Between
    two casts it substitutes nothing.

    Args:
        written: the predicates of the group.
        owner: column -> its vertices.
        computed: named expressions, each to count as equal to what it reads.
    """
    equal = DisjointSets[int]()
    casts: list[tuple[int, int]] = []
    for e in computed:
        for bit in members(e.references):
            equal.union(_bit(e), bit)
    for left, right, _ in (found for conjunct in written for found in equalities(conjunct.predicate)):
        if left.kind == right.kind == "AttributeReference":
            equal.union(_bit(left), _bit(right))
        for one, cast in ((left, right), (right, left)):
            if one.kind == "AttributeReference" and cast.kind == "Cast":
                if cast.children[0].kind == "AttributeReference":
                    casts.append((_bit(one), _bit(cast.children[0])))
    for pair in casts:  # so that each has a class
        for bit in pair:
            equal.union(bit, bit)
    classes = equal.groups()
    class_of = {column: number for number, columns in enumerate(classes) for column in columns}
    reached = [reduce(or_, (owner.get(column, 0) for column in columns), 0) for columns in classes]
    for _ in casts:  # a path has as many steps at most
        for column, below in casts:
            reached[class_of[column]] |= reached[class_of[below]]
    return {column: reached[number] for column, number in class_of.items()}


def fixed_columns(plans: Iterable[LogicalPlan], written: Iterable[Conjunct]) -> int:
    """The columns that a filter or join inside of some plans, or of the group, sets equal to a constant, as bits."""
    predicates = [conjunct.predicate for conjunct in written]
    for plan in plans:
        for node in post_order(plan):
            predicates += conjuncts(node.condition) if isinstance(node, (Filter, Join)) else ()
    fixed = 0
    for one, other, _ in equalities(conjunction(predicates)):
        for column, constant in ((one, other), (other, one)):
            if column.kind == "AttributeReference" and not constant.references:
                fixed |= column.references
    return fixed


def substitution_sets(
    predicate: Expression, equals: Mapping[int, int], owner: Mapping[int, int], fixed: int = 0
) -> list[int]:
    """The sets of vertices at which Spark may evaluate a predicate that is no equi-key: some copy of each column.

    From Spark 4.3 on it also puts a constant in the place of a column that equals it (SPARK-57437), so the vertex of
    that column need not be there.

    Args:
        predicate: the predicate.
        equals: see `equated_vertices`.
        owner: column -> its vertex.
        fixed: the vertices that have a column which equals a constant. A column that may equal one of these counts as
            fixed, too.

    Returns:
        Sets; the empty one alone, which every set of vertices contains, if there are too many to list.
    """
    sets = {0}
    for bit in members(predicate.references):
        own = equals.get(bit, owner.get(bit, 0))
        copies = [1 << vertex for vertex in members(own)] + [0] * bool(own & fixed)
        if len(sets) * len(copies) > _MOST:
            return [0]
        sets = {known | copy for known in sets for copy in copies} if copies else sets
    return sorted(sets)


def is_equi_key(keys: Keys | None, lowest: JoinTree) -> bool:
    """True if each side of an equality reads one half of a join; otherwise it is evaluated pair by pair."""
    halves = [half.relations for half in (lowest.left, lowest.right) if half is not None]
    return keys is not None and all(sum(bool(reads & half) for half in halves) == 1 for reads, _ in keys)


def co_required_by_keys(keys: Keys | None, lowest: JoinTree, equals: dict[int, int]) -> tuple[tuple[int, int], ...]:
    """Pairs that keep the sides of a fallible equality from being computed for rows that the written order excludes.

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
    if found:  # it is no key of this join, but evaluated pair by pair
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
