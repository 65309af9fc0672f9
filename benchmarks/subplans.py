"""The join groups of a query and the sub-plans of each.

A sub-plan is a connected set of relations of a group. Sets are ints, with bit *i* for relation *i* of the group.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from pyjoinopt.bridge.decode import Export
from pyjoinopt.joins.emit.emit_plan import inner_join
from pyjoinopt.joins.emit.join_predicates import join_predicates
from pyjoinopt.joins.emit.original_joins import original_joins
from pyjoinopt.joins.graph.build_hypergraph import build_graph
from pyjoinopt.joins.graph.hypergraph import Edge, JoinGraph
from pyjoinopt.joins.groups.find_groups import find_groups
from pyjoinopt.joins.groups.join_group import JoinGroup
from pyjoinopt.optimizer.join_rows import below_semi_joins
from pyjoinopt.plan.expressions import OUTER_REFERENCE, describe
from pyjoinopt.plan.format import show
from pyjoinopt.plan.nodes import Join, LogicalPlan, Project
from pyjoinopt.plan.traversal import map_subqueries, post_order
from pyjoinopt.rewrites.normalise import RewriteContext, normalise
from pyjoinopt.util.bitset import members

#: The number of sets to enumerate in a group before some are chosen.
_MOST_FOUND = 100_000


@dataclass
class Group:
    """A join group of a query.

    Attributes:
        export: the query.
        graph: its relations and edges.
        sets: the connected sets that are graded.
        key: identifies it, see `name_of`.
        joins: operators of the plan, each with the set whose join it makes.
        below_semi: whether the group is part of the right side of a semi join.
        estimates: by each setting of `statistics`, the rows of the sets.
    """

    export: Export
    graph: JoinGraph
    sets: list[int]
    key: str
    joins: list[tuple[LogicalPlan, int]] = field(default_factory=list)
    below_semi: bool = False
    estimates: dict[str, list[float]] = field(default_factory=dict)


def normal_plans(export: Export) -> list[LogicalPlan]:
    """The plans of a query and of its subqueries, in the form in which the optimizer looks for join groups."""
    plans: list[LogicalPlan] = []

    def travel(plan: LogicalPlan) -> LogicalPlan:
        map_subqueries(plan, travel)
        if any(isinstance(node, Join) for node in post_order(plan)):
            plans.append(normalise(plan, RewriteContext(export.filters_null)).plan)
        return plan

    travel(export.root)
    return plans


def groups_of(export: Export, plans: Iterable[LogicalPlan], most: int) -> Iterator[Group]:
    """The join groups of the plans of an export, with their connected sets, up to a limit."""
    found: list[tuple[JoinGraph, JoinGroup, bool]] = []
    for plan in plans:
        semi = below_semi_joins(list(post_order(plan)))
        groups = find_groups(plan).groups.items()
        found += [(build_graph(group, {})[0], group, top in semi) for top, group in groups if len(group.items) > 1]
    for graph, group, below_semi in found:
        key = name_of(graph)
        whole = {1 << v for v, plan in enumerate(graph.relations) if table_of(plan) is not None}
        sets = [relations for relations in connected_sets(graph, most, key) if relations not in whole]
        yield Group(export, graph, sets, key, list(original_joins(graph, group)), below_semi)


def name_of(graph: JoinGraph) -> str:
    """A hash that identifies a group, independently of the database of its tables."""
    text = "\n".join([*map(show, graph.relations), *(describe(edge.predicate, 10_000) for edge in graph.edges)])
    text = re.sub(r"\b(?:\w+\.)+(\w+)", r"\1", text)
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def table_of(plan: LogicalPlan) -> LogicalPlan | None:
    """The leaf, if a relation is a whole table."""
    while plan.kind in ("SubqueryAlias", "View") or (isinstance(plan, Project) and plan.only_attributes):
        plan = plan.children[0]
    return plan if plan.kind == "LogicalRelation" and (plan.info.get("rel") or {}).get("name") else None


def is_correlated(graph: JoinGraph) -> bool:
    """True if it reads columns of an outer query, so that it has no rows of its own."""
    nodes = (node for plan in graph.relations for node in post_order(plan))
    return any(e.contains & OUTER_REFERENCE for node in nodes for e in node.expressions)


def connected_sets(graph: JoinGraph, most: int, seed: str) -> list[int]:
    """The connected sets of relations, including single relations.

    Args:
        graph: the join graph.
        most: of more sets than this as many are kept, always the same ones: those with the lowest hash, and the whole.
        seed: goes into the hash.

    Returns:
        The sets, small ones first.
    """
    level = [1 << v for v in range(len(graph))]
    found = list(level)
    while level and len(found) < _MOST_FOUND:
        larger: dict[int, None] = {}
        for known in level:
            for v in members(graph.everything & ~known):
                if _joinable(graph, known, 1 << v):
                    larger.setdefault(known | 1 << v)
        level = list(larger)
        found += level
    if len(found) > most:
        by_hash = sorted(found, key=lambda s: hashlib.blake2b(f"{seed}/{s}".encode(), digest_size=8).digest())
        found = list(dict.fromkeys((max(found, key=int.bit_count), *by_hash)))[:most]
    return sorted(found, key=lambda s: (s.bit_count(), s))


def _joinable(graph: JoinGraph, known: int, new: int) -> bool:
    for right, edge in graph.semi_rights.items():
        if right in (new, known) and edge.tes & ~(known | new):
            return False
    return graph.allows(known | new) and graph.connected(known, new)


def applied(graph: JoinGraph, relations: int) -> list[Edge]:
    """The edges whose predicates are applied in the join of a set."""
    return [edge for edge in graph.edges if edge.tes and not edge.tes & ~relations]


def as_plan(graph: JoinGraph, relations: int) -> LogicalPlan:
    """The join of a set, in the written order as far as predicates connect it."""
    rest = [v for v in members(relations) if 1 << v not in graph.semi_rights] or list(members(relations))
    rest += [v for v in members(relations) if v not in rest]
    plan, joined = graph.relations[rest[0]], 1 << rest.pop(0)
    while rest:
        v = next((v for v in rest if _joinable(graph, joined, 1 << v)), rest[0])
        rest.remove(v)
        looking = graph.semi_rights.get(1 << v)
        if looking is not None:
            plan = Join(plan, graph.relations[v], looking.join_type, looking.predicate)
        else:
            plan = inner_join(plan, graph.relations[v], join_predicates(graph, joined, 1 << v))
        joined |= 1 << v
    return plan
