"""Spark's own statistics of projections, filters and joins over sub-plans whose statistics are known."""

from __future__ import annotations

from collections.abc import Callable

from pyjoinopt.plan.constraints import PlanFacts
from pyjoinopt.plan.expressions import DETERMINISTIC, FOLDABLE, Expression
from pyjoinopt.plan.nodes import ANTI, INNER_LIKE, OUTER, SEMI, Filter, Join, LogicalPlan, Project
from pyjoinopt.statistics.catalyst import CatalystStatistics, ColumnStatistics, default_size, output_size
from pyjoinopt.statistics.filter_estimation import filter_statistics
from pyjoinopt.statistics.join_estimation import join_statistics
from pyjoinopt.statistics.spark_predicates import plain

#: Types of joins besides inner ones that Spark estimates.
_ESTIMATED = OUTER | {SEMI, ANTI}


def project_statistics(project: Project, child: CatalystStatistics) -> CatalystStatistics:
    """Rows, bytes and columns of a projection (`ProjectEstimation`)."""
    known = dict(child.columns)
    for e in project.projections:
        if e.kind == "Alias" and e.attribute is not None:
            column = _aliased(e.children[0], child)
            if column is not None:
                known[e.attribute.bit] = column
    columns = {a.bit: known[a.bit] for a in project.output if a.bit in known}
    return CatalystStatistics(child.rows, output_size(project.output, child.rows, columns), columns)


def _aliased(body: Expression, child: CatalystStatistics) -> ColumnStatistics | None:
    if body.kind == "AttributeReference" and body.attribute is not None:
        return child.columns.get(body.attribute.bit)
    if body.kind == "Literal" and body.flags & FOLDABLE and body.flags & DETERMINISTIC:
        size = default_size(body.type)
        if body.value is None:
            return ColumnStatistics(0, None, None, child.rows, size, size)
        return ColumnStatistics(1, plain(body.value), plain(body.value), 0, size, size)
    return None


class PlanStatistics:
    """Statistics of inner joins and projections over sub-plans whose statistics are `given` (None for unknown).

    Args:
        given: what is known of all other plans.
        spark: compute filters and joins of all types too, as this version of Spark does; None to be given them.
    """

    def __init__(
        self, given: Callable[[LogicalPlan], CatalystStatistics | None], spark: tuple[int, int] | None = None
    ) -> None:
        self.given = given
        self.spark = spark
        self.facts = PlanFacts()
        self._known: dict[int, CatalystStatistics | None] = {}
        self._alive: list[LogicalPlan] = []  # ids in `_known` stay unique while these live

    def __call__(self, plan: LogicalPlan) -> CatalystStatistics | None:
        """Statistics of a plan, computed once per node and without recursion."""
        stack = [plan]
        while stack:
            node = stack.pop()
            if id(node) in self._known:
                continue
            children = node.children if self._computed(node) else ()
            missing = [child for child in children if id(child) not in self._known]
            if missing:
                stack.append(node)
                stack.extend(missing)
            else:
                self.remember(node, self._of(node))
        return self._known[id(plan)]

    def remember(self, plan: LogicalPlan, statistics: CatalystStatistics | None) -> None:
        """Set the statistics of one node."""
        self._known[id(plan)] = statistics
        self._alive.append(plan)

    def _of(self, node: LogicalPlan) -> CatalystStatistics | None:
        if not self._computed(node):
            return self.given(node)
        below = [self._known[id(child)] for child in node.children]
        first = below[0]
        if first is None:
            return None
        if isinstance(node, Join):
            return None if below[1] is None else join_statistics(node, first, below[1], self.facts)
        if isinstance(node, Filter) and self.spark is not None:
            return filter_statistics(node, first, self.spark)
        return project_statistics(node, first) if isinstance(node, Project) else first

    def _computed(self, node: LogicalPlan) -> bool:
        if isinstance(node, Join):
            return node.join_type in INNER_LIKE or (self.spark is not None and node.join_type in _ESTIMATED)
        if isinstance(node, Filter):
            return self.spark is not None
        return isinstance(node, Project) or node.kind == "SubqueryAlias"
