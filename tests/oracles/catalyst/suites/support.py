"""Tables with column statistics, and plans compared as Spark's join-reorder suites compare them."""

from __future__ import annotations

from collections.abc import Sequence

from pyjoinopt.catalyst.rules.cost_based_join_reorder import extract_inner_joins
from pyjoinopt.catalyst.rules.join_reorder_dp import JoinPlan, JoinReorderDP
from pyjoinopt.catalyst.rules.join_reorder_dp_filters import build_join_graph_info
from pyjoinopt.catalyst.statistics.column_stat import CatalystStatistics, ColumnStatistics
from pyjoinopt.plan.expressions import Expression, conjuncts
from pyjoinopt.plan.nodes import Filter, Join, LogicalPlan
from pyjoinopt.plan.traversal import post_order
from tests.support.made_up_tables import Tables, comma


class Analysed(Tables):
    """Tables of an analysed catalog.

    A column is written `name:n` (values 1..n), `name:n!k` (with k NULLs) or `name:~n` (n values, bounds unknown).
    """

    def __init__(self) -> None:
        super().__init__()
        self.by_name: dict[str, LogicalPlan] = {}

    def analysed(self, name: str, rows: int, size: int, columns: str) -> LogicalPlan:
        """A table; it is stored under its name."""
        found = {}
        for column in columns.split():
            label, _, values = column.partition(":")
            values, _, nulls = values.partition("!")
            count = int(values.lstrip("~"))
            bounds = (None, None) if values.startswith("~") else (1, count)
            found[label] = ColumnStatistics(count, *bounds, int(nulls or 0), 4, 4)
        plan = self.by_name[name] = self.relation(name, " ".join(found))
        stats = {self.attribute(label).bit: column for label, column in found.items()}
        self.known[id(plan)] = CatalystStatistics(rows, size, stats)
        return plan

    def tables(self, names: str) -> list[LogicalPlan]:
        return [self.by_name[name] for name in names.split()]

    def query(self, names: str, where: str) -> LogicalPlan:
        """SELECT * FROM the named tables WHERE ..."""
        return Filter(self(where), comma(*self.tables(names)))

    def search(self, top: LogicalPlan, conf: dict[str, str]) -> tuple[JoinPlan, int]:
        """The best plan of a group, and how many plans were kept on the way to it."""
        items, conditions = extract_inner_joins(top)
        known = [self.known[id(item)] for item in items]
        filters = build_join_graph_info(items, conditions, self.statistics, conf)
        search = JoinReorderDP(items, known, conditions, top.output_set, filters=filters)
        best = search.run()
        assert best is not None
        return best, search.plans


def mirrored(tree: object) -> object:
    """A join tree in which the sides of a join do not count: nested frozen sets."""
    return frozenset(map(mirrored, tree)) if isinstance(tree, tuple) else tree


def shape(plan: LogicalPlan) -> object:
    """The joins of a plan as nested pairs of table names; filters and projections are ignored."""
    made: list[object] = []
    for node in post_order(plan):
        if isinstance(node, Join):
            right, left = made.pop(), made.pop()
            made.append((left, right))
        elif not node.children:
            made.append(node.info["rel"]["name"])
    return made[0]


def left_deep(names: str) -> object:
    """`a b c` -> ((a, b), c)"""
    first, *rest = names.split()
    result: object = first
    for name in rest:
        result = (result, name)
    return result


def predicates(plan: LogicalPlan) -> set[str]:
    """All conjuncts of joins and filters."""
    found: Sequence[Expression] = [
        p
        for node in post_order(plan)
        if isinstance(node, (Join, Filter))
        for e in node.expressions
        for p in conjuncts(e)
    ]
    return {repr(p) for p in found}
