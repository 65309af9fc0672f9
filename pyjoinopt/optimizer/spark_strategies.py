"""`strategy="spark"` and `strategy="heuristic"`: Spark's own two ways to order joins, run here.

Both apply a reimplementation of a Catalyst rule to the whole plan. What the rule did is found by comparing the join
groups before and after: a group is recognised by its inputs, which the rules move but do not change.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter

from pyjoinopt.bridge.gateway import Gateway
from pyjoinopt.catalyst.rules.cost_based_join_reorder import cost_based_join_reorder
from pyjoinopt.catalyst.rules.reorder_join import reorder_join
from pyjoinopt.catalyst.statistics.plan_stats_visitor import SparkStatistics, reported_by_spark
from pyjoinopt.catalyst.support.prune_join_inputs import prune_join_inputs
from pyjoinopt.catalyst.support.reordered_join import ReorderedGroup
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.joins.graph.build_hypergraph import build_graph, written_positions
from pyjoinopt.joins.groups.find_groups import Refusal, find_groups
from pyjoinopt.joins.groups.join_group import JoinGroup
from pyjoinopt.joins.join_tree import JoinTree
from pyjoinopt.joins.search.join_costs import JoinCosts
from pyjoinopt.optimizer.order_group import EstimatedGroup, OrderedGroup, OrderingContext
from pyjoinopt.optimizer.reorder import ChangedGroup, Reordered
from pyjoinopt.plan.fallible import fallibility
from pyjoinopt.plan.nodes import Filter, LogicalPlan, Project
from pyjoinopt.plan.traversal import post_order

_FALLIBLE = "a predicate that may fail would be evaluated on rows that the written order removes first"


def heuristic_order(plan: LogicalPlan, context: OrderingContext) -> Reordered:
    """Spark's ReorderJoin: written order, but no cross product where a predicate can connect."""
    started = perf_counter()
    result = reorder_join(plan)
    return _compared(plan, result, "heuristic", context, perf_counter() - started, {})


def spark_order(
    plan: LogicalPlan,
    gateway: Gateway,
    conf: Mapping[str, str],
    context: OrderingContext,
    spark: tuple[int, int],
) -> Reordered:
    """Spark's CostBasedJoinReorder on statistics as Spark computes them; it needs a row count of every relation.

    ReorderJoin and the pruning of columns run first, as they do in Spark.

    Args:
        plan: with its predicates pushed down.
        gateway: answers questions about the plan.
        conf: Spark's configuration.
        context: what the report's estimates and costs are made with.
        spark: (major, minor) of the Spark that is imitated.
    """
    started = perf_counter()
    statistics = SparkStatistics(reported_by_spark(gateway.statistics, post_order(plan)), spark)
    done: list[ReorderedGroup] = []
    heuristic = reorder_join(plan)
    pruned = prune_join_inputs(heuristic)
    result = cost_based_join_reorder(pruned, statistics, conf=conf, groups=done)
    if result is pruned:
        result = heuristic
    if not may_be_used(plan, result):
        return Reordered(plan, refusals=[Refusal("the whole query", _FALLIBLE)])
    pairs = {len(group.relations): group.pairs for group in done}
    return _compared(plan, result, "spark", context, perf_counter() - started, pairs)


def may_be_used(before: LogicalPlan, after: LogicalPlan) -> bool:
    """Whether no predicate that may throw is evaluated in `after` on rows on which it is not evaluated in `before`.

    Spark's own rule does not check that. This package's search need not: it never builds such an order.
    """
    ordered = {_items(region): region for region in find_groups(after).groups.values()}
    for region in find_groups(before).groups.values():
        new = ordered.get(_items(region))
        if len(region.items) < 3 or not any(fallibility.may_throw(c.predicate) for c in region.conjuncts):
            continue
        graph, _ = build_graph(region, {})
        if new is None or not all(graph.allows(n.relations) for n in _as_vertices(region, new).post_order()):
            return False
    return True


def _compared(
    before: LogicalPlan,
    after: LogicalPlan,
    strategy: str,
    context: OrderingContext,
    seconds: float,
    pairs: Mapping[int, int],
) -> Reordered:
    """The groups of `before`, with the order that each has in `after`; `before` itself if none has another one."""
    written_groups = find_groups(before)
    result = Reordered(after, refusals=list(written_groups.refusals))
    ordered = {_items(group): group for group in find_groups(after).groups.values()}
    for group in written_groups.groups.values():
        if len(group.items) < 3:
            continue
        graph, written = build_graph(group, {})
        new = ordered.get(_items(group))
        tree = _as_vertices(group, new) if new is not None else written
        statistics = [context.estimate(plan) for plan in graph.relations]
        estimates = GraphEstimates(graph, statistics)
        costs = JoinCosts(graph, estimates, context.cost)
        moved = written.show(graph.names) != tree.show(graph.names)
        found = OrderedGroup(
            group, EstimatedGroup(graph, written, statistics, estimates), costs, tree, costs.order(written),
            costs.order(tree), strategy, pairs.get(len(group.items), 0), seconds, moved,
        )  # fmt: skip
        result.groups.append(ChangedGroup(found, moved))
    if not any(group.changed for group in result.groups):
        result.plan = before  # the rule may build the same order anew
    return result


def _items(group: JoinGroup) -> frozenset[int]:
    return frozenset(_core(item.plan) for item in group.items.values())


def _core(plan: LogicalPlan) -> int:
    """An input without the filters and pruning projections that a rule may have put on it."""
    while isinstance(plan, Filter) or (isinstance(plan, Project) and plan.only_attributes):
        plan = plan.child
    return id(plan)


def _as_vertices(before: JoinGroup, after: JoinGroup) -> JoinTree:
    """The order of `after` in the vertex numbers of `before`."""
    vertex = {_core(before.items[p].plan): v for v, p in enumerate(written_positions(before))}
    plans = build_graph(after, {})[1]
    order = [vertex[_core(after.items[p].plan)] for p in written_positions(after)]
    return plans.renumbered(order)
