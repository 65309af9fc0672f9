"""Outer joins that become joins of another type, and outer joins that are dropped.

The cases of Spark's own suites for this rule (its conversions, its aggregate form, its distinct-key form), and the
five of an article on the rule, each with the plan it must become.
"""

from __future__ import annotations

import pytest

from pyjoinopt.catalyst.rules.eliminate_outer_join import eliminate_outer_join
from pyjoinopt.catalyst.rules.push_down_predicates import push_down_predicates
from pyjoinopt.plan.expressions import DETERMINISTIC, UNEVALUABLE, Expression, call
from pyjoinopt.plan.format import show  # fmt: skip
from pyjoinopt.plan.nodes import (
    FULL,
    INNER,
    LEFT,
    RIGHT,
    Aggregate,
    Filter,
    Join,
    LogicalPlan,
    SubqueryAlias,
    relation,
)
from pyjoinopt.plan.traversal import post_order
from pyjoinopt.rewrites.normalise import normalise, run_batch, without_notes
from tests.support.letters import Letters, join


def two(w: Letters) -> tuple[LogicalPlan, LogicalPlan]:
    return w.relation("x", "a b c"), w.relation("y", "d e f")


# -- filters (the cases of Spark's suite are in suites/) --------------------------------------------------------------


def test_without_constraint_propagation() -> None:
    w = Letters()
    plan = Filter(w("b + d >= 3"), join(*two(w), w("a = d"), FULL))
    assert eliminate_outer_join(plan, constraint_propagation=False).plan is plan
    assert kinds(eliminate_outer_join(plan).plan) == [INNER]


def kinds(plan: LogicalPlan) -> list[str]:
    return [node.join_type for node in post_order(plan) if isinstance(node, Join)]


# -- filters: the article's five cases --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("join_type", "predicate", "becomes"),
    [
        (FULL, "age1 >= 9 and age2 >= 20", INNER),
        (LEFT, "age2 >= 20", INNER),
        (RIGHT, "age1 >= 9", INNER),
        (FULL, "age1 >= 9", LEFT),
        (FULL, "age2 >= 20", RIGHT),
    ],
)
def test_persons_and_records(join_type: str, predicate: str, becomes: str) -> None:
    w = Letters()
    persons, records = w.relation("persons", "id age1"), w.relation("records", "no age2")
    before = Filter(w(predicate), join(persons, records, w("id = no"), join_type))
    assert show(eliminate_outer_join(before).plan) == show(
        Filter(w(predicate), join(persons, records, w("id = no"), becomes))
    )


def test_the_log_names_the_join_and_the_reason() -> None:
    w = Letters()
    customers = SubqueryAlias("c", w.relation("customers", "id"))
    orders = SubqueryAlias("o", w.relation("orders", "customer total"))
    plan = Filter(w("total > 5"), join(customers, orders, w("id = customer"), LEFT))
    assert normalise(plan).outer_joins == ("left join of c and o became inner: (total > 5) rejects NULLs",)


def test_what_catalyst_evaluated_counts() -> None:
    w = Letters()
    unknown = Expression("SomeFunction", (w("e"),), number=7, origin=7)
    plan = Filter(unknown, join(*two(w), w("a = d"), LEFT))
    assert eliminate_outer_join(plan).plan is plan
    assert kinds(eliminate_outer_join(plan, filters_null=frozenset({7})).plan) == [INNER]


def test_a_literal_false_rejects_everything() -> None:
    w = Letters()
    assert kinds(eliminate_outer_join(Filter(w("false"), join(*two(w), w("a = d"), FULL))).plan) == [INNER]


