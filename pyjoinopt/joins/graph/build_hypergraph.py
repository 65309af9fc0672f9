"""From a join group to a join graph: which predicate connects what, and from when on it may be applied.

The steps, each a function of what the one before it returned:

1. **Classify** (`_classified`). Each conjunct is one of the inner joins, or the whole condition of an outer, semi or
   anti join.
2. **Eligibility** (`eligibility.compute_eligibility_sets`): what each of them must wait for because of the others.
3. **Place** each. An inner conjunct over one vertex is a filter on top of that input (it is where Spark would push it),
   unless an outer join below the conjunct pads that input. Over two or more vertices it is an edge. One that reads no
   vertex, or that is meant to throw (`raise_error`), is an edge over all that was below it, as Spark does not move it.
   The condition of an outer, semi or anti join is an operator edge.
4. **Co-requirements** (`_co_required`) of predicates that may throw (`fallible_predicates`).
5. **Close**: equalities that follow from several others (`transitive_equalities`), and edges without a predicate where
   a side of an operator is connected by nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import or_

from pyjoinopt.joins.graph.copied_filters import order_decides_copies
from pyjoinopt.joins.graph.eligibility import (
    Eligibility,
    InnerConjunct,
    NonInnerJoin,
    compute_eligibility_sets,
)
from pyjoinopt.joins.graph.fallible_predicates import (
    co_required_by_keys,
    equated_vertices,
    fixed_columns,
    is_equi_key,
    substitution_sets,
)
from pyjoinopt.joins.graph.hypergraph import Edge, JoinGraph, Keys, OperatorEdge, merge_parts
from pyjoinopt.joins.graph.transitive_equalities import with_implied
from pyjoinopt.joins.groups.join_group import Conjunct, JoinGroup, JoinInput, Written
from pyjoinopt.joins.join_tree import JoinTree, join, leaf
from pyjoinopt.plan.equi_keys import equality
from pyjoinopt.plan.expressions import SUBQUERY, TRUE, Expression, conjunction, reference
from pyjoinopt.plan.fallible import fallibility
from pyjoinopt.plan.nodes import FULL, LEFT, Filter, LogicalPlan, Project
from pyjoinopt.plan.outer_references import row_references
from pyjoinopt.plan.relation_names import relation_name, unique_names
from pyjoinopt.util.bitset import members


def written_positions(group: JoinGroup) -> list[int]:
    """Leaf positions in the written order, left to right: position i of the list is vertex i."""
    order: list[int] = []
    stack: list[Written] = [group.written]
    while stack:
        node = stack.pop()
        if isinstance(node, int):
            order.append(node)
        else:
            stack += (node[1], node[0])
    return order


@dataclass(frozen=True)
class _Vertices:
    """How columns and leaf positions of a group map to vertices.

    Attributes:
        order: the leaf position of each vertex.
        owner: attribute bit -> the vertex that it is a column of, as a set.
        tree: the order as written.
        spans: vertices of intervals of leaf positions.
        padded: vertices that an outer join fills up with NULLs.
        at_risk: vertices with sensitive columns (`plan.facts.equality_substitution.sensitive_columns`).
        equals: column -> the vertices of all columns that are set equal to it.
        group: the join group.
    """

    order: Sequence[int]
    owner: Mapping[int, int]
    tree: JoinTree
    spans: _Spans
    padded: int
    at_risk: int
    equals: dict[int, int]
    group: JoinGroup

    @cached_property
    def fixed(self) -> int:
        """The vertices with a column that is set equal to a constant."""
        constants = fixed_columns((item.plan for item in self.group.items.values()), self.group.conjuncts)
        return reduce(or_, (self.owner.get(bit, 0) for bit in members(constants)), 0)

    def read_by(self, predicate: Expression) -> int:
        """The vertices whose columns a predicate reads."""
        return reduce(or_, (self.owner[bit] for bit in members(row_references(predicate))), 0)

    def lowest(self, relations: int) -> JoinTree:
        """The smallest part of the written order that has all of these vertices."""
        return _lowest(self.tree, relations)


def build_graph(group: JoinGroup, plans: Mapping[int, LogicalPlan], sensitive: int = 0) -> tuple[JoinGraph, JoinTree]:
    """The graph of a join group, and the order in which it was written.

    Args:
        group: the join group.
        plans: id of an input's plan -> the plan to use for it (groups inside inputs are ordered first).
        sensitive: attribute mask, see `plan.facts.equality_substitution.sensitive_columns`.
    """
    vertices = _vertices(group, sensitive)
    classified = [_classified(conjunct, group, vertices) for conjunct in group.conjuncts]
    joins, tes = compute_eligibility_sets(
        [e for e in classified if isinstance(e, NonInnerJoin)], [e for e in classified if isinstance(e, InnerConjunct)]
    )
    filters: list[list[Expression]] = [[] for _ in vertices.order]
    edges: list[Edge] = []
    co_required: list[tuple[int, int]] = []
    for conjunct, e in zip(group.conjuncts, classified, strict=True):
        if isinstance(e, NonInnerJoin):
            edges.append(_operator_edge(conjunct, e, joins[e]))
            co_required += _co_required_by_operator(conjunct, e, vertices)
        elif tes[e].bit_count() == 1 and not fallibility.is_meant_to_throw(conjunct.predicate):
            filters[tes[e].bit_length() - 1].append(conjunct.predicate)
        else:
            keys = _keys(conjunct.predicate, vertices)
            edges.append(Edge(conjunct.predicate, e.ses, tes[e], keys))
            co_required += _co_required_by_conjunct(conjunct.predicate, e.ses, keys, vertices)
    co_required += ((read, vertices.lowest(read).relations) for read in _read_above(group, vertices.owner))
    edges = with_implied(edges + _products(edges), vertices.owner)
    inputs = [group.items[position] for position in vertices.order]
    graph = JoinGraph(
        relations=tuple(_vertex_plan(item, plans, filters[v]) for v, item in enumerate(inputs)),
        names=unique_names([relation_name(item.plan) for item in inputs]),
        edges=tuple(edges),
        filters=tuple(map(tuple, filters)),
        only_as_written=order_decides_copies(
            inputs, filters, vertices.padded, group.conjuncts, vertices.tree, _with_hidden(group, vertices),
            above=group.guards,
        ),
        co_required=tuple((present, needed) for present, needed in co_required if needed & ~present),
    )
    return graph, vertices.tree


def _vertices(group: JoinGroup, sensitive: int) -> _Vertices:
    order = written_positions(group)
    vertex_of = {position: vertex for vertex, position in enumerate(order)}
    owner = {bit: 1 << vertex_of[position] for bit, position in group.owners.items()}
    at_risk = reduce(or_, (owner.get(bit, 0) for bit in members(sensitive)), 0)
    tree, equals = _written_tree(group.written, vertex_of), equated_vertices(group.conjuncts, owner)
    padded = reduce(or_, (1 << vertex_of[position] for position in group.padded), 0)
    return _Vertices(order, owner, tree, _Spans(order), padded, at_risk, equals, group)


# -- classify ------------------------------------------------------------------------------------------------------


def _classified(conjunct: Conjunct, group: JoinGroup, vertices: _Vertices) -> InnerConjunct | NonInnerJoin:
    if conjunct.sides is not None:
        return _non_inner_join(conjunct, conjunct.sides, group, vertices)
    predicate = conjunct.predicate
    reads, below = vertices.read_by(predicate), vertices.spans(conjunct.start, conjunct.end)
    whole = not reads or fallibility.is_meant_to_throw(predicate)
    return InnerConjunct(reads, below, below if whole else reads, not reads or fallibility.may_throw(predicate))


def _with_hidden(group: JoinGroup, vertices: _Vertices) -> dict[int, int]:
    """Column -> its vertices; those of the right side of a semi or anti join may have ids that others have, too."""
    columns = dict(vertices.owner)
    for vertex, position in enumerate(vertices.order):
        item = group.items[position]
        for a in (*item.plan.output, *(e.attribute for e in item.columns if e.attribute is not None)):
            columns[a.bit] = columns.get(a.bit, 0) | 1 << vertex
    return columns


def _non_inner_join(
    conjunct: Conjunct, sides: tuple[tuple[int, int], tuple[int, int]], group: JoinGroup, vertices: _Vertices
) -> NonInnerJoin:
    """An outer, semi or anti join. The right columns of the latter are hidden, so others may have the same ids."""
    predicate = conjunct.predicate
    written = vertices.spans(*sides[0]), vertices.spans(*sides[1])
    hidden = group.items[conjunct.right].plan.output_set if conjunct.right is not None else 0
    columns, reads = [0, hidden & predicate.references], 0
    for bit in members(predicate.references & ~hidden):
        reads |= vertices.owner[bit]
        columns[0 if vertices.owner[bit] & written[0] else 1] |= 1 << bit
    if conjunct.right is not None:
        reads |= written[1]
    supplied = {LEFT: written[1], FULL: written[0] | written[1]}.get(conjunct.join_type, 0)
    return NonInnerJoin(
        conjunct.join_type, written, reads, predicate, (columns[0], columns[1]), fallibility.may_throw(predicate),
        bool(supplied & vertices.at_risk),
    )  # fmt: skip


# -- edges ---------------------------------------------------------------------------------------------------------


def _operator_edge(conjunct: Conjunct, operator: NonInnerJoin, sets: Eligibility) -> OperatorEdge:
    """The edge of an outer, semi or anti join."""
    return OperatorEdge(
        conjunct.predicate, operator.ses, sets.tes, join_type=operator.join_type, left_tes=sets.left_tes,
        right_tes=sets.right_tes, max_left=sets.max_left, max_right=sets.max_right,
        semi_right=0 if conjunct.right is None else operator.written[1], subquery=conjunct.subquery,
    )  # fmt: skip


def _keys(predicate: Expression, vertices: _Vertices) -> Keys | None:
    found = None if predicate.contains & SUBQUERY else equality(predicate)
    if found is None:
        return None
    sides = vertices.read_by(found.left), vertices.read_by(found.right)
    if not sides[0] or not sides[1] or sides[0] & sides[1]:
        return None
    return (sides[0], found.left), (sides[1], found.right)


def _products(edges: list[Edge]) -> list[Edge]:
    """Edges without a predicate, between parts of a side of an operator that nothing else connects: needed products."""
    products: list[Edge] = []
    for operator in edges:
        if not isinstance(operator, OperatorEdge):
            continue
        for side in (operator.left_tes, operator.right_tes):
            parts = [1 << vertex for vertex in members(side)]
            if len(parts) < 2:
                continue
            connecting = [e.tes for e in (*edges, *products) if e is not operator and not e.tes & ~side]
            parts = merge_parts(parts, connecting)
            for one, other in zip(parts, parts[1:]):
                pair = one & -one | other & -other
                products.append(Edge(TRUE, pair, pair, implied=True))
    return products


# -- co-requirements -----------------------------------------------------------------------------------------------


def _co_required_by_operator(conjunct: Conjunct, operator: NonInnerJoin, vertices: _Vertices) -> list[tuple[int, int]]:
    """A semi or anti join whose condition may throw: Spark moves it down to where it finds what it reads."""
    left = operator.ses & ~operator.written[1]
    if conjunct.right is None or not operator.fallible or not left:
        return []
    return [(left, vertices.lowest(left).relations)]


def _co_required_by_conjunct(
    predicate: Expression, ses: int, keys: Keys | None, vertices: _Vertices
) -> list[tuple[int, int]]:
    """An inner conjunct that may throw; Spark does not move one that is meant to."""
    if not fallibility.may_throw(predicate) or fallibility.is_meant_to_throw(predicate):
        return []
    lowest = vertices.lowest(ses)
    pairs = [(ses, lowest.relations), *co_required_by_keys(keys, lowest, vertices.equals)]
    if not is_equi_key(keys, lowest):
        for present in substitution_sets(predicate, vertices.equals, vertices.owner, vertices.fixed):
            needed = vertices.lowest(present) if present else vertices.tree
            pairs.append((present, needed.relations))
    return pairs


def _read_above(group: JoinGroup, owner: Mapping[int, int]) -> list[int]:
    """What predicates above the group read that may throw: Spark moves them down to where they find all of it."""
    found = (reduce(or_, (owner.get(bit, 0) for bit in members(mask)), 0) for mask in group.guards)
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


# -- plans ---------------------------------------------------------------------------------------------------------


def _vertex_plan(item: JoinInput, plans: Mapping[int, LogicalPlan], filters: list[Expression]) -> LogicalPlan:
    plan = with_columns(plans.get(id(item.plan), item.plan), item.columns)
    condition = conjunction(sorted(filters, key=fallibility.may_throw))
    return plan if condition is None else Filter(condition, plan)


def with_columns(plan: LogicalPlan, columns: Iterable[Expression]) -> LogicalPlan:
    """The plan with computed columns added; a column may read one that comes before it."""
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
