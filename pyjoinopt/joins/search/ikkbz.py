"""IKKBZ: the best left-deep order of a tree of predicates, in polynomial time.

The tree is a spanning tree of the most selective edges. From a root, a relation comes after its parent (the precedence
tree). Joining it multiplies the rows by T = rows × selectivity and costs C, the rows that are made. So of two relations
that may come next, the one of smaller *rank* (T - 1) / C goes first. Where a child ranks below its parent, the two are
merged into a compound relation, with the T and C of both (Ibaraki and Kameda 1984; Krishnamurthy, Boral and Zaniolo
1986, section 4).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass

from pyjoinopt.joins.search.search_context import SearchContext
from pyjoinopt.util.bitset import members
from pyjoinopt.util.disjoint_sets import DisjointSets

_HIGHEST = 1e300


def ikkbz_order(context: SearchContext, relations: Sequence[int]) -> list[int] | None:
    """The best left-deep order of a spanning tree; None if two-vertex edges do not connect the relations.

    Args:
        context: the group.
        relations: vertices, in canonical order.
    """
    tree = _spanning_tree(context, relations)
    if tree is None:
        return None
    rows = {v: context.estimates.size(1 << v).rows for v in relations}
    place = {v: i for i, v in enumerate(relations)}
    roots = sorted(relations, key=lambda v: (rows[v], place[v]))[: context.limits.ikkbz_roots]
    orders = [_from_root(root, tree, rows, place) for root in roots]
    return min(orders, key=lambda found: found[0])[1]


def _spanning_tree(
    context: SearchContext, relations: Sequence[int]
) -> dict[int, list[tuple[int, float]]] | None:
    """vertex -> (neighbour, selectivity) of a spanning tree of the most selective edges."""
    estimates, graph = context.estimates, context.graph
    parts = {v: estimates.part(v) for v in relations}
    inside = set(relations)
    edges: list[tuple[float, int, int, int, int]] = []
    place = {v: i for i, v in enumerate(relations)}
    for v in relations:
        near = [other for other in members(graph.adjacency[v]) if other in inside and place[v] < place[other]]
        for other, log_rows in zip(near, estimates.log_rows_with(parts[v], [parts[other] for other in near])):
            selectivity = round(log_rows - parts[v].log_rows - parts[other].log_rows, 9)
            edges.append((selectivity, place[v], place[other], v, other))
    connected = DisjointSets[int]()
    tree: dict[int, list[tuple[int, float]]] = {v: [] for v in relations}
    links = 0
    for selectivity, _, _, v, other in sorted(edges):
        if connected.union(v, other):
            links += 1
            factor = math.exp(max(-690.0, min(0.0, selectivity)))
            tree[v].append((other, factor))
            tree[other].append((v, factor))
    return tree if links == len(relations) - 1 else None


@dataclass(slots=True)
class _CompoundRelation:
    """Relations that are joined one right after the other.

    Attributes:
        growth: the factor by which joining them multiplies the rows (T).
        cost: the rows that are made on the way (C).
        relations: in the order of their joins.
    """

    growth: float
    cost: float
    relations: list[int]

    @property
    def rank(self) -> float:
        return (self.growth - 1.0) / self.cost if self.cost > 0 else -_HIGHEST

    def merge(self, after: _CompoundRelation) -> _CompoundRelation:
        growth = min(_HIGHEST, self.growth * after.growth)
        cost = min(_HIGHEST, self.cost + self.growth * after.cost)
        return _CompoundRelation(growth, cost, self.relations + after.relations)


def _from_root(
    root: int, tree: dict[int, list[tuple[int, float]]], rows: dict[int, float], place: dict[int, int]
) -> tuple[float, list[int]]:
    """(cost, relations) of the best left-deep order that starts with `root`."""
    chains: dict[int, list[_CompoundRelation]] = {}
    stack: list[tuple[int, int, float, bool]] = [(root, -1, 1.0, False)]
    while stack:
        vertex, parent, selectivity, expanded = stack.pop()
        below = [(other, factor) for other, factor in tree[vertex] if other != parent]
        if not expanded:
            stack.append((vertex, parent, selectivity, True))
            stack += [(other, vertex, factor, False) for other, factor in below]
            continue
        keyed = [[(p.rank, place[p.relations[0]], p) for p in chains.pop(other)] for other, _ in below]
        chain = [compound for _, _, compound in heapq.merge(*keyed, key=lambda entry: entry[:2])]
        growth = max(1e-12, rows[vertex] * selectivity)
        compound = _CompoundRelation(growth, 0.0 if vertex == root else growth, [vertex])
        if vertex != root:
            while chain and chain[0].rank < compound.rank:
                compound = compound.merge(chain.pop(0))
        chains[vertex] = [compound, *chain]
    whole = chains[root][0]
    for compound in chains[root][1:]:
        whole = whole.merge(compound)
    return whole.cost, whole.relations
