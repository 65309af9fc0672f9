"""Predicates for each relation, derived from an OR over several: compared with Catalyst, and cases that forbid it."""

from __future__ import annotations

import itertools

import pytest

from pyjoinopt.catalyst.rules.push_extra_predicate_through_join import push_extra_predicate_through_join
from pyjoinopt.plan.expressions import ANSI, Expression, conjuncts
from pyjoinopt.plan.facts.or_extraction import extract_predicate_within
from pyjoinopt.plan.nodes import ANTI, FULL, INNER, LEFT, RIGHT, SEMI, Filter, Join, LogicalPlan
from pyjoinopt.plan.traversal import post_order
from pyjoinopt.rewrites.normalise import normalise
from tests.support.letters import Letters, join

OR = "a = 1 and d = 2 or a = 3 and e = 4"


@pytest.fixture
def w() -> Letters:
    return Letters()


def reported(plan: LogicalPlan) -> dict[str, list[str]]:
    """Relation -> the conjuncts right above it."""
    found = {}
    for node in post_order(plan):
        if isinstance(node, Filter) and not node.child.children:
            found[node.child.info["rel"]["name"]] = sorted(repr(e) for e in conjuncts(node.condition))
    return found


def test_both_sides_are_filtered_and_the_condition_is_kept(w: Letters) -> None:
    plan = join(w.relation("x", "a b"), w.relation("y", "d e"), w(f"b = d and ({OR})"))
    result = push_extra_predicate_through_join(plan)
    assert reported(result) == {"x": ["((a = 1) OR (a = 3))"], "y": ["((d = 2) OR (e = 4))"]}
    assert isinstance(result, Join) and result.condition is plan.condition
    assert push_extra_predicate_through_join(result) is result, "what is there already is not said again"


def test_an_alternative_without_a_test_of_the_side(w: Letters) -> None:
    plan = join(w.relation("x", "a b"), w.relation("y", "d e"), w("a = 1 and d = 2 or a = 3 or e = a"))
    assert push_extra_predicate_through_join(plan) is plan


@pytest.mark.parametrize("written", list(itertools.permutations("xyz")))
def test_however_the_joins_stand(written: tuple[str, ...]) -> None:
    """Catalyst adds derived filters to the sides of a join as written; here every relation gets one."""
    w = Letters()
    t = {"x": w.relation("x", "a b"), "y": w.relation("y", "d e"), "z": w.relation("z", "g h")}
    one, two, three = (t[name] for name in written)
    three_ways = w("a = 1 and d = 2 and g = 5 or a = 3 and e = 4 and h = 6")
    plan = Filter(three_ways, join(join(one, two), three, w("a = d and d = g")))
    assert {name: said[-1] for name, said in reported(normalise(plan).plan).items()} == {
        "x": "((a = 1) OR (a = 3))", "y": "((d = 2) OR (e = 4))", "z": "((g = 5) OR (h = 6))",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("join_type", "reached"),
    [(INNER, {"x", "y"}), (LEFT, {"x"}), (RIGHT, {"y"}), (FULL, set()), (SEMI, {"x"}), (ANTI, {"x"})],
)
def test_through_joins_that_keep_a_side(w: Letters, join_type: str, reached: set[str]) -> None:
    x, y, z = w.relation("x", "a b"), w.relation("y", "d e"), w.relation("z", "g h")
    below = join(x, y, w("b = e"), join_type)
    over = {"x": "a = 1 and g = 2 or a = 3 and g = 4", "y": "d = 1 and g = 2 or d = 3 and g = 4"}
    for name in reached or over:
        plan = join(below, z, w(f"g = h and ({over[name]})"))
        result = push_extra_predicate_through_join(plan)
        assert set(reported(result)) == ({name} if reached else set()) | {"z"}


@pytest.mark.parametrize("join_type", [LEFT, RIGHT, FULL, SEMI, ANTI])
def test_conditions_of_other_joins_are_left_alone(w: Letters, join_type: str) -> None:
    plan = join(w.relation("x", "a b"), w.relation("y", "d e"), w(f"b = d and ({OR})"), join_type)
    assert push_extra_predicate_through_join(plan) is plan


def test_what_somebody_else_reads_too_loses_no_rows(w: Letters) -> None:
    x, y = w.relation("x", "a b"), w.relation("y", "d e")
    named = w.project("a", x)
    plan = LogicalPlan("Union", (w.project("a", join(x, y, w(f"b = d and ({OR})"))), named), named.output)
    assert set(reported(push_extra_predicate_through_join(plan))) == {"y"}


def test_what_may_fail_is_not_derived(w: Letters) -> None:
    w.relation("x", "a b"), w.relation("y", "d e")
    e = w("raise_error(a) and d = 2 or a = 3 and e = 4")
    assert extract_predicate_within(e, w("a = b").references) is None
    quotient = Expression("Divide", w("a = b").children, "double", w("a").flags | ANSI)
    both = Expression("Or", (e.children[1], Expression("And", (Expression("EqualTo", (quotient, w("1"))), w("d = 2")))))
    assert extract_predicate_within(both, w("a = b").references) is None
    assert extract_predicate_within(both, w("d = e").references) is not None
