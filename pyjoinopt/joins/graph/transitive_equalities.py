"""Equalities that follow from others.

Equalities between plain columns form classes: from a.k = b.k and b.k = c.k follows a.k = c.k, and an order that joins
a with c first should not need a cross product for it. Such an implied edge connects them; `emit` adds its predicate
only to a join that has no written predicate of the same class.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations

from pyjoinopt.joins.graph.hypergraph import Edge
from pyjoinopt.plan import limits
from pyjoinopt.plan.expressions import Expression, call, reference
from pyjoinopt.util.disjoint_sets import DisjointSets

#: Classes of more columns keep their written equalities only: all pairs would be too many.
_MOST_EQUAL = limits.EQUAL_COLUMNS
#: Pairs of one graph's classes, the smallest first.
_MOST_IMPLIED = limits.IMPLIED_EQUALITIES


def with_implied(edges: list[Edge], owner: Mapping[int, int]) -> list[Edge]:
    """Number the equality classes, and add transitive equalities between vertices that no edge of the class connects.

    Each class counts in the estimate of a pair, so each has to be tested when the pair is joined.
    """
    columns_of: dict[int, Expression] = {}
    equal = DisjointSets[int]()
    for edge in edges:
        for left, right in _equated(edge):
            columns_of.setdefault(_bit(left), left)
            columns_of.setdefault(_bit(right), right)
            equal.union(_bit(left), _bit(right))
    classes = [[columns_of[bit] for bit in group] for group in equal.groups()]
    number = {_bit(e): i for i, columns in enumerate(classes) for e in columns}
    numbered = []
    for edge in edges:
        equated = _equated(edge)
        numbered.append(replace(edge, equality_class=number[_bit(equated[0][0])]) if equated else edge)
    connected = {(e.ses, e.equality_class) for e in numbered}
    implied: list[Edge] = []
    largest = _largest_tied([len(columns) for columns in classes])
    for i, columns in enumerate(classes):
        for left, right in combinations(columns, 2) if len(columns) <= largest else ():
            a_side, b_side = owner[_bit(left)], owner[_bit(right)]
            both = a_side | b_side
            if both.bit_count() == 2 and (both, i) not in connected:
                connected.add((both, i))
                predicate = call("EqualTo", _plain(left), _plain(right))
                implied.append(Edge(predicate, both, both, ((a_side, left), (b_side, right)), True, i))
    return numbered + implied


def _largest_tied(sizes: list[int]) -> int:
    """Up to which size classes are tied pair by pair: all of one size or none, however the query was written.

    >>> _largest_tied([3, 2, 500]), _largest_tied([85, 85, 85, 4])
    (3, 4)
    """
    largest = pairs = 0
    for size, classes in sorted(Counter(sizes).items()):
        pairs += classes * size * (size - 1) // 2
        if size > _MOST_EQUAL or pairs > _MOST_IMPLIED:
            break
        largest = size
    return largest


def _equated(edge: Edge) -> list[tuple[Expression, Expression]]:
    """The two plain columns of one type that an edge sets equal, if it does."""
    if edge.keys is None or edge.predicate.kind != "EqualTo" or edge.tes != edge.ses:
        return []
    (_, left), (_, right) = edge.keys
    plain = left.kind == right.kind == "AttributeReference" and left.type == right.type
    return [(left, right)] if plain else []


def _bit(column: Expression) -> int:
    assert column.attribute is not None
    return column.attribute.bit


def _plain(e: Expression) -> Expression:
    assert e.attribute is not None
    return reference(e.attribute)
