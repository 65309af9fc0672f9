"""Spark's own statistics of whole plans, computed from those of the relations."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pyjoinopt.catalyst.statistics.column_stat import HUGE, CatalystStatistics, PlanSize
from pyjoinopt.catalyst.statistics.filter_estimation import filter_statistics
from pyjoinopt.catalyst.statistics.join_estimation import join_statistics
from pyjoinopt.catalyst.statistics.operator_estimation import in_proportion, operator_size, product
from pyjoinopt.catalyst.statistics.predicate_estimation import CAREFUL
from pyjoinopt.estimation.sources.jvm_questions import RequestStatistics
from pyjoinopt.plan.equi_keys import hash_keys
from pyjoinopt.plan.facts.constraints import PlanFacts, is_unique
from pyjoinopt.plan.nodes import ANTI, INNER, INNER_LIKE, OUTER, SEMI, Filter, Join, LogicalPlan
from pyjoinopt.util.node_memo import NodeMemo

Given = Callable[[LogicalPlan], "PlanSize | CatalystStatistics | None"]


class SparkStatistics:
    """Statistics of plans as Spark's cost-based optimizer computes them (Catalyst's `BasicStatsPlanVisitor`).

    Args:
        given: what is known of a plan beforehand, of every relation if possible; None to have it computed.
        spark: count as this version of Spark does.
    """

    def __init__(self, given: Given, spark: tuple[int, int] = CAREFUL) -> None:
        self.given = given
        self.spark = spark
        self.facts = PlanFacts()
        self._known = NodeMemo[LogicalPlan, PlanSize]()

    def __call__(self, plan: LogicalPlan) -> CatalystStatistics | None:
        """Statistics of a plan whose row count is known, else None."""
        return self.size(plan).counted

    def size(self, plan: LogicalPlan) -> PlanSize:
        """What is known of a plan, computed once per node and without recursion."""
        stack = [plan]
        while stack:
            node = stack.pop()
            if node in self._known:
                continue
            given = self.given(node)
            missing = [child for child in node.children if given is None and child not in self._known]
            if given is not None:
                self.remember(node, given)
            elif missing:
                stack.append(node)
                stack.extend(missing)
            else:
                self.remember(node, self._of(node))
        return self._known[plan]

    def remember(self, plan: LogicalPlan, known: PlanSize | CatalystStatistics) -> None:
        """Set the statistics of one node."""
        self._known[plan] = known if isinstance(known, PlanSize) else PlanSize.of(known)

    def _of(self, node: LogicalPlan) -> PlanSize:
        below = [self._known[child] for child in node.children]
        if not below:
            return PlanSize(HUGE)
        if isinstance(node, Join):
            return self._join(node, below[0], below[1])
        if isinstance(node, Filter):
            counted = below[0].counted
            if counted is None:
                return in_proportion(node, below[0])
            return PlanSize.of(filter_statistics(node, counted, self.spark))
        return operator_size(node, below, self.spark)

    def _join(self, join: Join, left: PlanSize, right: PlanSize) -> PlanSize:
        kind = join.join_type
        one, other = left.counted, right.counted
        if kind in (SEMI, ANTI):
            if one is None:
                return left
            known = join_statistics(join, one, one)  # the right side is not looked at
            return left if known is None else PlanSize.of(known)
        if one is not None and other is not None and (kind in INNER_LIKE or kind in OUTER):
            known = join_statistics(join, one, other, self.facts)
            if known is not None:
                return PlanSize.of(known)
        if (kind == INNER or kind in OUTER) and self._unique(join):
            return PlanSize(sum(size.bytes for size in (left, right) if size.bytes > 1))
        return PlanSize(product((left, right)).bytes)

    def _unique(self, join: Join) -> bool:
        """True if one side has no two rows with the same keys."""
        pairs = hash_keys(join)
        sides = zip(join.children, zip(*pairs))
        return any(is_unique(self.facts.distinct_keys(side), keys) for side, keys in sides)


def reported_by_spark(request: RequestStatistics, nodes: Iterable[LogicalPlan]) -> Given:
    """Spark's statistics of the relations of a plan: one request for all of them, sent when the first is needed.

    Args:
        request: see `Gateway.statistics`.
        nodes: of the plan. A cached one counts as a relation; nothing else that has children is requested.
    """
    relations = {node.number: node for node in nodes if not node.children or node.cached}
    reported: dict[int, PlanSize] = {}

    def given(node: LogicalPlan) -> PlanSize | None:
        number = node.origin if node.number is None else node.number
        if number is None or number not in relations:
            return None
        if not reported:
            answers = request(list(relations.values()), "catalyst")
            reported.update({n: PlanSize.from_json(answers.get(n, {})) for n in relations if n is not None})
        return reported[number]

    return given
