"""Spark's JoinOptimizationSuite: how chains of joins are taken apart, and put together in another order."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pyjoinopt.catalyst.rules.push_down_predicates import push_down_predicates
from pyjoinopt.catalyst.rules.reorder_join import flatten_join, reorder_join
from pyjoinopt.plan.expressions import describe
from pyjoinopt.plan.format import show
from pyjoinopt.plan.nodes import CROSS, INNER, Filter, LogicalPlan
from pyjoinopt.plan.traversal import to_fixed_point
from tests.support.letters import Letters, join


class Suite(Letters):
    """x, y, z, and x once more, with columns of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.x, self.y, self.z = self.relation("x", "a b c"), self.relation("y", "d"), self.relation("z", "za zb zc")
        self.again = self.relation("x2", "a2 b2 c2")
        self.xz = join(self.again, self.z)

    def cross(self, left: LogicalPlan, right: LogicalPlan, condition: str = "") -> LogicalPlan:
        return join(left, right, self(condition) if condition else None, CROSS)

    def where(self, condition: str, plan: LogicalPlan) -> LogicalPlan:
        return Filter(self(condition), plan)


@pytest.mark.parametrize(
    ("query", "items", "conditions"),
    [
        (lambda w: w.x, "x", []),
        (lambda w: w.where("b = c", w.x), "Filter", []),
        (lambda w: join(w.x, w.y), "x y", []),
        (lambda w: join(w.x, w.y, w("b = d")), "x y", ["(b = d)"]),
        (lambda w: w.where("b = d", join(w.x, w.y)), "x y", ["(b = d)"]),
        (lambda w: join(join(w.x, w.y), w.z), "x y z", []),
        (lambda w: join(w.where("b = d", join(w.x, w.y)), w.z), "x y z", ["(b = d)"]),
        (lambda w: join(join(w.x, w.y), w.xz), "x y Join", []),
        (lambda w: w.where("b = d", join(join(w.x, w.y), w.xz)), "x y Join", ["(b = d)"]),
        (lambda w: w.cross(w.x, w.y), "x* y*", []),
        (lambda w: w.cross(w.cross(w.x, w.y), w.z), "x* y* z*", []),
        (lambda w: w.cross(w.cross(w.x, w.y, "b = d"), w.z), "x* y* z*", ["(b = d)"]),
        (lambda w: w.cross(join(w.x, w.y, w("b = d")), w.z), "x y z*", ["(b = d)"]),
        (lambda w: join(w.cross(w.x, w.y, "b = d"), w.z), "x* y* z", ["(b = d)"]),
    ],
)
def test_chains(query: Callable[[Suite], LogicalPlan], items: str, conditions: list[str]) -> None:
    """A star marks the relations that came with a cross join."""
    found, predicates = flatten_join(query(Suite()))
    reported = [
        (plan.info["rel"]["name"] if "rel" in plan.info else plan.kind) + ("*" if join_type == CROSS else "")
        for plan, join_type in found
    ]
    assert (" ".join(reported), [describe(p) for p in predicates]) == (items, conditions)


@pytest.mark.parametrize(
    ("first", "second", "where", "lower", "upper"),
    [
        (INNER, INNER, "b = zb and d = za", (INNER, "b = zb"), (INNER, "d = za")),
        (CROSS, CROSS, "b = zb and d = za", (CROSS, "b = zb"), (CROSS, "d = za")),
        (INNER, CROSS, "b = za", (CROSS, "b = za"), (INNER, "")),
    ],
)
def test_orders(first: str, second: str, where: str, lower: tuple[str, str], upper: tuple[str, str]) -> None:
    w = Suite()
    query = w.where(where, join(join(w.x, w.y, type=first), w.z, type=second))
    result = to_fixed_point(query, lambda plan: reorder_join(push_down_predicates(plan)))
    below = join(w.x, w.z, w(lower[1]), lower[0])
    expected = join(below, w.y, w(upper[1]) if upper[1] else None, upper[0])
    assert show(result) == show(w.project("a b c d za zb zc", expected))