def test_a_filter_falls_through_what_it_converted() -> None:
    w = Letters()
    x, y, z = w.relation("x", "a"), w.relation("y", "b"), w.relation("z", "c")
    both = (without_notes(push_down_predicates), eliminate_outer_join)
    plan = Filter(w("c > 1"), join(join(x, y, w("a = b"), FULL), z, w("b = c"), LEFT))
    assert kinds(run_batch(plan, both).plan) == [FULL, INNER]
    deeper = Filter(w("b = c"), join(join(x, y, w("a = b"), LEFT), z, w("a = c"), LEFT))
    assert kinds(run_batch(deeper, both).plan) == [LEFT, INNER]
    lower = Filter(w("b > 1"), join(join(x, y, w("a = b"), LEFT), z, w("a = c"), LEFT))
    assert kinds(run_batch(lower, both).plan) == [INNER, LEFT]


def test_cached_joins_stay() -> None:
    w = Letters()
    x, y = two(w)
    cached = Join(x, y, LEFT, w("a = d"), info={"cached": True})
    plan = Filter(w("e > 1"), cached)
    assert normalise(plan).plan is plan


# -- aggregates above -------------------------------------------------------------------------------------------


def function(w: Letters, name: str, fn: str, column: str, distinct: bool = False) -> Expression:
    call_ = Expression("AggregateExpression", (w(column),), "int", info={"fn": fn, "distinct": distinct})
    return w.alias(name, call_)


@pytest.mark.parametrize(("join_type", "streamed", "other"), [(LEFT, "b", "e"), (RIGHT, "e", "b")])
def test_aggregates_that_cannot_count(join_type: str, streamed: str, other: str) -> None:
    w = Letters()
    x, y = two(w)
    outer = join(x, y, w("a = d"), join_type)
    side = x if join_type == LEFT else y
    w.alias("n", streamed)

    def dropped(plan: LogicalPlan) -> bool:
        result = eliminate_outer_join(plan).plan
        assert result is plan or (not kinds(result) and any(node is side for node in post_order(result)))
        return result is not plan

    assert dropped(w.group(streamed, w.project(streamed, outer)))
    assert dropped(w.group(streamed, SubqueryAlias("s", outer)))
    assert dropped(LogicalPlan("Distinct", (p := w.project(streamed, outer),), p.output))
    assert dropped(w.group("n", w.project("", outer, w.alias("n", streamed))))
    assert dropped(w.group(streamed, outer, function(w, "m", "Max", streamed)))
    assert dropped(w.group("", outer, function(w, "m", "Min", streamed)))
    assert dropped(w.group("", outer, function(w, "k", "Count", streamed, distinct=True)))
    assert not dropped(w.group(streamed, outer, function(w, "s", "Sum", streamed)))
    assert not dropped(w.group(streamed, outer, function(w, "m", "Max", other)))
    assert not dropped(w.group(f"{streamed} {other}", outer))
    assert not dropped(w.group("r", w.project("", outer, w.alias("r", "rand()"))))
    full = join(x, y, w("a = d"), FULL)
    assert not dropped(w.group(streamed, full))


# -- distinct keys on the other side ----------------------------------------------------------------------------


def test_a_unique_side_that_nobody_reads() -> None:
    w = Letters()
    x, y = two(w)
    count = function(w, "n", "Count", "d")
    by_d = w.group("d", y)
    by_d_counted = w.group("d", y, count)
    log: list[str] = []

    def drops(plan: LogicalPlan, side: LogicalPlan) -> bool:
        result, notes = eliminate_outer_join(plan)
        log.extend(notes)
        assert result is plan or result.children[0] is side
        return result is not plan

    assert drops(w.project("a b c", join(x, by_d, w("a = d"), LEFT)), x)
    assert drops(w.project("a b c", join(x, by_d_counted, w("a = d and b = n"), LEFT)), x)
    by_a = w.group("a", x)
    assert drops(w.project("d e f", join(by_a, y, w("a = d"), RIGHT)), y)
    assert drops(
        w.project("d e f", join(w.group("a", x, function(w, "k", "Count", "a")), y, w("a = d and k = e"), RIGHT)), y
    )
    assert not drops(w.project("a", join(x, by_d, w("a > d"), LEFT)), x)
    assert not drops(w.project("a", join(x, w.group("d e", y), w("a = d"), LEFT)), x)
    assert not drops(w.project("a d", join(x, by_d, w("a = d"), LEFT)), x)
    assert not drops(w.project("a", join(x, y, w("a = d"), LEFT)), x)
    assert log[0] == (
        "left join of x and aggregate dropped: no column of aggregate is read, and it has one row per join key"
    )


