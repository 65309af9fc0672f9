"""GROUP BY without redundant constants and repetitions: cases by hand, compared with Catalyst, and by their rows."""

from __future__ import annotations

from pyjoinopt.catalyst.rules.remove_literal_from_group_expressions import remove_literal_from_group_expressions
from pyjoinopt.catalyst.rules.remove_repetition_from_group_expressions import remove_repetition_from_group_expressions
from pyjoinopt.plan import constructors
from pyjoinopt.plan.expressions import Expression, literal
from pyjoinopt.plan.nodes import Aggregate, LogicalPlan
from tests.support.letters import Letters


def grouped(w: Letters, *keys: Expression) -> Aggregate:
    """SELECT a, sum(b) GROUP BY the keys."""
    total = w.alias("total", Expression("Sum", (w("b"),), "bigint"))
    return constructors.aggregate(keys, [w("a"), total], w.relation("t", "a b c"))


def keys(plan: LogicalPlan) -> list[str]:
    assert isinstance(plan, Aggregate)
    return [str(e) for e in plan.grouping]


def test_literals_are_dropped(w: Letters) -> None:
    plan = grouped(w, w("a"), literal(1, "int"), w("b"), literal("x", "string"))
    after = remove_literal_from_group_expressions(plan)
    assert keys(after) == ["a", "b"]
    assert isinstance(after, Aggregate) and after.aggregates == plan.aggregates and after.output == plan.output


def test_all_literals_leave_one(w: Letters) -> None:
    after = remove_literal_from_group_expressions(grouped(w, literal(1, "int"), literal("x", "string")))
    assert keys(after) == ["0"]
    assert isinstance(after, Aggregate) and after.grouping[0].type == "int"
    assert remove_literal_from_group_expressions(after) is after


def test_a_zero_of_another_type_is_replaced(w: Letters) -> None:
    after = remove_literal_from_group_expressions(grouped(w, literal(0, "bigint")))
    assert isinstance(after, Aggregate) and after.grouping[0].type == "int"


def test_no_grouping_stays_no_grouping(w: Letters) -> None:
    plan = grouped(w)
    assert remove_literal_from_group_expressions(plan) is plan
    assert remove_repetition_from_group_expressions(plan) is plan


def test_repetitions_are_dropped_and_the_first_stays(w: Letters) -> None:
    plan = grouped(w, w("b"), w("a + 1"), w("b"), w("a + 1"), w("a"))
    assert keys(remove_repetition_from_group_expressions(plan)) == ["b", "(a + 1)", "a"]


def test_what_draws_anew_is_no_repetition(w: Letters) -> None:
    draw = w("rand()")
    plan = grouped(w, draw, w("rand()"), draw)
    assert remove_repetition_from_group_expressions(plan) is plan


def test_what_catalyst_calls_equal_is_a_repetition(w: Letters) -> None:
    one, other = w("a + 1"), w("b + 1")  # as if b + 1 were the same written otherwise
    for number, e in enumerate((one, other)):
        e.number, e.sem = number, 7
    assert keys(remove_repetition_from_group_expressions(grouped(w, one, other))) == ["(a + 1)"]


def test_nothing_to_do_gives_the_same_object(w: Letters) -> None:
    plan = grouped(w, w("a"), w("b"))
    assert remove_literal_from_group_expressions(plan) is plan
    assert remove_repetition_from_group_expressions(plan) is plan


def test_every_aggregate_of_a_tower_and_no_cached_one(w: Letters) -> None:
    plan: LogicalPlan = w.relation("t", "a")
    for _ in range(2000):
        plan = constructors.aggregate([w("a"), literal(1, "int"), w("a")], [w("a")], plan)
    for rule in (remove_literal_from_group_expressions, remove_repetition_from_group_expressions):
        plan = rule(plan)
    assert keys(plan) == ["a"] and keys(plan.children[0]) == ["a"]
    cached = constructors.aggregate([w("a"), literal(1, "int"), w("a")], [w("a")], plan)
    cached.cached = True
    assert remove_literal_from_group_expressions(cached) is cached
    assert remove_repetition_from_group_expressions(cached) is cached
