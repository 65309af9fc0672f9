"""From a region to a join graph: which predicate connects what, and from when on it may be applied.

Every conjunct finds its place by the vertices it reads:

* one vertex: a filter on top of that item (it is where Spark would push it), unless an outer join below the conjunct
  pads that item;
* two or more: an edge. If it can fail at run time its `required` set is widened to everything that stood below it as
  written, so that it never meets a row it did not meet then;
* the condition of an outer, semi or anti join is one edge as a whole;
* none, or marked `throwable` and reading one vertex: an edge over all that stood below it.

What an edge requires on top of what it reads, because of outer, semi and anti joins, `eligibility` works out; what
follows from several of them is in `implied`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from functools import cache, reduce
from operator import or_

from pyjoinopt.joins.graph.eligibility import InnerConjunct, NonInnerJoin, compute_eligibility_sets
from pyjoinopt.joins.graph.fallible_predicates import (
    Keys,
    co_required_by_keys,
    equated_vertices,
    is_equi_key,
    substitution_sets,
)
from pyjoinopt.joins.graph.hypergraph import Edge, JoinGraph, merge_parts
from pyjoinopt.joins.graph.transitive_equalities import with_implied
from pyjoinopt.joins.groups.join_group import Conjunct, JoinGroup, JoinInput, Written
from pyjoinopt.joins.join_tree import JoinTree, join, leaf
from pyjoinopt.plan.expressions import SUBQUERY, TRUE, Expression, conjunction, reference
from pyjoinopt.plan.facts.null_rejection import rejects_nulls
from pyjoinopt.plan.fallible import fallibility
from pyjoinopt.plan.nodes import FULL, INNER, LEFT, Filter, LogicalPlan, Project
from pyjoinopt.plan.outer_references import row_references
from pyjoinopt.plan.relation_names import relation_name, unique_names
from pyjoinopt.util.bitset import members


def written_positions(region: JoinGroup) -> list[int]:
    """Leaf positions in the written order, left to right: position i of the list is vertex i."""
    order: list[int] = []
    stack: list[Written] = [region.written]
    while stack:
        node = stack.pop()
        if isinstance(node, int):
            order.append(node)
        else:
            stack += (node[1], node[0])
    return order


def build_graph(
    region: JoinGroup, plans: dict[int, LogicalPlan], sensitive: int = 0
) -> tuple[JoinGraph, JoinTree]:
    """The graph of a region and the order it was written in.

    Args:
        region: a join group.
        plans: id of an item's plan -> the plan to use for it (groups inside items are ordered first).
        sensitive: see `plan.facts.equality_substitution.sensitive_columns`.
    """
    order = written_positions(region)
    vertex_of = {position: vertex for vertex, position in enumerate(order)}
    owner = {bit: 1 << vertex_of[position] for bit, position in region.owners.items()}
    filters: list[list[Expression]] = [[] for _ in order]
    edges: list[Edge] = []
    written = _written_tree(region.written, vertex_of)
    spans = _Spans(order)
    equals = equated_vertices(region.conjuncts, owner)
    at_risk = reduce(or_, (owner.get(bit, 0) for bit in members(sensitive)), 0)
    places: list[NonInnerJoin | InnerConjunct] = [
        _waiting(conjunct, region, owner, spans)
        if conjunct.sides is None
        else _operator(conjunct, region, owner, spans, at_risk)
        for conjunct in region.conjuncts
    ]
    compute_eligibility_sets(
        [place for place in places if isinstance(place, NonInnerJoin)],
        [place for place in places if isinstance(place, InnerConjunct)],
    )
    for conjunct, place in zip(region.conjuncts, places, strict=True):
        if isinstance(place, NonInnerJoin):
            edges.append(_edge_of_join(conjunct, place, written))
        elif place.required.bit_count() == 1 and not fallibility.is_meant_to_throw(conjunct.predicate):
            filters[place.required.bit_length() - 1].append(conjunct.predicate)
        else:
            edges.append(_edge_of_conjunct(conjunct.predicate, place, written, owner, equals))
    edges += _ties(edges)
    edges = with_implied(edges, owner)
    items = [region.items[position] for position in order]
    relations = tuple(_vertex_plan(item, plans, filters[v]) for v, item in enumerate(items))
    names = unique_names([relation_name(item.plan) for item in items])
    guarded = tuple((reads, _lowest(written, reads).relations) for reads in _guarded(region, owner))
    graph = JoinGraph(relations, names, tuple(edges), tuple(map(tuple, filters)), guarded)
    return graph, written


def _edge_of_join(conjunct: Conjunct, place: NonInnerJoin, written: JoinTree) -> Edge:
    """The edge of an outer, semi or anti join."""
    right = 0 if conjunct.right is None else place.written[1]
    apart: tuple[tuple[int, int], ...] = ()
    if place.fixed and right:  # Spark moves it down to where it finds what it reads
        left = place.reads & ~right
        apart = ((left, _lowest(written, left).relations),) if left else ()
    return Edge(
        conjunct.predicate, place.reads, place.required, join_type=place.join_type, right=right, sides=place.sides,
        room=(place.room[0], place.room[1]), apart=apart, subquery=conjunct.subquery,
    )  # fmt: skip


def _edge_of_conjunct(
    predicate: Expression, place: InnerConjunct, written: JoinTree, owner: dict[int, int], equals: dict[int, int]
) -> Edge:
    """The edge of a conjunct of the inner joins."""
    keys, together = _keys(predicate, owner), 0
    apart: tuple[tuple[int, int], ...] = ()
    # Spark leaves one that is meant to throw where it stands.
    if fallibility.may_throw(predicate) and not fallibility.is_meant_to_throw(predicate):
        lowest = _lowest(written, place.reads)
        together, apart = lowest.relations, co_required_by_keys(keys, lowest, equals)
        if not is_equi_key(keys, lowest):
            sets = substitution_sets(predicate, equals, owner)
            apart += tuple((s, _lowest(written, s).relations if s else written.relations) for s in sets)
    return Edge(predicate, place.reads, place.required, keys, together=together, apart=apart)


def _guarded(region: JoinGroup, owner: dict[int, int]) -> list[int]:
    """What is read by predicates above the group that may fail: Spark moves them down to where they find all of it."""
    found = (reduce(or_, (owner.get(bit, 0) for bit in members(mask)), 0) for mask in region.guards)
    return [reads for reads in found if reads.bit_count() > 1]


def _lowest(tree: JoinTree, reads: int) -> JoinTree:
    """The smallest part of an order that has all of these vertices."""
    node: JoinTree | None = tree
    while node is not None:
        tree = node
        parts = [part for part in (tree.left, tree.right) if part is not None]
        node = next((part for part in parts if not reads & ~part.relations), None)
    return tree


class _Spans:
    """Vertices of intervals of leaf positions, without looking at every vertex for each."""

    def __init__(self, order: list[int]) -> None:
        self._positions = sorted(order)
        self._sums = [0]
        vertex_of = {position: vertex for vertex, position in enumerate(order)}
        for position in self._positions:
            self._sums.append(self._sums[-1] | 1 << vertex_of[position])

    def __call__(self, start: int, end: int) -> int:
        low, high = bisect_left(self._positions, start), bisect_left(self._positions, end)
        return self._sums[high] & ~self._sums[low]


def _waiting(conjunct: Conjunct, region: JoinGroup, owner: dict[int, int], spans: _Spans) -> InnerConjunct:
    predicate = conjunct.predicate
    reads, below = _reads(predicate, owner), spans(conjunct.start, conjunct.end)
    whole = not reads or (reads.bit_count() == 1 and fallibility.is_meant_to_throw(predicate))
    return InnerConjunct(reads, below, below if whole else reads, fixed=not reads or fallibility.may_throw(predicate))


def _operator(
    conjunct: Conjunct, region: JoinGroup, owner: dict[int, int], spans: _Spans, at_risk: int
) -> NonInnerJoin:
    """An outer, semi or anti join; the columns that the latter look into are hidden, so they may be known elsewhere.

    `at_risk` are the relations with sensitive columns.
    """
    assert conjunct.sides is not None
    predicate = conjunct.predicate
    written = spans(*conjunct.sides[0]), spans(*conjunct.sides[1])
    hidden = region.items[conjunct.right].plan.output_set if conjunct.right is not None else 0
    columns, reads = [0, hidden & predicate.references], 0
    for bit in members(predicate.references & ~hidden):
        reads |= owner[bit]
        columns[0 if owner[bit] & written[0] else 1] |= 1 << bit
    if conjunct.right is not None:
        reads |= written[1]

    @cache
    def rejects(side: int) -> bool:
        return rejects_nulls(predicate, columns[side])

    supplied = {LEFT: written[1], FULL: written[0] | written[1]}.get(conjunct.join_type, 0)
    guarded = bool(supplied & at_risk)
    return NonInnerJoin(conjunct.join_type, written, reads, rejects, fallibility.may_throw(predicate), guarded)


def _ties(edges: list[Edge]) -> list[Edge]:
    """Edges without a predicate, between parts of a side of an operator that nothing else ties: needed products."""
    ties: list[Edge] = []
    for operator in edges:
        if operator.join_type == INNER:
            continue
        for side in operator.sides:
            parts = [1 << vertex for vertex in members(side)]
            if len(parts) < 2:
                continue
            waiting = [e.required for e in (*edges, *ties) if e is not operator and not e.required & ~side]
            parts = merge_parts(parts, waiting)
            for one, other in zip(parts, parts[1:]):
                pair = one & -one | other & -other
                ties.append(Edge(TRUE, pair, pair, implied=True))
    return ties


def _reads(predicate: Expression, owner: dict[int, int]) -> int:
    return reduce(or_, (owner[bit] for bit in members(row_references(predicate))), 0)


def _keys(predicate: Expression, owner: dict[int, int]) -> Keys | None:
    if predicate.kind not in ("EqualTo", "EqualNullSafe") or predicate.contains & SUBQUERY:
        return None
    left, right = predicate.children
    sides = _reads(left, owner), _reads(right, owner)
    if not sides[0] or not sides[1] or sides[0] & sides[1]:
        return None
    return (sides[0], left), (sides[1], right)


def _vertex_plan(item: JoinInput, plans: dict[int, LogicalPlan], filters: list[Expression]) -> LogicalPlan:
    plan = with_columns(plans.get(id(item.plan), item.plan), item.columns)
    condition = conjunction(sorted(filters, key=fallibility.may_throw))
    return plan if condition is None else Filter(condition, plan)


def with_columns(plan: LogicalPlan, columns: Iterable[Expression]) -> LogicalPlan:
    """The plan with computed columns added; a column may read one that stands before it."""
    pending = list(columns)
    while pending:  # but not within one projection
        layer: list[Expression] = []
        made = 0
        while pending and not pending[0].references & made:
            column = pending.pop(0)
            layer.append(column)
            made |= column.attribute.mask if column.attribute else 0
        plan = Project((*(reference(a) for a in plan.output), *layer), plan)
    return plan


def _written_tree(written: Written, vertex_of: dict[int, int]) -> JoinTree:
    done: list[JoinTree] = []
    stack: list[tuple[Written, bool]] = [(written, False)]
    while stack:
        node, expanded = stack.pop()
        if isinstance(node, int):
            done.append(leaf(vertex_of[node]))
        elif expanded:
            right = done.pop()
            done.append(join(done.pop(), right))
        else:
            stack += [(node, True), (node[1], False), (node[0], False)]
    return done[0]
