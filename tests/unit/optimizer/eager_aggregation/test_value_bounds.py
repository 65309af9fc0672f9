"""Bounds of files hold for a plan's columns as long as their values are left as they are."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from pyjoinopt.estimation.model.relation_statistics import RelationStatistics
from pyjoinopt.optimizer.eager_aggregation.value_bounds import value_bounds
from pyjoinopt.plan.constructors import ColumnFactory, distinct, union
from pyjoinopt.plan.expressions import Attribute, Expression, call, reference
from pyjoinopt.plan.fallible.value_ranges import Range
from pyjoinopt.plan.nodes import INNER, Filter, Join, LogicalPlan, Project, relation

A, B = Attribute(0, 1, "a", "bigint"), Attribute(1, 2, "b", "decimal(9,2)")
SMALL = RelationStatistics(9.0, 9.0, value_bounds={0: (-3, 2**60 + 1)})
LARGE = RelationStatistics(9.0, 9.0, value_bounds={1: (0.1, 0.3)})


def leaf(number: int, attribute: Attribute) -> LogicalPlan:
    made = relation(f"t{number}", [attribute])
    made.number = number
    return made


def known(plan: LogicalPlan) -> dict[int, Range]:
    return value_bounds(plan, lambda node: {0: SMALL, 1: LARGE}.get(node.number or 0, replace(SMALL, value_bounds={})))


def test_whole_numbers_are_exact_and_others_are_rounded_outwards() -> None:
    found = known(Join(leaf(0, A), leaf(1, B), INNER, None))
    assert found[0] == Range(Fraction(-3), Fraction(2**60 + 1))
    assert found[1].low < Fraction(1, 10) and found[1].high > Fraction(3, 10)


def test_above_filters_and_new_names() -> None:
    fresh = ColumnFactory(7)
    name = fresh.alias(reference(A), "again")
    again = fresh.alias(reference(name.attribute), "once more") if name.attribute is not None else name
    below = Project((name,), Filter(call("IsNotNull", reference(A)), leaf(0, A)))
    assert known(Project((again,), below))[8] == Range(Fraction(-3), Fraction(2**60 + 1))


def test_not_of_what_is_computed() -> None:
    computed = Expression("Add", (reference(A), reference(A)), "bigint")
    assert 7 not in known(Project((ColumnFactory(7).alias(computed, "sum"),), leaf(0, A)))


def test_not_of_a_column_that_is_defined_anew() -> None:
    other = Expression("Alias", (reference(B),), "bigint", attribute=A, info={"n": "a", "as": True})
    unknown = Expression(
        "Alias", (Expression("Rand", (), "bigint"),), "bigint", attribute=A, info={"n": "a", "as": True}
    )
    both = Join(leaf(0, A), leaf(1, B), INNER, None)
    assert known(Project((other,), both))[0].high < 1
    assert 0 not in known(Project((unknown,), both))


def test_not_above_a_union_or_another_operator() -> None:
    assert known(union([leaf(0, A), leaf(1, B)])) == {}
    assert known(distinct(leaf(0, A))) == {}
