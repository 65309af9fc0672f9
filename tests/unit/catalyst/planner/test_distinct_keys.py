"""Unique keys that Spark derives."""

from __future__ import annotations

from typing import Any

import pytest

from pyjoinopt.catalyst.planner.distinct_keys import DistinctKeyVisitor
from pyjoinopt.plan.nodes import Aggregate, Filter, Join, LogicalPlan
from tests.support.letters import Letters


def node(kind: str, *children: LogicalPlan, **info: Any) -> LogicalPlan:
    return LogicalPlan(kind, children, children[0].output, info=info)


def keys(w: Letters, plan: LogicalPlan, conf: dict[str, str] | None = None) -> set[str]:
    names = {w(name).key: name for name in w.columns}
    return {" ".join(sorted(names.get(e, "?") for e in key)) for key in DistinctKeyVisitor(conf)(plan)}


def test_groups(w: Letters) -> None:
    x = w.relation("x", "a b c")
    assert keys(w, w.group("a b", x)) == {"a b"}
    assert keys(w, w.group("a a", x)) == {"a"}
    assert keys(w, w.group("a b", x, names="a")) == set()
    assert keys(w, w.group("a b", w.group("a", x, names="a"), names="a")) == {"a"}
    assert keys(w, w.group("a", w.group("a b", x), names="a")) == {"a"}
    assert keys(w, w.group("", x, names="a")) == {""}  # a single row
    assert keys(w, x) == set()


def test_new_names(w: Letters) -> None:
    grouped = w.group("a b", w.relation("x", "a b c"))
    assert keys(w, w.project("b", grouped, w.alias("k", "a"))) == {"b k"}
    assert keys(w, w.project("a b", grouped, w.alias("k", "a"))) == {"a b", "b k"}
    assert keys(w, w.project("b", grouped, w.alias("k", "a + 1"))) == set()
    computed = Aggregate((w("a + b"),), (w.alias("s", "a + b"),), w.relation("x", "a b c"), (w.attribute("s"),))
    assert keys(w, computed) == {"s"}


def test_operators(w: Letters) -> None:
    x = w.relation("x", "a b")
    grouped = w.group("a", x, names="a b")
    assert keys(w, node("Distinct", x)) == {"a b"}
    assert keys(w, node("Except", x, x, all=False)) == keys(w, node("Intersect", x, x, all=False)) == {"a b"}
    assert keys(w, node("Except", x, x, all=True)) == set()
    assert keys(w, node("GlobalLimit", x, limit=1)) == {"a", "b"}
    assert keys(w, node("GlobalLimit", grouped, limit=2)) == {"a"}
    for kind in ("Sort", "Window", "LocalLimit", "Repartition", "Tail"):
        assert keys(w, node(kind, grouped)) == {"a"}
    assert keys(w, node("Sample", grouped, replacement=False)) == {"a"}
    assert keys(w, node("Sample", grouped, replacement=True)) == set()
    assert keys(w, Filter(w("a > 1"), grouped)) == {"a"}
    assert keys(w, node("Union", grouped, grouped)) == keys(w, node("Expand", grouped)) == set()
    assert keys(w, grouped, {"spark.sql.optimizer.propagateDistinctKeys.enabled": "false"}) == set()


@pytest.mark.parametrize(
    ("join_type", "condition", "expected"),
    [
        ("Inner", "a = d", {"a", "d"}),
        ("Inner", "a = e", {"d"}),
        ("Inner", "b = d", {"a"}),
        ("Inner", "b = e", set()),
        ("Inner", "a <=> d", set()),
        ("Inner", "a < d", set()),
        ("Inner", "a = d and b < e", {"a", "d"}),
        ("Cross", "a = d", set()),
        ("LeftOuter", "b = d", {"a"}),
        ("LeftOuter", "a = e", set()),
        ("RightOuter", "a = e", {"d"}),
        ("FullOuter", "a = d", set()),
        ("LeftSemi", "b = e", {"a"}),
        ("LeftAnti", "b < e", {"a"}),
    ],
)
def test_joins(w: Letters, join_type: str, condition: str, expected: set[str]) -> None:
    left = w.group("a", w.relation("x", "a b"), names="a b")
    right = w.group("d", w.relation("y", "d e"), names="d e")
    assert keys(w, Join(left, right, join_type, w(condition))) == expected


def test_deep_plans(w: Letters) -> None:
    plan: LogicalPlan = w.group("a", w.relation("x", "a b"))
    for _ in range(3000):
        plan = node("Sort", plan)
    assert keys(w, plan) == {"a"}
