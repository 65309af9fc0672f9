"""CostBasedJoinReorder: Spark's own cost-based order of inner joins.

A group is a maximal tree of inner joins that have a condition and no hint; projections of plain columns in between
are looked through. If it has three to twelve relations and a row count is known of each, `join_reorder_dp` searches
the best tree. Groups that do not qualify keep their order as a whole: no part of them is tried. Groups inside a
relation (below an aggregate, a union, an outer join) are groups of their own.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyjoinopt.catalyst.rules.join_reorder_dp import JoinReorderDP
from pyjoinopt.catalyst.rules.join_reorder_dp_filters import build_join_graph_info
from pyjoinopt.catalyst.rules.rule_context import Statistics
from pyjoinopt.catalyst.support.predicate_helper import filtered
from pyjoinopt.catalyst.support.reordered_join import ReorderedGroup
from pyjoinopt.plan.expressions import Expression, conjuncts, reference
from pyjoinopt.plan.fallible import fallibility
from pyjoinopt.plan.nodes import INNER_LIKE, NO_HINT, Join, LogicalPlan, Project
from pyjoinopt.plan.operator_kinds import is_only_a_name
from pyjoinopt.plan.traversal import transform_down
from pyjoinopt.util.node_memo import NodeMemo


def cost_based_join_reorder(
    plan: LogicalPlan,
    statistics: Statistics,
    *,
    conf: Mapping[str, str] | None = None,
    as_catalyst: bool = False,
    groups: list[ReorderedGroup] | None = None,
) -> LogicalPlan:
    """Order every group of inner joins as Spark's cost-based optimizer would.

    One thing is done better than there. The search places predicates over several relations only. A predicate over
    one relation that was left in a join condition is applied on that relation here (above the joins, if it could fail
    on rows that they remove); Spark 4 forgets it.

    Args:
        plan: a plan with its predicates pushed down; cached sub-plans are left as they are.
        statistics: of each relation of a group, and of its leaf; None if the row count is unknown.
        conf: Spark's configuration; `dp.threshold` (12), `card.weight` (0.7) and `dp.star.filter` (off) under
            `spark.sql.cbo.joinReorder.` are read, and what `find_star_joins` reads. That it was called is taken as
            leave to work: the switches are not.
        as_catalyst: also order groups with Python UDFs, subqueries or outer references in their conditions.
        groups: gets one entry for every group that was searched.

    Returns:
        The plan, the very same object if every group is in the best order already.
    """
    rule = _Rule(statistics, conf or {}, as_catalyst, groups)
    return transform_down(plan, rule.at)


class _Rule:
    def __init__(
        self,
        statistics: Statistics,
        conf: Mapping[str, str],
        as_catalyst: bool,
        groups: list[ReorderedGroup] | None,
    ) -> None:
        self.statistics = statistics
        self.conf = conf
        self.threshold = int(conf.get("spark.sql.cbo.joinReorder.dp.threshold", 12))
        self.card_weight = float(conf.get("spark.sql.cbo.joinReorder.card.weight", 0.7))
        self.as_catalyst = as_catalyst
        self.groups = groups
        self.ordered = NodeMemo[LogicalPlan, bool]()

    def at(self, node: LogicalPlan) -> LogicalPlan:
        if node in self.ordered or node.cached or top_join(node) is None:
            return node
        result = self._reorder(node)
        self._mark(result)
        return result

    def _reorder(self, top: LogicalPlan) -> LogicalPlan:
        items, conditions = extract_inner_joins(top)
        if not 2 < len(items) <= self.threshold or not conditions:
            return top
        if not self.as_catalyst and not all(fallibility.is_movable(p) for p in conditions):
            return top
        known = []
        for item in items:
            statistics = self.statistics(item)
            if statistics is None:
                return top
            known.append(statistics)
        relations, joining, on_top = _place_one_sided(items, conditions)
        needed = top.output_set
        for predicate in on_top:
            needed |= predicate.references
        filters = build_join_graph_info(items, conditions, self.statistics, self.conf)
        search = JoinReorderDP(relations, known, joining, needed, self.card_weight, filters)
        best = search.run()
        if best is None:
            return top
        tree = _written(top, items)
        written = search.cost_of(tree)
        result = top
        if best.tree != tree:
            result = filtered(on_top, best.join)
            if [a.bit for a in result.output] != [a.bit for a in top.output]:
                result = Project(tuple(reference(a) for a in top.output), result)
        if self.groups is not None:
            costs = (written.rows, written.bytes, best.rows, best.bytes)
            self.groups.append(ReorderedGroup(tuple(items), tuple(conditions), top, result, *costs, search.pairs))
        return result

    def _mark(self, top: LogicalPlan) -> None:
        """Remember the joins of a finished group, so that no part of it is taken for a group again.

        Like Catalyst's `replaceWithOrderedJoin` it looks through any projection here, so joins right below a computed
        projection inside the group are passed over too.
        """
        stack = [top]
        while stack:
            node = stack.pop()
            if node.cached:
                continue
            if _orderable(node):
                self.ordered[node] = True
                stack.extend(node.children)
            elif isinstance(node, Project) or is_only_a_name(node) or (node is top and node.kind == "Filter"):
                if node is top or top_join(node, any_project=True) is not None:
                    self.ordered[node] = True
                    stack.append(node.children[0])


def _orderable(node: LogicalPlan) -> bool:
    return (
        isinstance(node, Join)
        and node.join_type in INNER_LIKE
        and node.condition is not None
        and node.hint == NO_HINT
        and not node.cached
    )


def top_join(node: LogicalPlan, any_project: bool = False) -> Join | None:
    """The join that a group reached at `node` starts with: itself, or below names and one projection of columns."""
    projected = False
    while not node.cached:
        if isinstance(node, Join):
            return node if _orderable(node) else None
        if isinstance(node, Project):
            if projected or not (any_project or node.only_attributes):
                return None
            projected = True
        elif not is_only_a_name(node):
            return None
        node = node.children[0]
    return None


def extract_inner_joins(top: LogicalPlan) -> tuple[list[LogicalPlan], list[Expression]]:
    """The relations of a group, left to right, and its distinct conjuncts, innermost first."""
    items: list[LogicalPlan] = []
    conditions: dict[object, Expression] = {}
    stack: list[tuple[LogicalPlan, bool]] = [(top, False)]
    while stack:
        node, expanded = stack.pop()
        join = top_join(node)
        if join is None:
            items.append(node)
        elif expanded:
            for predicate in conjuncts(join.condition):
                conditions.setdefault(predicate.key, predicate)
        else:
            stack += ((join, True), (join.right, False), (join.left, False))
    return items, list(conditions.values())


def _written(top: LogicalPlan, items: list[LogicalPlan]) -> object:
    """The tree as it is: an item's number, or a pair of trees."""
    trees: list[object] = []
    numbers = iter(range(len(items)))
    stack: list[tuple[LogicalPlan, bool]] = [(top, False)]
    while stack:
        node, expanded = stack.pop()
        join = top_join(node)
        if join is None:
            trees.append(next(numbers))
        elif expanded:
            right, left = trees.pop(), trees.pop()
            trees.append((left, right))
        else:
            stack += ((join, True), (join.right, False), (join.left, False))
    return trees[0]


def _place_one_sided(
    items: list[LogicalPlan], conditions: list[Expression]
) -> tuple[list[LogicalPlan], list[Expression], list[Expression]]:
    """Relations with their own predicates on them, the predicates over several relations, and those for the top."""
    own: list[list[Expression]] = [[] for _ in items]
    joining: list[Expression] = []
    on_top: list[Expression] = []
    for predicate in conditions:
        home = next((i for i, item in enumerate(items) if not predicate.references & ~item.output_set), None)
        if home is None:
            joining.append(predicate)
        elif fallibility.is_meant_to_throw(predicate) or fallibility.may_throw(predicate):
            on_top.append(predicate)
        else:
            own[home].append(predicate)
    return [filtered(predicates, item) for item, predicates in zip(items, own)], joining, on_top
