"""`strategy="spark"` and `strategy="heuristic"`: Spark's own two ways to order joins, run here.

Both hand the whole plan to a rule that mirrors Catalyst's. What the rule did is read off by finding the join groups
before and after: a group is known again by its items, which the rules move but do not touch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

from pyjoinopt.catalyst.rules.cost_based_join_reorder import cost_based_join_reorder
from pyjoinopt.catalyst.rules.reorder_join import reorder_join
from pyjoinopt.catalyst.statistics.plan_stats_visitor import SparkStatistics, told_by_spark
from pyjoinopt.catalyst.support.prune_join_inputs import prune_join_inputs
from pyjoinopt.catalyst.support.reordered_join import ReorderedGroup
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.joins.graph.build_hypergraph import build_graph, written_positions
from pyjoinopt.joins.groups.find_groups import GroupFinder
from pyjoinopt.joins.groups.join_group import JoinGroup
from pyjoinopt.joins.join_tree import JoinTree
from pyjoinopt.joins.search.join_costs import cost_of
from pyjoinopt.optimizer.describe_group import tell_group
from pyjoinopt.optimizer.reorder import Reorderer
from pyjoinopt.plan.fallible import fallibility
from pyjoinopt.plan.nodes import Filter, LogicalPlan, Project
from pyjoinopt.plan.traversal import post_order

Ask = Callable[..., dict[int, dict[str, Any]]]


def heuristic_order(plan: LogicalPlan, reorderer: Reorderer) -> LogicalPlan:
    """Spark's ReorderJoin: written order, but no cross product where a predicate can connect."""
    started = perf_counter()
    result = reorder_join(plan)
    record(plan, result, "heuristic", reorderer, perf_counter() - started, {})
    return result


def spark_order(
    plan: LogicalPlan, ask: Ask, conf: Mapping[str, str], reorderer: Reorderer, spark: tuple[int, int]
) -> LogicalPlan:
    """Spark's CostBasedJoinReorder on statistics as Spark computes them; it needs a row count of every relation.

    ReorderJoin and the pruning of columns run first, as they do in Spark.

    Args:
        plan: with its predicates pushed down.
        ask: see `Gateway.statistics`.
        conf: Spark's configuration.
        reorderer: what the report is written with.
        spark: (major, minor) of the Spark whose habits are followed.
    """
    started = perf_counter()
    statistics = SparkStatistics(told_by_spark(ask, post_order(plan)), spark)
    done: list[ReorderedGroup] = []
    heuristic = reorder_join(plan)
    pruned = prune_join_inputs(heuristic)
    result = cost_based_join_reorder(pruned, statistics, conf=conf, groups=done)
    if result is pruned:
        result = heuristic
    if not may_be_used(plan, result):
        reorderer.report.refuse(
            "the whole query",
            "a predicate that may fail would be evaluated on rows that the written order removes first",
        )
        return plan
    pairs = {len(group.relations): group.pairs for group in done}
    record(plan, result, "spark", reorderer, perf_counter() - started, pairs)
    return result


def may_be_used(before: LogicalPlan, after: LogicalPlan) -> bool:
    """True if no predicate that may fail meets rows in `after` that it does not meet in `before`.

    Spark's own rule does not ask. Nor does this package's search need to: it never builds such an order.
    """
    ordered = {_items(region): region for region in GroupFinder().find(after).values()}
    for region in GroupFinder().find(before).values():
        new = ordered.get(_items(region))
        if len(region.items) < 3 or not any(fallibility.may_throw(c.predicate) for c in region.conjuncts):
            continue
        graph, _ = build_graph(region, {})
        if new is None or not all(graph.allows(n.relations) for n in _as_vertices(region, new).post_order()):
            return False
    return True


def record(
    before: LogicalPlan, after: LogicalPlan, strategy: str, reorderer: Reorderer, seconds: float, pairs: dict[int, int]
) -> None:
    """Write the groups of `before` into the report, with the order that each has in `after`."""
    finder = GroupFinder()
    groups = finder.find(before)
    for refusal in finder.refusals:
        reorderer.report.refuse(refusal.where, refusal.reason)
    ordered = {_items(region): region for region in GroupFinder().find(after).values()}
    for region in groups.values():
        if len(region.items) < 3:
            continue
        graph, written = build_graph(region, {})
        new = ordered.get(_items(region))
        tree = _as_vertices(region, new) if new is not None else written
        statistics = [reorderer.estimate(plan) for plan in graph.relations]
        estimates = GraphEstimates(graph, statistics)
        costs = [cost_of(t, estimates, reorderer.cost, graph) for t in (written, tree)]
        tell_group(
            reorderer.report, graph, statistics, estimates, written, tree, costs[0], costs[1], strategy,
            pairs.get(len(region.items), 0), seconds, written.show(graph.names) != tree.show(graph.names),
            reorderer.cost,
        )  # fmt: skip


def _items(region: JoinGroup) -> frozenset[int]:
    return frozenset(_core(item.plan) for item in region.items.values())


def _core(plan: LogicalPlan) -> int:
    """An item without the filters and pruning projections that a rule may have put on it."""
    while isinstance(plan, Filter) or (isinstance(plan, Project) and plan.only_attributes):
        plan = plan.child
    return id(plan)


def _as_vertices(before: JoinGroup, after: JoinGroup) -> JoinTree:
    """The order of `after` in the vertex numbers of `before`."""
    vertex = {_core(before.items[p].plan): v for v, p in enumerate(written_positions(before))}
    plans = build_graph(after, {})[1]
    order = [vertex[_core(after.items[p].plan)] for p in written_positions(after)]
    return plans.renumbered(order)
