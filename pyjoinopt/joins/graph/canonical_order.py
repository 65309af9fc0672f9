"""An order of the vertices that does not depend on how the query was written.

Orders of equal cost are common, and a search keeps the one it meets first. If vertices were numbered as written, two
spellings of a query would get two plans. So they are numbered by what they *are*: the tables that they read, their
size, their neighbours, the columns that are read of them. Relations that are alike so far (the copies of a self-join)
are distinguished by their filters and, round by round, by the predicates that connect them with others and by which
those are, then by the plan of the relation. If that does not distinguish them either, it makes no difference which is
which.

Aliases come last: a plan that Spark has begun to optimise has none, and gets the same order as the analysed plan. For
the same reason the plan of a relation comes after all that both plans have in common.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.joins.graph.hypergraph import JoinGraph
from pyjoinopt.plan.digest import Names
from pyjoinopt.plan.expressions import Expression
from pyjoinopt.plan.nodes import LogicalPlan
from pyjoinopt.plan.relation_names import source_names
from pyjoinopt.util.bitset import members

_Tie = tuple[str, int]  # a predicate as one of its vertices sees it, and the other vertices


def canonical_order(graph: JoinGraph, estimates: GraphEstimates) -> list[int]:
    """All vertices, canonically ordered."""
    roles: list[list[tuple[str, int]]] = [[] for _ in range(len(graph))]
    for edge in graph.operators:
        for side, tes in enumerate((edge.left_tes, edge.right_tes)):
            for v in members(edge.ses & tes):
                roles[v].append((edge.join_type, side))
    keys = []
    for v in range(len(graph)):
        size = estimates.size(1 << v)
        read = tuple(sorted(a.name for a in graph.relations[v].output if estimates.reads(a.bit)))
        degree = graph.adjacency[v].bit_count()
        keys.append((tuple(sorted(roles[v])), source_names(graph.relations[v]), size.rows, size.bytes, degree, read))
    colours = _ranks(keys)
    if len(set(colours)) < len(colours):
        colours = _refined(graph, colours)
    return sorted(range(len(graph)), key=lambda v: (colours[v], graph.names[v], v))


def _refined(graph: JoinGraph, colours: list[int]) -> list[int]:
    """Colours that as few vertices as possible share."""
    several = {colour for colour, count in Counter(colours).items() if count > 1}
    alike = [v for v, colour in enumerate(colours) if colour in several]
    names = Names(_columns, None)
    ties = {v: _ties(graph, v, names) for v in alike}
    filters = {v: _filters(graph, v, names) for v in alike}
    colours = _by_neighbours(_ranks([(colour, filters.get(v, ())) for v, colour in enumerate(colours)]), ties)
    if len(set(colours)) == len(colours):
        return colours
    plans = {v: names.plan(graph.relations[v]) for v in alike}
    return _by_neighbours(_ranks([(colour, plans.get(v, "")) for v, colour in enumerate(colours)]), ties)


def _by_neighbours(colours: list[int], ties: dict[int, list[_Tie]]) -> list[int]:
    """Colours, made finer for as long as what vertices are connected with distinguishes them."""
    while (seen := len(set(colours))) < len(colours):
        near = [
            sorted((text, sorted(colours[w] for w in members(others))) for text, others in ties.get(v, ()))
            for v in range(len(colours))
        ]
        colours = _ranks([(colour, repr(tied)) for colour, tied in zip(colours, near)])
        if len(set(colours)) == seen:
            break
    return colours


def _filters(graph: JoinGraph, vertex: int, names: Names) -> tuple[str, ...]:
    """The filters of a relation, without those that Spark infers from joins."""
    own = dict.fromkeys(members(graph.relations[vertex].output_set), "own")
    return tuple(sorted(names.expression(e, own) for e in graph.filters[vertex] if e.kind != "IsNotNull"))


def _columns(leaf: LogicalPlan) -> str:
    return " ".join(column.name for column in leaf.output)


def _ties(graph: JoinGraph, vertex: int, names: Names) -> list[_Tie]:
    """What connects a vertex with others; which side of an equality is written first makes no difference."""
    own = dict.fromkeys(members(graph.relations[vertex].output_set), "own")

    def name(e: Expression) -> str:
        sides = e.children if e.kind == "EqualTo" else (e,)
        return " ".join(sorted(names.expression(side, own) for side in sides))

    return [(name(e.predicate), e.tes & ~(1 << vertex)) for e in graph.edges_of[vertex]]


def _ranks(keys: list[Any]) -> list[int]:
    rank = {key: i for i, key in enumerate(sorted(set(keys)))}
    return [rank[key] for key in keys]