def test_where_distinct_keys_come_from() -> None:
    w = Letters()
    x, y, z = *two(w), w.relation("z", "g h")

    def unique(other: LogicalPlan, condition: str) -> bool:
        return not kinds(eliminate_outer_join(w.project("a", join(x, other, w(condition), LEFT))).plan)

    only_d = w.project("d", y)
    distinct = LogicalPlan("Distinct", (only_d,), only_d.output)
    assert unique(distinct, "a = d")
    assert unique(Filter(w("d > 1"), SubqueryAlias("s", distinct)), "a = d")
    assert unique(LogicalPlan("Sort", (distinct,), distinct.output), "a = d")
    assert unique(w.project("", distinct, w.alias("p", "d")), "a = p")
    assert not unique(w.project("", distinct, w.alias("q", "d + 1")), "a = q")
    assert unique(LogicalPlan("GlobalLimit", (y,), y.output, info={"limit": 1}), "a = d and b = e and c = f")
    assert not unique(LogicalPlan("GlobalLimit", (y,), y.output, info={"limit": 2}), "a = d and b = e and c = f")
    assert unique(join(distinct, z, w("d = g"), "LeftSemi"), "a = d")
    assert unique(Filter(w("d > 0"), join(distinct, w.group("g", z), w("d = g"))), "a = d")
    assert not unique(Filter(w("d > 0"), join(distinct, z, w("d = g"))), "a = d")
    assert unique(w.group("", y, names=""), "a = d") is False
    keyed = Aggregate((w("d + 1"),), (w.alias("s", "d + 1"),), y, (w.attribute("s"),))
    assert unique(keyed, "a = s")
    assert not unique(distinct, "a <=> d")


def test_nothing_to_do_costs_no_new_object() -> None:
    w = Letters()
    plan = join(*two(w), w("a = d"), LEFT)
    assert normalise(plan).plan is plan
    leaf = relation("z", [w.attribute("z")])
    assert normalise(leaf).plan is leaf


def between(w: Letters, column: str, low: str, high: str) -> Expression:
    """`column BETWEEN low AND high` as Spark 4 analyses it."""
    common = Expression("CommonExpressionRef", type="int", flags=DETERMINISTIC | UNEVALUABLE)
    both = call("And", call("GreaterThanOrEqual", common, w(low)), call("LessThanOrEqual", common, w(high)))
    definition = Expression("CommonExpressionDef", (w(column),), "int", DETERMINISTIC | UNEVALUABLE)
    return Expression("Between", (Expression("With", (both, definition), flags=DETERMINISTIC | UNEVALUABLE),))


def test_between_rejects_nulls() -> None:
    w = Letters()
    x, y = two(w)
    for predicate in (between(w, "e", "1", "2"), call("Not", between(w, "e", "1", "2"))):
        assert kinds(eliminate_outer_join(Filter(predicate, join(x, y, w("a = d"), LEFT))).plan) == [INNER]
    harmless = Filter(call("Or", between(w, "e", "1", "2"), w("e is null")), join(x, y, w("a = d"), LEFT))
    assert eliminate_outer_join(harmless).plan is harmless
    of_coalesce = Filter(between(w, "coalesce(e, 1)", "1", "2"), join(x, y, w("a = d"), LEFT))
    assert eliminate_outer_join(of_coalesce).plan is of_coalesce
    nested = Filter(between(w, "e", "1", "2"), join(x, y, w("a = d"), LEFT))
    assert "And" not in show(push_down_predicates(nested)) and kinds(normalise(nested).plan) == [INNER]
    crossing = Filter(between(w, "b", "1", "e"), join(x, y, w("a = d")))
    assert isinstance(push_down_predicates(crossing), Join)
