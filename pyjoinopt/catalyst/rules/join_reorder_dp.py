"""JoinReorderDP: the search of Spark's cost-based join reordering.

Dynamic programming by size, after Selinger and others (1979). Level 0 holds each relation alone. Level *n* holds the
best plan for every set of *n + 1* relations that conditions connect, made of two plans of lower levels. Bushy trees
are searched, cross products never.

The cost of a plan is the sum of rows, and the sum of bytes, of its intermediate results: neither the relations
themselves nor the plan's own result count. One plan is better than another for the same set if

    (rows / other rows) ** w * (bytes / other bytes) ** (1 - w) < 1        w = 0.7 by default

and ties go to the plan that was found first, so the order of the relations matters. Columns that nothing above needs
are projected away after each join, since they count in the bytes.

A pair of plans is compared by numbers alone; the plan of a set is built once, when its level is complete.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyjoinopt.catalyst.rules.join_reorder_dp_filters import JoinGraphInfo, star_join_filter
from pyjoinopt.catalyst.statistics.column_stat import CatalystStatistics
from pyjoinopt.catalyst.statistics.plan_stats_visitor import SparkStatistics
from pyjoinopt.plan.expressions import Expression, conjunction, reference
from pyjoinopt.plan.nodes import INNER, Join, LogicalPlan, Project


@dataclass(slots=True, eq=False)
class JoinPlan:
    """The best plan for a set of relations.

    Attributes:
        relations: the set, bit *i* for relation *i*.
        tree: a relation's number, or a pair of trees (left, right).
        rows, bytes: the plan's cost, without its own result.
        plan: the plan itself, pruned to the columns that are still needed.
        root_rows, root_bytes: its own result, 0 for a single relation.
        parts: the two plans it is made of.
    """

    relations: int
    tree: object
    rows: int
    bytes: int
    plan: LogicalPlan | None = None
    root_rows: int = 0
    root_bytes: int = 0
    parts: tuple[JoinPlan, JoinPlan] | None = None

    @property
    def join(self) -> Join:
        """The plan's top join, with all columns of its inputs."""
        top = self.plan.children[0] if isinstance(self.plan, Project) else self.plan
        assert isinstance(top, Join) and self.parts is not None
        return top


def better_than(rows: int, bytes: int, other_rows: int, other_bytes: int, card_weight: float = 0.7) -> bool:
    """Catalyst's `betterThan` of two costs.

    >>> better_than(300, 80, 500, 30), better_than(500, 30, 300, 80), better_than(300, 80, 300, 80)
    (True, False, False)
    """
    if other_rows == 0 or other_bytes == 0:
        return False
    return float((rows / other_rows) ** card_weight * (bytes / other_bytes) ** (1 - card_weight)) < 1


