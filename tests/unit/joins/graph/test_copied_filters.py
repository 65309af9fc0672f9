"""Filters that may throw, and the relations to which Spark copies them."""

from __future__ import annotations

import pytest

from pyjoinopt.joins.graph.build_hypergraph import build_graph
from pyjoinopt.plan.expressions import call, literal
from pyjoinopt.plan.nodes import ANTI, INNER, SEMI, Filter, Join, LogicalPlan
from tests.support.letters import Letters
from tests.support.regions import only_region, region_of


@pytest.fixture
def abc(w: Letters) -> tuple[LogicalPlan, ...]:
    return tuple(w.relation(name, f"{name}1 {name}2") for name in "abc")


@pytest.mark.parametrize(
    ("test", "on", "fixed"),
    [
        ("risky(a1) > 5", "b1 = c1", True),
        ("risky(a1) > 5", "cast(b1) = c1", False),  # nothing is substituted for a column below a cast
        ("risky(c1) > 5", "cast(b1) = c1", True),
        ("risky(c1) > 5", "cast(b1) = cast(c1)", False),
        ("risky(a1) > 5", "b2 = c1", False),  # the class of a1 has two relations: one join infers it
        ("risky(a2) > 5", "b1 = c1", False),
        ("a1 > 5", "b1 = c1", False),
    ],
)
def test_the_order_decides_where_a_key_has_three_relations(
    w: Letters, abc: tuple[LogicalPlan, ...], test: str, on: str, fixed: bool
) -> None:
    a, b, c = abc
    plan = Filter(w(test), Join(a, Join(b, c, INNER, w(on)), INNER, w("a1 = b1")))
    graph, _ = build_graph(region_of(plan), {})
    assert graph.only_as_written is fixed


@pytest.mark.parametrize(
    ("test", "fixed"),
    [
        ("risky(a1) > 5", False),  # copied to b1 at the lower join, to c1 at the upper one
        ("risky(b1) > 5", False),
        ("risky(c1) > 5", True),  # not copied to a1, which column pruning hides from the upper join
        ("risky(b1 + b2) > 5", True),  # risky(c1 + b2) could be a test of a join result
    ],
)
def test_no_order_adds_a_copy_where_all_relations_have_one(
    w: Letters, abc: tuple[LogicalPlan, ...], test: str, fixed: bool
) -> None:
    a, b, c = abc
    plan = Filter(w(test), Join(Join(a, b, INNER, w("a1 = b1")), c, INNER, w("b1 = c1")))
    graph, _ = build_graph(region_of(plan), {})
    assert graph.only_as_written is fixed


def test_a_filter_below_an_aggregate_holds_of_its_groups(w: Letters, abc: tuple[LogicalPlan, ...]) -> None:
    a, b, c = abc
    plan = Join(w.group("a1", Filter(w("risky(a1) > 5"), a)), Join(b, c, INNER, w("b1 = c1")), INNER, w("a1 = b1"))
    assert build_graph(region_of(plan), {})[0].only_as_written
    plan = Join(w.group("a2", Filter(w("risky(a1) > 5"), a)), Join(b, c, INNER, w("b1 = c1")), INNER, w("a2 = b1"))
    assert not build_graph(region_of(plan), {})[0].only_as_written


def test_two_keys_of_different_relations_may_each_be_replaced(w: Letters, abc: tuple[LogicalPlan, ...]) -> None:
    a, b, c = abc
    test = w("risky(a1 + a2) > 5")
    both = Filter(test, Join(Join(a, b, INNER, w("a1 = b1 and a2 = b2")), c, INNER, w("b2 = c2")))
    apart = Filter(test, Join(Join(a, b, INNER, w("a1 = b1")), c, INNER, w("a2 = c2")))
    single = Filter(test, Join(Join(a, b, INNER, w("a1 = b1 and a2 = b2")), c))
    assert [build_graph(region_of(plan), {})[0].only_as_written for plan in (both, apart, single)] == [
        True, True, False,
    ]  # fmt: skip


@pytest.mark.parametrize("kind", [SEMI, ANTI])
def test_the_hidden_side_of_a_semi_join_gets_copies_too(w: Letters, abc: tuple[LogicalPlan, ...], kind: str) -> None:
    a, b, c = abc
    plan = Filter(w("risky(a1) > 5"), Join(a, Join(b, c, kind, w("b1 = c1")), INNER, w("a1 = b1")))
    assert build_graph(region_of(plan), {})[0].only_as_written
    last = Filter(w("risky(a1) > 5"), Join(Join(a, b, INNER, w("a1 = b1")), c, kind, w("b1 = c1")))
    assert build_graph(region_of(last), {})[0].only_as_written is (kind == ANTI)


@pytest.mark.parametrize(("name", "fixed"), [("a1", True), ("b1", False), ("c1", False)])
def test_a_renamed_key_is_the_key(w: Letters, abc: tuple[LogicalPlan, ...], name: str, fixed: bool) -> None:
    a, b, c = (Filter(w(f"risky({name}) > 5"), one) if one.output[0].name == name else one for one in abc)
    renamed = w.project("c1", Join(b, c, INNER, w("b1 = c1")), w.alias("name", "b1"))
    assert build_graph(region_of(Join(a, renamed, INNER, w("a1 = name"))), {})[0].only_as_written is fixed


def test_a_filter_above_the_group_that_spark_moves_into_it(w: Letters, abc: tuple[LogicalPlan, ...]) -> None:
    a, b, c = abc
    found = []
    for on in ("b1 = c1", "b2 = c2"):
        joined = Join(a, Join(b, c, INNER, w(on)), INNER, w("a1 = b1"))
        costly = w.alias("costly", call("RLike", w("risky(a1)"), literal("x", "string")))
        plan = Filter(w("costly"), w.project("a1", joined, costly))
        found.append(build_graph(only_region(plan), {})[0].only_as_written)
    assert found == [True, False]


def test_a_copy_goes_on_from_the_other_name_of_a_key(w: Letters, abc: tuple[LogicalPlan, ...]) -> None:
    a, b, c = abc
    lower = Filter(w("risky(a1) > 5"), Join(a, b, INNER, w("a1 = b1")))
    for name, fixed in (("a1", False), ("a2", False)):
        renamed = w.project("a2", lower, w.alias(f"of_{name}", name))
        graph, _ = build_graph(region_of(Join(renamed, c, INNER, w(f"of_{name} = c1"))), {})
        assert graph.only_as_written is fixed


def test_what_is_an_in_again_lets_spark_copy_nothing(w: Letters, abc: tuple[LogicalPlan, ...]) -> None:
    a, b, c = abc
    joined = Join(a, b, INNER, w("a1 = b1"))
    inside = Filter(w("risky(c1) > 5"), c)
    found = [
        build_graph(region_of(Join(joined, inside, SEMI, w("b1 = c1"), info=info)), {})[0].only_as_written
        for info in ({}, {"subquery": 7})
    ]
    assert found == [True, False]
