"""Filters that are derived for a relation from those of others, and filters that are not."""

from __future__ import annotations

import pytest

from pyjoinopt.joins.emit.emit_plan import emit
from pyjoinopt.joins.emit.transitive_filters import transitive_filters
from pyjoinopt.joins.join_tree import join as joined
from pyjoinopt.joins.join_tree import leaf
from pyjoinopt.plan.expressions import ANSI, DETERMINISTIC, Expression, call, describe
from pyjoinopt.plan.nodes import ANTI, FULL, INNER, LEFT, SEMI, Filter, Join, LogicalPlan
from tests.support.letters import Letters
from tests.support.regions import graph_of


def inherited(plan: LogicalPlan) -> dict[str, list[str]]:
    graph, _, _ = graph_of(plan)
    return {graph.names[v]: [describe(p) for p in found] for v, found in transitive_filters(graph).items()}


def chain(w: Letters, *relations: LogicalPlan) -> LogicalPlan:
    """`a ⋈ b ⋈ …`, each joined with the one before on its first column."""
    plan = relations[0]
    for left, right in zip(relations, relations[1:]):
        plan = Join(plan, right, INNER, w(f"{left.output[0].name} = {right.output[0].name}"))
    return plan


def test_all_members_of_a_class_have_it(w, abcd):
    a, b, c, d = abcd
    assert inherited(Filter(w("c1 > 5"), chain(w, a, b, c, d))) == {n: [f"({n}1 > 5)"] for n in "abd"}


@pytest.mark.parametrize("below", [False, True])
def test_wherever_the_filter_stands(w, abc, below):
    a, b, c = abc
    aliased = LogicalPlan("SubqueryAlias", (w.project("a1", Filter(w("a1 > 5 and a2 > 1"), a)),), (a.output[0],))
    plan = chain(w, aliased, b, c) if below else Filter(w("a1 > 5 and a2 > 1"), chain(w, a, b, c))
    assert inherited(plan) == {"b": ["(b1 > 5)"], "c": ["(c1 > 5)"]}


def test_what_a_relation_tests_anyway_is_not_derived(w, abc):
    a, b, c = abc
    plan = Filter(w("5 < b1 and a1 > 5 and a1 is not null"), chain(w, a, b, c))
    assert inherited(plan) == {"c": ["(5 < c1)"]}


def test_through_a_cast_key_in_one_direction(w, abc):
    a, b, c = abc
    cast = Expression("Cast", (w("b1"),), "int", DETERMINISTIC)
    plan = Join(Join(a, b, INNER, call("EqualTo", w("a1"), cast)), c, INNER, w("b1 = c1"))
    assert list(inherited(Filter(w("a1 > 5"), plan))) == ["b", "c"]
    assert inherited(Filter(w("c1 > 5"), plan)) == {"b": ["(b1 > 5)"]}


@pytest.mark.parametrize("equality", ["a1 = x", "a1 = coalesce(b1, 0)"])
def test_what_is_computed_is_not_computed_for_more_rows(w, abc, equality):
    """Spark would push the filter below the column, to rows that a join in there removes."""
    a, b, c = abc
    computed = w.project("b1 b2", b, w.alias("x", "risky(b2)"))
    computed = LogicalPlan("Distinct", (computed,), computed.output)
    plan = Join(Join(a, computed, INNER, w(equality)), c, INNER, w("a1 = c1"))
    assert inherited(Filter(w("a1 > 5"), plan)) == {"c": ["(c1 > 5)"]}


def test_a_column_that_a_projection_hides_is_not_its_namesake(w, abc):
    """Spark gives both sides of a self-join the same columns if one side renames all of its own."""
    a, b, _ = abc
    renamed = w.project("", Filter(w("a1 > 5"), a), w.alias("x", "a1"))
    again = w.relation("a", "a1 a2")
    plan = Join(Join(renamed, again, INNER, w("x = a2")), b, INNER, w("a1 = b1"))
    assert inherited(plan) == {}


@pytest.mark.parametrize(
    "predicate", ["risky(a1) > 5", "rand(a1) > 5", "a1 > a2", "a1 is not null"], ids=["fails", "chance", "two", "null"]
)
def test_predicates_that_are_not_derived(w, abc, predicate):
    assert inherited(Filter(w(predicate), chain(w, *abc))) == {}


@pytest.mark.parametrize("type", ["double", "string collate UNICODE_CI", "array<int>"])
def test_values_that_are_equal_and_not_the_same(w, type):
    for name in ("a1", "b1", "c1"):
        w.attribute(name, type)
    relations = [w.relation(name, f"{name}1 {name}2") for name in "abc"]
    assert inherited(Filter(w("a1 > 5"), chain(w, *relations))) == {}


def test_keys_that_may_fail(w, abc):
    a, b, c = abc
    cast = Expression("Cast", (w("b1"),), "tinyint", 1 | ANSI)
    plan = Join(Join(a, b, INNER, Expression("EqualTo", (w("a1"), cast), flags=1)), c, INNER, w("a2 = c2"))
    assert inherited(Filter(w("a1 > 5"), plan)) == {}


@pytest.mark.parametrize("kind", [LEFT, SEMI, ANTI])
def test_the_condition_of_another_join_implies_nothing_for_its_sides(w, abc, kind):
    a, b, c = abc
    plan = Join(Join(a, b, INNER, w("a1 = b1")), c, kind, w("b1 = c1"))
    assert inherited(Filter(w("a1 > 5"), plan)) == {"b": ["(b1 > 5)"]}


def test_a_filter_of_padded_columns_implies_nothing(w, abc):
    a, b, c = abc
    plan = Join(Join(a, b, INNER, w("a1 = b1")), c, FULL, w("b1 = c1"))
    assert inherited(Filter(w("coalesce(a1, 9) > 5"), plan)) == {}


def test_inside_of_a_padded_side(w, abcd):
    a, b, c, _ = abcd
    inner = Join(Filter(w("b1 > 5"), b), c, INNER, w("b1 = c1"))
    assert inherited(Join(a, inner, LEFT, w("a1 = b1"))) == {"c": ["(c1 > 5)"]}


def test_an_equality_above_padding_implies_nothing_for_what_is_padded(w, abcd):
    a, b, c, d = abcd
    padded = Join(a, b, LEFT, w("a2 = b2"))
    plan = Join(Join(padded, c, LEFT, w("a2 = c2")), Filter(w("d1 > 5"), d), LEFT, w("a1 = d1"))
    assert inherited(plan) == {}


def test_an_equality_above_the_padding_of_what_it_reads(w, abc):
    a, b, c = abc
    plan = Join(Join(a, b, LEFT, w("a1 = b1")), c, INNER, w("a2 = c1"))
    cast = Expression("Cast", (w("coalesce(b2, 0)"),), "int", DETERMINISTIC)
    assert inherited(Filter(w("a2 < 1 and a2 = coalesce(b2, 0)"), plan)) == {"c": ["(c1 < 1)"]}
    assert inherited(Filter(call("And", w("a2 < 1"), call("EqualTo", w("a2"), cast)), plan)) == {"c": ["(c1 < 1)"]}


def test_what_may_fail_is_tested_after_it(w, abc):
    a, b, c = abc
    plan = Filter(w("c1 > 5 and risky(a2) > 1"), chain(w, a, b, c))
    graph, _, region = graph_of(plan)
    result = emit(graph, joined(joined(leaf(1), leaf(2)), leaf(0)), region).plan
    assert isinstance(result, Join) and isinstance(result.right, Filter)
    assert describe(result.right.condition) == "((a1 > 5) AND (risky(a2) > 1))"