class JoinReorderDP:
    """One search.

    Args:
        relations: at least two, in the order written.
        statistics: of each of them.
        conditions: conjuncts over two relations or more.
        needed: set of the columns that are read above the group.
        card_weight: weight of rows against bytes.
        filters: which joins are not tried, see `join_reorder_dp_filters`.

    After `run`, `pairs` is the number of pairs that were compared and `plans` the number of plans kept on all levels.
    """

    def __init__(
        self,
        relations: Sequence[LogicalPlan],
        statistics: Sequence[CatalystStatistics],
        conditions: Sequence[Expression],
        needed: int,
        card_weight: float = 0.7,
        filters: JoinGraphInfo | None = None,
    ) -> None:
        self.relations = relations
        self.filters = filters
        self.conditions = conditions
        self.card_weight = card_weight
        self.pairs = self.plans = 0
        self.statistics = SparkStatistics(lambda plan: None)
        for relation, known in zip(relations, statistics):
            self.statistics.remember(relation, known)
        self._needed = needed
        self._reads = [self._relations_of(condition) for condition in conditions]
        self._near = [0] * len(relations)
        for reads in self._reads:
            if reads.bit_count() == 2:
                for i in range(len(relations)):
                    if reads >> i & 1:
                        self._near[i] |= reads & ~(1 << i)
        self._wide = [reads for reads in self._reads if reads.bit_count() > 2]

    def run(self) -> JoinPlan | None:
        """The best plan for all relations; None if the conditions do not connect them."""
        levels = [{1 << i: self._single(i) for i in range(len(self.relations))}]
        while len(levels) < len(self.relations):
            levels.append(self._next_level(levels))
        self.plans = sum(map(len, levels))
        return levels[-1].get((1 << len(self.relations)) - 1)

    def cost_of(self, tree: object) -> JoinPlan:
        """What a given tree costs, counted in the same way."""
        made: list[JoinPlan] = []
        stack: list[tuple[object, bool]] = [(tree, False)]
        while stack:
            here, expanded = stack.pop()
            if not isinstance(here, tuple):
                assert isinstance(here, int)
                made.append(self._single(here))
            elif expanded:
                right, left = made.pop(), made.pop()
                made.append(self._complete(self._joined(left, right)))
            else:
                stack += ((here, True), (here[1], False), (here[0], False))
        return made[0]

    # -- one level -----------------------------------------------------------------------------------------------

    def _next_level(self, levels: list[dict[int, JoinPlan]]) -> dict[int, JoinPlan]:
        found: dict[int, JoinPlan] = {}
        last = len(levels) - 1
        for k in range(last // 2 + 1):
            ones = list(levels[k].values())
            others = list(levels[last - k].values())
            for i, one in enumerate(ones):
                near = self._neighbours(one.relations)
                for other in others[i:] if k == last - k else others:
                    if one.relations & other.relations or not self._connected(one.relations, near, other.relations):
                        continue
                    if self.filters is not None and not star_join_filter(one.relations, other.relations, self.filters):
                        continue
                    self.pairs += 1
                    self._offer(found, one, other)
        for plan in found.values():
            self._complete(plan)
        return found

    def _offer(self, found: dict[int, JoinPlan], one: JoinPlan, other: JoinPlan) -> None:
        rows = one.rows + one.root_rows + other.rows + other.root_rows
        size = one.bytes + one.root_bytes + other.bytes + other.root_bytes
        known = found.get(one.relations | other.relations)
        if known is None or better_than(rows, size, known.rows, known.bytes, self.card_weight):
            if one.relations.bit_count() < other.relations.bit_count():
                one, other = other, one
            found[one.relations | other.relations] = self._joined(one, other)

    def _neighbours(self, relations: int) -> int:
        near = 0
        for i, around in enumerate(self._near):
            if relations >> i & 1:
                near |= around
        return near

    def _connected(self, one: int, near: int, other: int) -> bool:
        if near & other:
            return True
        return any(not reads & ~(one | other) and reads & one and reads & other for reads in self._wide)

    # -- one plan ------------------------------------------------------------------------------------------------

    def _relations_of(self, condition: Expression) -> int:
        reads = 0
        for i, relation in enumerate(self.relations):
            if condition.references & relation.output_set:
                reads |= 1 << i
        return reads

    def _single(self, i: int) -> JoinPlan:
        return JoinPlan(1 << i, i, 0, 0, self.relations[i])

    def _joined(self, left: JoinPlan, right: JoinPlan) -> JoinPlan:
        rows = left.rows + left.root_rows + right.rows + right.root_rows
        size = left.bytes + left.root_bytes + right.bytes + right.root_bytes
        return JoinPlan(left.relations | right.relations, (left.tree, right.tree), rows, size, parts=(left, right))

    def _complete(self, plan: JoinPlan) -> JoinPlan:
        """Build the plan of a set and estimate its size."""
        assert plan.parts is not None
        left, right = plan.parts
        assert left.plan is not None and right.plan is not None
        here, needed = [], self._needed
        for condition, reads in zip(self.conditions, self._reads):
            if reads & ~plan.relations:
                needed |= condition.references
            elif reads & ~left.relations and reads & ~right.relations:
                here.append(condition)
        join = Join(left.plan, right.plan, INNER, conjunction(here))
        plan.plan = join
        if join.output_set & ~needed:
            plan.plan = Project(tuple(reference(a) for a in join.output if a.mask & needed), join)
        statistics = self.statistics(plan.plan)
        assert statistics is not None
        plan.root_rows, plan.root_bytes = statistics.rows, statistics.bytes
        return plan
