"""Spark's OuterJoinEliminationSuite, and the outer joins of its AggregateOptimizeSuite.

As there: aliases go first, then one pass of EliminateOuterJoin and of the push-down through joins.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pyjoinopt.catalyst.rules.eliminate_outer_join import eliminate_outer_join
from pyjoinopt.catalyst.rules.finish_analysis import finish_analysis
from pyjoinopt.catalyst.rules.push_down_predicates import push_down_predicates
from pyjoinopt.plan.expressions import Expression
from pyjoinopt.plan.format import show
from pyjoinopt.plan.nodes import FULL, INNER, LEFT, RIGHT, Filter, LogicalPlan, SubqueryAlias
from tests.support.letters import Letters, join


class Suite(Letters):
    """x(a, b, c) and y(d, e, f)."""

    def __init__(self) -> None:
        super().__init__()
        self.x, self.y = self.relation("x", "a b c"), self.relation("y", "d e f")

    def optimize(self, plan: LogicalPlan, constraint_propagation: bool = True) -> LogicalPlan:
        plan = eliminate_outer_join(finish_analysis(plan), constraint_propagation=constraint_propagation).plan
        return push_down_predicates(plan)

    def outer(self, join_type: str, condition: str = "a = d") -> LogicalPlan:
        return join(SubqueryAlias("x", self.x), SubqueryAlias("y", self.y), self(condition), join_type)

    def counted(self, keys: str, child: LogicalPlan, counts: str, column: str) -> LogicalPlan:
        count = Expression("AggregateExpression", (self(counts),), "int", info={"fn": "Count", "distinct": False})
        return self.group(keys, child, self.alias(column, count))


MANY_NULLS = "not (e is null) or (d is not null and f is null)"


@pytest.mark.parametrize(
    ("number", "join_type", "where", "becomes", "left", "right", "condition"),
    [
        (1, FULL, "b >= 1 and d >= 2", INNER, "b >= 1", "d >= 2", "a = d"),
        (2, FULL, "d > 2", RIGHT, "", "d > 2", "a = d"),
        (3, FULL, "a <=> 2", LEFT, "a <=> 2", "", "a = d"),
        (4, RIGHT, "b > 2", INNER, "b > 2", "", "a = d"),
        (5, LEFT, "e is not null", INNER, "", "e is not null", "a = d"),
        (6, LEFT, MANY_NULLS, INNER, "", MANY_NULLS, "a = d"),
        (7, LEFT, "in(e, 1, 2)", INNER, "", "in(e, 1, 2)", "a = d"),
        (8, LEFT, f"({MANY_NULLS}) and e is null", INNER, "", f"({MANY_NULLS}) and e is null", "a = d"),
        (9, FULL, "b + 3 = e", INNER, "", "", "b + 3 = e and a = d"),
    ],
)
def test_the_join_becomes_simpler(
    number: int, join_type: str, where: str, becomes: str, left: str, right: str, condition: str
) -> None:
    w = Suite()
    x, y = (Filter(w(p), side) if p else side for p, side in ((left, w.x), (right, w.y)))
    result = w.optimize(Filter(w(where), w.outer(join_type)))
    assert show(result) == show(join(x, y, w(condition), becomes))


@pytest.mark.parametrize(
    ("number", "join_type", "where", "propagation"),
    [
        (10, FULL, "coalesce(e, a) = 0", True),
        (11, FULL, "coalesce(e, a) is not null", True),
        (12, FULL, "b + d >= 3", False),
        (13, LEFT, "if(d > 0, true, raise_error(d)) is null", True),
    ],
)
def test_the_join_stays(number: int, join_type: str, where: str, propagation: bool) -> None:
    w = Suite()
    result = w.optimize(Filter(w(where), w.outer(join_type)), propagation)
    assert show(result) == show(Filter(w(where), join(w.x, w.y, w("a = d"), join_type)))


Query = Callable[[Suite], LogicalPlan]


@pytest.mark.parametrize(
    ("letter", "query", "kept"),
    [
        ("a", lambda w: w.project("a b c", join(w.x, w.group("d", w.y), w("a = d"), LEFT)), "x a b c"),
        (
            "b",
            lambda w: w.project("a b c", join(w.x, w.counted("d", w.y, "d", "n"), w("a = d and b = n"), LEFT)),
            "x a b c",
        ),
        ("c", lambda w: w.project("d e f", join(w.group("a", w.x), w.y, w("a = d"), RIGHT)), "y d e f"),
        (
            "d",
            lambda w: w.project("d e f", join(w.counted("a", w.x, "a", "n"), w.y, w("a = d and n = e"), RIGHT)),
            "y d e f",
        ),
        ("not equal", lambda w: w.project("a", join(w.x, w.group("d", w.y), w("a > d"), LEFT)), ""),
        ("more keys", lambda w: w.project("a", join(w.x, w.group("d e", w.y), w("a = d"), LEFT)), ""),
        ("is read", lambda w: w.project("a d", join(w.x, w.group("d", w.y), w("a = d"), LEFT)), ""),
    ],
)
def test_a_side_with_unique_keys_that_nobody_reads(letter: str, query: Query, kept: str) -> None:
    w = Suite()
    plan = query(w)
    side, _, columns = kept.partition(" ")
    expected = w.project(columns, {"x": w.x, "y": w.y}[side]) if kept else plan
    assert show(w.optimize(plan)) == show(expected)


# -- outer joins under aggregates: AggregateOptimizeSuite ----------------------------------------------------------


def function(w: Suite, name: str, fn: str, column: str, distinct: bool = False) -> Expression:
    body = Expression("AggregateExpression", (w(column),), "int", info={"fn": fn, "distinct": distinct})
    return w.alias(name, body)


def distinct_of(project: LogicalPlan) -> LogicalPlan:
    return LogicalPlan("Distinct", (project,), project.output)


SIDES = [(LEFT, "x", "a", "b", "e"), (RIGHT, "y", "d", "e", "b")]


@pytest.mark.parametrize(("join_type", "side", "key", "own", "other"), SIDES)
def test_repeated_rows_make_no_difference(join_type: str, side: str, key: str, own: str, other: str) -> None:
    w = Suite()
    outer = join(w.x, w.y, w("a = d"), join_type)
    kept = {"x": w.x, "y": w.y}[side]
    true, false = w.alias("t", "true"), w.alias("n", "false")
    above: list[Query] = [
        lambda child: distinct_of(w.project(own, child)),
        lambda child: distinct_of(w.project(f"{own} {own}", child)),
        lambda child: distinct_of(w.project("", child, w.alias("m", own))),
        lambda child: distinct_of(w.project("", child, w.alias("m", own), w.alias("l", own))),
        lambda child: distinct_of(w.project(own, child, true, false)),
        lambda child: w.group(f"{key} {own}", child, names=f"{own} {key}"),
        lambda child: w.group(key, child, w.alias("one", "1")),
        lambda child: w.group(key, child, function(w, "max", "Max", own)),
        lambda child: w.group("m", w.project("", child, w.alias("m", key)), function(w, "max2", "Max", "m")),
        lambda child: w.group("", child, function(w, "max", "Max", own), function(w, "min", "Min", own)),
        lambda child: w.group("", child, function(w, "count", "Count", own, distinct=True)),
        lambda child: w.group("", child, function(w, "sum", "Sum", own, distinct=True)),
        lambda child: w.group(
            "", child, function(w, "count", "Count", own, distinct=True), function(w, "min", "Min", own)
        ),
    ]
    for query in above:
        assert show(eliminate_outer_join(query(outer)).plan) == show(query(kept))


@pytest.mark.parametrize(("join_type", "side", "key", "own", "other"), SIDES)
def test_repeated_rows_make_a_difference(join_type: str, side: str, key: str, own: str, other: str) -> None:
    w = Suite()
    outer = join(w.x, w.y, w("a = d"), join_type)
    random = w.project(own, outer, w.alias("r", "rand()"))
    for plan in (
        distinct_of(w.project(f"{own} {other}", outer)),
        distinct_of(random),
        w.group(key, outer, function(w, "max", "Max", other)),
        w.group(key, outer, function(w, "sum", "Sum", key)),
    ):
        assert eliminate_outer_join(plan).plan is plan
