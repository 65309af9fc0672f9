"""Interesting partitionings: a plan of a set of relations is kept for each key by which its result is partitioned.

A shuffled join leaves its result partitioned by the key that it joined on. A join above it on the same key need not
shuffle that side again:

    (sales ⋈ returns on order) ⋈ orders on order       shuffles sales, returns and orders once,
    (sales ⋈ items on item) ⋈ orders on order          shuffles the sales twice.

So the cheapest plan of a set may not be part of the cheapest plan of a larger set. As with the *interesting orders* of
System R (Selinger et al. 1979, section 5), the best plan of a set is kept once for each key by which it may be
partitioned and which another join can use; a plan that costs more and is partitioned no better is dropped. A broadcast
join keeps the partitioning of its streamed side. Relations may be partitioned from the start: groups of an aggregate,
bucketed tables.

Keys are sets of equality classes, bit *c* for class *c*. Spark requires exactly the join's keys, no fewer and no more
(`spark.sql.requireAllClusterKeysForCoPartition`). Where no key can be used twice, none of this is done
(`any_shared_key`). That is the usual case: dimensions are broadcast, and each has a key of its own.

DPhyp has found which pairs of sets there are; here they are priced once more, in its order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import cast

from pyjoinopt.cost.model import CostModel, PartitionedModel, optional_method
from pyjoinopt.cost.size import BROADCAST_HASH
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.joins.graph.hypergraph import JoinGraph, OperatorEdge
from pyjoinopt.joins.join_tree import JoinTree, build_tree
from pyjoinopt.plan.equi_keys import equalities
from pyjoinopt.plan.expressions import EQUALITIES, Expression
from pyjoinopt.plan.nodes import FULL, INNER, Aggregate, Filter, LogicalPlan, Project
from pyjoinopt.plan.operator_kinds import KEEPS_PARTITIONING
from pyjoinopt.util.bitset import members

#: The cheapest plan of a set, however its result is partitioned.
ANY_PARTITIONING = 0


@dataclass(frozen=True, slots=True)
class _Plan:
    """The cheapest plan found for a set of relations.

    Attributes:
        cost: in row units.
        partitioning: the key by which its result is hash-partitioned.
        left: the set on its left.
        left_partitioning, right_partitioning: which plans of its two sides it is made of.
    """

    cost: float
    partitioning: int
    left: int = 0
    left_partitioning: int = ANY_PARTITIONING
    right_partitioning: int = ANY_PARTITIONING


#: Key -> the cheapest plan with that partitioning; `ANY_PARTITIONING` -> the cheapest of all.
_Table = dict[int, _Plan]


class Partitionings:
    """What plans of a join graph cost if a join can use the partitioning that another one leaves.

    Args:
        graph: the join graph.
        estimates: rows and bytes of its sets of vertices.
        cost: a cost model; only a `PartitionedModel` prices such savings.
        most: relations that share keys with others; with more, nothing is tracked.
    """

    def __init__(self, graph: JoinGraph, estimates: GraphEstimates, cost: CostModel, most: int = 64) -> None:
        self._graph, self._estimates, self._most = graph, estimates, most
        self._model = cast(PartitionedModel, cost) if optional_method(cost, "parts") is not None else None
        class_of = _classes(graph)
        self._classes = [_touched(plan, class_of) for plan in graph.relations]
        self._touched: dict[int, int] = {}
        self._keys_of = {id(edge): _keys_of(edge, graph, class_of) for edge in graph.operators}
        # Equalities of expressions, and null-safe ones: a join that has them in its condition hashes by them, too.
        self._more = [edge.ses for edge in graph.unclassed if edge.predicate.kind in EQUALITIES]
        self._given = [_key(partitioned_by(plan), class_of) for plan in graph.relations]
        self._useful = self._useful_keys() if self._model is not None else frozenset()

    @property
    def any_shared_key(self) -> bool:
        """Whether two joins of the graph can be on one key."""
        return bool(self._useful)

    def price(self, tree: JoinTree) -> float:
        """The cost of an order."""
        done: list[tuple[int, _Table]] = []
        for node in tree.post_order():
            if node.is_leaf:
                done.append((node.relations, self._leaf(node.vertex)))
                continue
            (right, of_right), (left, of_left) = done.pop(), done.pop()
            table: _Table = {}
            self._join(left, right, of_left, of_right, table)
            done.append((left | right, table))
        return done[0][1][ANY_PARTITIONING].cost

    def best(self, pairs: Iterable[tuple[int, int]], everything: int) -> JoinTree:
        """The cheapest order of a set.

        Args:
            pairs: all pairs of sets that may be joined; none before all the pairs that make its own sets.
            everything: the set.
        """
        tables = {1 << v: self._leaf(v) for v in members(everything)}
        for left, right in pairs:
            self._join(left, right, tables[left], tables[right], tables.setdefault(left | right, {}))
        return self._tree(tables, everything)

    # -- one set -----------------------------------------------------------------------------------------------

    def _leaf(self, vertex: int) -> _Table:
        key = self._given[vertex]
        plan = _Plan(0.0, key)
        return {ANY_PARTITIONING: plan, key: plan} if key in self._useful else {ANY_PARTITIONING: plan}

    def _join(self, left: int, right: int, of_left: _Table, of_right: _Table, table: _Table) -> None:
        """Put the ways to join two sets into the table of the whole."""
        assert self._model is not None
        edge = self._graph.operator(left, right) if self._graph.operators else None
        turned = edge is not None and not edge.fits(left, right)
        if turned:
            left, right, of_left, of_right = right, left, of_right, of_left
        kind = INNER if edge is None else edge.join_type
        size = self._estimates.size
        parts = self._model.parts(size(left), size(right), size(left | right), kind)
        best_left, best_right = of_left[ANY_PARTITIONING], of_right[ANY_PARTITIONING]
        if parts.streamed is not None:
            streamed, built = (of_left, best_right) if parts.streamed == 0 else (of_right, best_left)
            for key, plan in streamed.items():
                total = plan.cost + built.cost + parts.work
                mine, theirs = (key, ANY_PARTITIONING) if parts.streamed == 0 else (ANY_PARTITIONING, key)
                _keep(table, _Plan(total, plan.partitioning, left, mine, theirs), self._useful)
            return
        l_key, r_key = self._keys_of[id(edge)] if edge is not None else self._inner_key(left, right)
        l_cost, l_from = _cheapest_with_partitioning(of_left, l_key, parts.left)
        r_cost, r_from = _cheapest_with_partitioning(of_right, r_key, parts.right)
        made = ANY_PARTITIONING if kind == FULL else l_key
        _keep(table, _Plan(l_cost + r_cost + parts.work, made, left, l_from, r_from), self._useful)

    def _inner_key(self, left: int, right: int) -> tuple[int, int]:
        for ses in self._more:
            if ses & left and ses & right and not ses & ~(left | right):
                return 0, 0
        both = self._of(left) & self._of(right)
        return both, both

    def _of(self, relations: int) -> int:
        """The classes that a set has columns in."""
        found = self._touched.get(relations)
        if found is None:
            found = 0
            for vertex in members(relations):
                found |= self._classes[vertex]
            self._touched[relations] = found
        return found

    def _useful_keys(self) -> frozenset[int]:
        """Keys that two joins of large relations may share, and those by which relations come partitioned."""
        # A broadcast side needs no partitioning and keeps that of the other side; but it may bring the column of a key.
        everyone = range(len(self._graph))
        large = [v for v in everyone if self._estimates.size(1 << v).build != BROADCAST_HASH]
        given = (self._given[v] for v in large)
        others = [key for key in (*chain.from_iterable(self._keys_of.values()), *given) if key]
        movers = Counter(c for key in (*(self._classes[v] for v in large), *others) for c in members(key))
        users = Counter(c for key in (*self._classes, *others) for c in members(key))
        shared = sum(1 << c for c, count in users.items() if count > 2 and movers[c] > 1)
        sharing = [v for v in everyone if self._classes[v] & shared]
        if not shared or len(sharing) > self._most:
            return frozenset()
        pairs = combinations(sharing, 2)
        used = Counter(key for one, other in pairs if (key := self._classes[one] & self._classes[other]))
        used.update(others)
        return frozenset(key for key, times in used.items() if times > 1)

    def _tree(self, tables: dict[int, _Table], everything: int) -> JoinTree:
        def halves(part: tuple[int, int]) -> int | tuple[tuple[int, int], tuple[int, int]]:
            relations, key = part
            if not relations & (relations - 1):
                return relations.bit_length() - 1
            plan = tables[relations][key]
            return (plan.left, plan.left_partitioning), (relations ^ plan.left, plan.right_partitioning)

        size = self._estimates.size
        return build_tree((everything, ANY_PARTITIONING), halves, lambda relations: size(relations).bytes)


def _keep(table: _Table, plan: _Plan, useful: frozenset[int]) -> None:
    known = table.get(ANY_PARTITIONING)
    if known is None or plan.cost < known.cost:
        table[ANY_PARTITIONING] = plan
    if plan.partitioning in useful:
        known = table.get(plan.partitioning)
        if known is None or plan.cost < known.cost:
            table[plan.partitioning] = plan


def _cheapest_with_partitioning(table: _Table, key: int, shuffle: float) -> tuple[float, int]:
    """What it costs to have a side partitioned by a key, and from which of its plans."""
    partitioned = table.get(key) if key else None
    shuffled = table[ANY_PARTITIONING].cost + shuffle
    if partitioned is not None and partitioned.cost <= shuffled:
        return partitioned.cost, key
    return shuffled, ANY_PARTITIONING


def _classes(graph: JoinGraph) -> dict[int, int]:
    """Column -> its equality class; a column in none that an operator joins on is a class of its own."""
    class_of = dict(graph.class_of)
    count = max(class_of.values(), default=-1) + 1
    for edge in graph.operators:
        for bit in chain.from_iterable(_equated(edge.predicate)):
            if bit not in class_of:
                class_of[bit] = count
                count += 1
    return class_of


def _touched(plan: LogicalPlan, class_of: dict[int, int]) -> int:
    """The classes that a relation has a column in."""
    found = 0
    for attribute in plan.output:
        if attribute.bit in class_of:
            found |= 1 << class_of[attribute.bit]
    return found


def _equated(predicate: Expression) -> list[tuple[int, int]]:
    """The pairs of columns that a condition equates; none if it equates anything else, which is part of the key."""
    found = []
    for left, right, null_safe in equalities(predicate):
        if null_safe or left.attribute is None or right.attribute is None:
            return []
        found.append((left.attribute.bit, right.attribute.bit))
    return found


def _keys_of(edge: OperatorEdge, graph: JoinGraph, class_of: dict[int, int]) -> tuple[int, int]:
    """The classes by which an outer, semi or anti join needs its sides partitioned; none where one occurs twice."""
    on_left = 0
    for vertex in members(edge.left_tes):
        on_left |= graph.relations[vertex].output_set
    pairs = [(a, b) if on_left >> a & 1 else (b, a) for a, b in _equated(edge.predicate)]
    return _key([left for left, _ in pairs], class_of), _key([right for _, right in pairs], class_of)


def _key(columns: Sequence[int], class_of: dict[int, int]) -> int:
    """The key that columns form; none if one of them is in no class, or if two are in the same."""
    classes = {class_of[bit] for bit in columns if bit in class_of}
    return sum(1 << c for c in classes) if len(classes) == len(columns) else 0


def partitioned_by(plan: LogicalPlan) -> tuple[int, ...]:
    """Attribute numbers of the columns by which a relation is hash-partitioned from the start; none if it is not."""
    names: dict[int, int] = {}
    node = plan
    while node.kind in KEEPS_PARTITIONING and len(node.children) == 1:
        if isinstance(node, Project):
            listed = zip(node.expressions, node.output, strict=True)
            inner = {(e.children[0] if e.kind == "Alias" else e).attribute: a.bit for e, a in listed}
            names = {b.bit: names.get(out, out) for b, out in inner.items() if b is not None}
        elif not isinstance(node, Filter):
            pairs = zip(node.children[0].output, node.output)
            names = {before.bit: names.get(after.bit, after.bit) for before, after in pairs}
        elif not names:
            names = {a.bit: a.bit for a in node.output}
        node = node.children[0]
    if isinstance(node, Aggregate):
        outputs = {(e.children[0] if e.kind == "Alias" else e).key: a.bit for e, a in zip(node.aggregates, node.output)}
        bits: Sequence[int | None] = [outputs.get(e.key) for e in node.grouping]
    else:
        bits = (node.info.get("rel") or {}).get("buckets") or ()
    found = [None if bit is None else names.get(bit, None if names else bit) for bit in bits]
    return () if None in found else tuple(bit for bit in found if bit is not None)
