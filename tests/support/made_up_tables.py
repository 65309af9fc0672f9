"""Relations with synthetic statistics, and a short notation for join orders."""

from __future__ import annotations

from collections.abc import Callable

from pyjoinopt.catalyst.rules.cost_based_join_reorder import cost_based_join_reorder
from pyjoinopt.catalyst.rules.push_down_predicates import push_down_predicates
from pyjoinopt.catalyst.rules.reorder_join import reorder_join
from pyjoinopt.catalyst.statistics.column_stat import CatalystStatistics, ColumnStatistics
from pyjoinopt.catalyst.statistics.plan_stats_visitor import SparkStatistics
from pyjoinopt.catalyst.support.reordered_join import ReorderedGroup
from pyjoinopt.plan.nodes import Join, LogicalPlan
from pyjoinopt.plan.traversal import post_order, to_fixed_point
from tests.support.letters import Letters, join


class Tables(Letters):
    """Relations with statistics: columns are `name:n` for n distinct values 1..n."""

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[int, CatalystStatistics] = {}

    def table(self, name: str, rows: int, columns: str, size: int = 1) -> LogicalPlan:
        ranges = {c.split(":")[0]: int(c.split(":")[1]) for c in columns.split()}
        plan = self.relation(name, " ".join(ranges))
        stats = {self.attribute(c).bit: ColumnStatistics(n, 1, n, 0, 4, 4) for c, n in ranges.items()}
        self.known[id(plan)] = CatalystStatistics(rows, size, stats)
        return plan

    @property
    def statistics(self) -> Callable[[LogicalPlan], CatalystStatistics | None]:
        return SparkStatistics(lambda plan: self.known.get(id(plan)))

    def optimize(self, plan: LogicalPlan, groups: list[ReorderedGroup] | None = None) -> LogicalPlan:
        def rules(p: LogicalPlan) -> LogicalPlan:
            return reorder_join(push_down_predicates(p))

        return cost_based_join_reorder(to_fixed_point(plan, rules), self.statistics, groups=groups)


def suite() -> tuple[Tables, dict[str, LogicalPlan]]:
    w = Tables()
    tables = {
        "t1": w.table("t1", 1000, "k1:2 v1:10", 16000),
        "t2": w.table("t2", 20, "k2:5", 240),
        "t3": w.table("t3", 100, "v3:100", 1200),
        "t4": w.table("t4", 2000, "k4:2 v4:10", 32000),
        "t5": w.table("t5", 20, "k5:5 v5:5", 240),
    }
    return w, tables


def comma(*plans: LogicalPlan) -> LogicalPlan:
    """FROM a, b, c"""
    result = plans[0]
    for plan in plans[1:]:
        result = join(result, plan)
    return result


def tree(plan: LogicalPlan) -> str:
    """The joins of a plan: `((a ⋈ b) ⋈ c)`, projections, filters and names left out."""
    texts: list[str] = []
    for node in post_order(plan):
        if isinstance(node, Join):
            right, left = texts.pop(), texts.pop()
            texts.append(f"({left} ⋈ {right})")
        elif not node.children:
            texts.append(node.info["rel"]["name"])
        elif len(node.children) > 1:
            parts = [texts.pop() for _ in node.children][::-1]
            texts.append(f"{node.kind}[{', '.join(parts)}]")
    return texts[0]
