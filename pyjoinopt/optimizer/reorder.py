"""Orders every join group of a plan: find the groups, search, put the winners in place.

Groups inside a group's items are ordered first, so that a group is searched over what its items will really be. The
order in which a query is written is no candidate: what the search finds replaces it even where both cost the same, so
that a query gets one plan in however many ways it is written.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import NamedTuple

from pyjoinopt.cost import CostModel
from pyjoinopt.estimation.model.relation_statistics import RelationStatistics
from pyjoinopt.estimation.plans.plan_estimator import PlanEstimates
from pyjoinopt.feedback.learned_rows import LearnedRows, with_true_rows
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.joins.emit.emit_plan import applies_implied_equality, emit
from pyjoinopt.joins.emit.original_joins import as_written
from pyjoinopt.joins.graph.build_hypergraph import build_graph
from pyjoinopt.joins.graph.hypergraph import JoinGraph
from pyjoinopt.joins.groups.barriers import apart, reorder_barriers
from pyjoinopt.joins.groups.eliminate_joins import drop_unused_left_joins, semi_to_inner_joins
from pyjoinopt.joins.groups.find_groups import GroupFinder
from pyjoinopt.joins.groups.join_group import JoinGroup
from pyjoinopt.joins.groups.rank_predicates import with_ranks
from pyjoinopt.joins.join_tree import JoinTree
from pyjoinopt.joins.search.choose_order import search
from pyjoinopt.joins.search.join_costs import cost_of
from pyjoinopt.optimizer.describe_group import tell_group
from pyjoinopt.plan.expressions import Expression, conjuncts, reference
from pyjoinopt.plan.facts.distinct_keys import DistinctKeys
from pyjoinopt.plan.facts.never_null import never_null_above
from pyjoinopt.plan.fallible.window_ranks import ranks
from pyjoinopt.plan.nodes import Aggregate, Filter, LogicalPlan, Project
from pyjoinopt.plan.relation_names import relation_name
from pyjoinopt.plan.required_columns import needed_columns
from pyjoinopt.plan.traversal import parents_of, post_order
from pyjoinopt.report.join_report import JoinReport

#: Of a join graph's relations: what may be built of its sets (see `GraphEstimates.set_buildable`).
TablesOf = Callable[[Sequence[LogicalPlan], GraphEstimates], Callable[[int, float], int]]


_EQUALITIES = frozenset({"EqualTo", "EqualNullSafe"})
_DISCERNED = (
    "a predicate distinguishes values of its join keys that compare as equal (0.0 and -0.0, or strings under a "
    "collation), and the join order determines to which columns Spark copies it"
)


class Reads(NamedTuple):
    """What stands above a group.

    Attributes:
        needed: columns that are read there.
        never_null: columns that are not NULL in any row that is kept there.
        above: conjuncts right above it; None if several readers have their own.
    """

    needed: int
    never_null: int
    above: list[Expression] | None


@dataclass(frozen=True)
class Reorderer:
    """Orders the groups of plans and writes what it did into a report.

    Attributes:
        estimate: rows and bytes of any sub-plan; told what is known of the joins of each group.
        cost: what is minimised.
        budget: pairs that the exact search may look at, a group.
        report: filled with one entry a group of three relations or more, and with refusals.
        memory: what was counted when these groups ran before; told which groups there are.
        seconds: how long the search for one group's order may take.
        tables: says what joins may build of parts of the plan; None to go by expected sizes alone.
        watch_pairs: whether groups of two relations, in which nothing is to be ordered, are estimated and remembered.
        hold: whether Spark will still move semi and anti joins, so that some have to be held; never where a native
            engine runs the query, which may have no existence joins.
        sensitive: columns over which Spark must see no new equality (`plan.facts.equality_substitution`).
        discerning: those of them that a predicate reads which tells equal values apart.
    """

    estimate: PlanEstimates
    cost: CostModel
    budget: int
    report: JoinReport
    memory: LearnedRows
    seconds: float = math.inf
    tables: TablesOf | None = None
    watch_pairs: bool = False
    hold: bool = False
    sensitive: int = 0
    discerning: int = 0

    def apply(self, root: LogicalPlan) -> LogicalPlan:
        """The plan with its groups in the best order found; `root` itself if none changed."""
        finder = GroupFinder()
        groups = finder.find(root)
        for refusal in finder.refusals:
            self.report.refuse(refusal.where, refusal.reason)
        nodes = list(post_order(root))
        ordered_for = _parents_that_read_positions(nodes, root)
        needed, never_null = needed_columns(root), never_null_above(root)
        read: dict[int, int] = {}
        for node in nodes:
            for child in node.children:
                read[id(child)] = read.get(id(child), 0) | node.references
        parents = parents_of(nodes)
        shared = _defined(nodes)
        keys, ranked = DistinctKeys(), ranks(nodes)
        done: dict[int, LogicalPlan] = {}
        for node in nodes:
            region = groups.get(id(node))
            if region is not None and _equates(region, self.discerning):
                self.report.refuse(relation_name(node), _DISCERNED)
                region = None
            plan = None
            stays: list[tuple[LogicalPlan, float, float]] = []
            if region is not None and len(region.items) > 2:
                restore = id(node) in ordered_for
                if not restore and not region.hidden:
                    region = self._without_unread(region, read[id(node)], keys)
                region = with_ranks(semi_to_inner_joins(region, keys, self.sensitive), ranked)
                smaller = len(region.items) < len(groups[id(node)].items)
                above = None if id(node) in shared else conjuncts_above(node, parents)
                reads = Reads(needed[id(node)], never_null[id(node)], above)
                plan, stays = self._order(region, done, reads, restore, smaller)
            elif region is not None and self.watch_pairs and len(region.items) == 2:
                above = None if id(node) in shared else conjuncts_above(node, parents)
                graph, written, _, estimates = self._estimated(
                    region, done, Reads(needed[id(node)], never_null[id(node)], above)
                )
                self.memory.watch(graph, graph.names, _rows_made(estimates, written), above)
            if plan is None:
                plan = node if node.cached else node.with_children(tuple(done[id(c)] for c in node.children))
            done[id(node)] = plan
            self.estimate.add_ctes([plan])  # what reads it is estimated by what it has become
            for operator, rows, bound in stays:
                self.estimate.override_rows(done[id(operator)], rows, bound)
        self.report.defer(lambda: self._tell_walls(root))
        return done[id(root)]

    def _tell_walls(self, root: LogicalPlan) -> None:
        between = reorder_barriers(root)
        if between and not self.report.has_groups and not self.report.refusals:
            self.report.refuse("the whole query", apart(between))
            return
        for kind in between:
            self.report.refuse(kind, "joins are not moved across it: those above and below it are ordered separately")

    def _without_unread(self, region: JoinGroup, read: int, keys: DistinctKeys) -> JoinGroup:
        """The region without left joins that make no difference, which the report is told of."""
        smaller, gone = drop_unused_left_joins(region, read, keys)
        for left, right in gone:
            names = relation_name(region.items[left].plan), relation_name(region.items[right].plan)
            why = f"dropped: no column of {names[1]} is read, and it has one row per join key"
            self.report.eliminated_outer_joins.append(f"left join of {names[0]} and {names[1]} {why}")
        return smaller

    def _estimated(
        self,
        region: JoinGroup,
        done: dict[int, LogicalPlan],
        reads: Reads,
    ) -> tuple[JoinGraph, JoinTree, list[RelationStatistics], GraphEstimates]:
        """The graph of a region, the order it was written in, and what is known of both."""
        plans = {id(item.plan): done[id(item.plan)] for item in region.items.values()}
        graph, written = build_graph(region, plans, self.sensitive)
        statistics = [self.estimate(plan) for plan in graph.relations]
        counted = self.memory.recall(graph, reads.above)
        statistics = with_true_rows(statistics, counted)
        needed = reads.needed
        for alias in region.late.values():
            needed |= alias.references
        estimates = GraphEstimates(graph, statistics, needed, reads.never_null)
        estimates.apply_true_rows(counted)
        if self.tables is not None:
            estimates.set_buildable(self.tables(graph.relations, estimates))
        return graph, written, statistics, estimates

    def _order(
        self,
        region: JoinGroup,
        done: dict[int, LogicalPlan],
        reads: Reads,
        restore: bool,
        smaller: bool,
    ) -> tuple[LogicalPlan | None, list[tuple[LogicalPlan, float, float]]]:
        """The group in the order found, or as written if it is `smaller`.

        If it stays as it is, None, and operators of the group with their rows and upper bounds.
        """
        started = perf_counter()
        graph, written, statistics, estimates = self._estimated(region, done, reads)
        before = cost_of(written, estimates, self.cost, graph)
        ends = perf_counter() + self.seconds
        found = search(graph, estimates, self.cost, self.budget, written, stop=lambda: perf_counter() > ends)
        allowed = graph.allows_order(written) and graph.allows_order(found.tree)
        in_vain = perf_counter() > ends and found.cost > before  # only who was stopped looks at what was written
        moved = allowed and not in_vain
        if why := _why_kept(allowed, in_vain):
            self.report.refuse(f"the group of {', '.join(graph.names)}", why)
        moved &= found.tree.sets != written.sets or applies_implied_equality(graph, written)
        tree, after = (found.tree, found.cost) if moved else (written, before)
        changed = moved or smaller
        seconds = perf_counter() - started
        self.memory.watch(graph, graph.names, _rows_made(estimates, written, tree), reads.above)
        tell_group(
            self.report, graph, statistics, estimates, written, tree, before, after, found.strategy, found.pairs,
            seconds, changed, self.cost,
        )  # fmt: skip
        if not changed:
            return None, [
                (plan, estimates.rows(made), estimates.upper_bound(made)) for plan, made in as_written(graph, region)
            ]
        plan = emit(
            graph, tree, region,
            lambda plan, made: self.estimate.override_rows(plan, estimates.rows(made), estimates.upper_bound(made)),
            estimates.rows if self.hold else None,
        )  # fmt: skip
        if region.hidden or (restore and plan.output != region.top.output):
            columns = tuple(reference(a) for a in region.top.output)
            plan = Project(columns, plan, info={"hidden": sorted(set(region.hidden))})
        return plan, []


def _equates(region: JoinGroup, columns: int) -> bool:
    """True if Spark could copy predicates over some columns across an equality of the group."""
    seen = (conjunct.predicate for conjunct in region.conjuncts if conjunct.subquery is None)
    equalities = (e for predicate in seen for e in conjuncts(predicate) if e.kind in _EQUALITIES)
    return bool(columns) and any(e.references & columns for e in equalities)


def _why_kept(allowed: bool, in_vain: bool) -> str:
    """Why the order that the search found for a group is not used; empty if it is."""
    if not allowed:
        return "it cannot be proved that another order of it gives the same rows"
    return "the search for its order ran out of time before it found a better one" if in_vain else ""


def _rows_made(estimates: GraphEstimates, *orders: JoinTree) -> dict[int, float]:
    """Rows of all sets of relations that some orders make."""
    return {n.relations: estimates.rows(n.relations) for order in orders for n in order.post_order()}


def _parents_that_read_positions(nodes: list[LogicalPlan], root: LogicalPlan) -> set[int]:
    """Ids of nodes whose column order or choice matters to a parent; projections and aggregates read by id."""
    ids = {id(root)}
    for node in nodes:
        if not isinstance(node, (Project, Aggregate)):
            ids.update(id(child) for child in node.children)
    return ids


def _defined(nodes: list[LogicalPlan]) -> set[int]:
    """Ids of nodes of common table expressions that are read in several places, each of which Spark filters apart."""
    found: set[int] = set()
    for node in reversed(nodes):
        if node.kind == "CTERelationDef" or id(node) in found:
            found.update(id(child) for child in node.children)
    return found


def conjuncts_above(node: LogicalPlan, parents: dict[int, list[LogicalPlan]]) -> list[Expression]:
    """The conjuncts of filters that stand right above a node, through projections that only pick columns."""
    found: list[Expression] = []
    while len(above := parents.get(id(node), [])) == 1:
        node = above[0]
        if isinstance(node, Filter):
            found += conjuncts(node.condition)
        elif not (isinstance(node, Project) and node.only_attributes):
            break
    return found
