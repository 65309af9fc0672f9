"""Which sets of vertices the operators of a group make, in the plan as it was written.

What is known of a set holds for an operator that has all of it below, with all predicates that can be applied there.
A plan may apply one later than it could, or leave out one that only follows from others; operators below that point
are left out. The top of a group makes all of it, however it came to be.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import or_

from pyjoinopt.joins.graph.build_hypergraph import written_positions
from pyjoinopt.joins.graph.hypergraph import Edge, JoinGraph
from pyjoinopt.joins.groups.join_group import JoinGroup
from pyjoinopt.plan.expressions import TRUE, conjuncts
from pyjoinopt.plan.nodes import INNER, Filter, Join, LogicalPlan
from pyjoinopt.util.bitset import members
from pyjoinopt.util.disjoint_sets import DisjointSets


def original_joins(graph: JoinGraph, group: JoinGroup) -> Iterator[tuple[LogicalPlan, int]]:
    """Joins and filters of a group, each with the vertices whose join it makes.

    Args:
        graph: of the group.
        group: the group as written.
    """
    yield group.top, graph.everything
    vertex_of = {id(group.items[p].plan): 1 << v for v, p in enumerate(written_positions(group))}
    if len(vertex_of) < len(group.items):
        return  # one plan in two places cannot be distinguished
    below: dict[int, tuple[int, frozenset[object]]] = {}
    stack: list[tuple[LogicalPlan, bool]] = [(group.top, False)]
    while stack:
        node, expanded = stack.pop()
        if id(node) in vertex_of:
            below[id(node)] = vertex_of[id(node)], frozenset()
        elif not expanded:
            stack.append((node, True))
            stack.extend((child, False) for child in node.children)
        else:
            parts = [below[id(child)] for child in node.children]
            relations = reduce(or_, (part[0] for part in parts), 0)
            applied = frozenset().union(*(part[1] for part in parts))
            if isinstance(node, (Filter, Join)):
                applied |= {e.key for e in conjuncts(node.condition)}
                if node is not group.top and relations & (relations - 1) and _has_all(graph, relations, applied):
                    yield node, relations
            below[id(node)] = relations, applied


def _has_all(graph: JoinGraph, relations: int, applied: frozenset[object]) -> bool:
    """Are all predicates of a set applied, or do they follow from those that are?"""
    filters = [e for v in members(relations) for e in graph.filters[v]]
    if any(e.key not in applied for e in filters):
        return False
    inside = [e for e in graph.edges if not e.tes & ~relations and e.predicate is not TRUE]
    if any(e.join_type == INNER and not e.implied and e.predicate.key not in applied for e in inside):
        return False
    connected = DisjointSets[object]()
    for edge in inside:
        if edge.keys is not None and not edge.implied:
            connected.union(*_ends(edge))
    groups = [set(group) for group in connected.groups()]
    return all(any(set(_ends(e)) <= group for group in groups) for e in inside if e.implied and e.keys is not None)


def _ends(edge: Edge) -> list[tuple[int, object]]:
    assert edge.keys is not None
    return [(side, e.key) for side, e in edge.keys]
