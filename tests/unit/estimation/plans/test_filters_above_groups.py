"""Filters above groups, unions and common table expressions, whose estimates are made below these."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyjoinopt.estimation.model.relation_statistics import RelationStatistics
from pyjoinopt.estimation.plans.plan_estimator import PlanEstimates
from pyjoinopt.plan.expressions import Attribute, Expression, call, literal, reference
from pyjoinopt.plan.nodes import Aggregate, Filter, Join, LogicalPlan, Project, SubqueryAlias
from tests.support.estimated_tables import COLUMNS, TABLES, col, eq, leaf, lit

KEY, DAY, KIND, PAID = (
    Attribute(200 + i, 200 + i, name, type)
    for i, (name, type) in enumerate((("key", "bigint"), ("day", "date"), ("kind", "string"), ("paid", "decimal")))
)
TEXT = "string"


def named(e: Expression, a: Attribute) -> Expression:
    return Expression("Alias", (e,), a.type, attribute=a)


def total(of: Expression) -> Expression:
    return Expression("AggregateExpression", (Expression("Sum", (of,), of.type),), of.type)


def groups(number: int, kind: str) -> Aggregate:
    """Orders by customer and day, with a constant."""
    output = tuple(Attribute(a.bit + 10 * number, a.bit + 10 * number, a.name, a.type) for a in (KEY, DAY, KIND, PAID))
    grouping = (col("o_cust"), col("o_date"))
    values = (*grouping, literal(kind, TEXT), total(col("o_total")))
    return Aggregate(grouping, tuple(map(named, values, output)), TABLES["orders"], output)


def union(*branches: LogicalPlan) -> LogicalPlan:
    return LogicalPlan("Union", branches, (KEY, DAY, KIND, PAID))


def rows(plan: LogicalPlan, *definitions: LogicalPlan) -> float:
    return PlanEstimates(leaf, definitions)(plan).rows


def is_(a: Attribute, value: object) -> Expression:
    return call("EqualTo", reference(a), literal(value, a.type))


BOTH = union(groups(1, "shop"), groups(2, "web"))
DAYS = 10440 - 8035 + 1


def test_a_constant_chooses_a_branch() -> None:
    one = rows(groups(1, "shop"))
    assert rows(Filter(is_(KIND, "web"), BOTH)) == rows(Filter(is_(KIND, "shop"), BOTH)) == one
    assert rows(Filter(is_(KIND, "mail"), BOTH)) == 0
    either = call("In", reference(KIND), literal("shop", TEXT), literal("web", TEXT))
    assert rows(Filter(call("Or", is_(KIND, "shop"), is_(KIND, "web")), BOTH)) == 2 * one
    assert rows(Filter(either, BOTH)) == 2 * one


def test_a_filter_of_a_key_is_one_of_the_rows_that_make_the_groups() -> None:
    plan = groups(0, "shop")
    day = Filter(is_(DAY, 9000), plan)
    expected = rows(plan) / DAYS
    assert rows(day) == pytest.approx(expected)
    few = Filter(call("LessThan", reference(KEY), literal(100, "bigint")), plan)
    assert rows(few) <= 100 * DAYS
    by_day = Filter(is_(DAY, 9000), few)
    assert rows(by_day) <= 100  # so many customers, however many orders


def test_through_projections_names_and_readers() -> None:
    names = tuple(Attribute(300 + i, 300 + i, a.name, a.type) for i, a in enumerate((KEY, DAY, KIND)))
    chosen = Project(tuple(named(reference(a), b) for a, b in zip((KEY, DAY, KIND), names)), BOTH)
    definition = LogicalPlan("CTERelationDef", (SubqueryAlias("totals", chosen),), names, info={"cte": 3})
    read = tuple(Attribute(310 + i, 310 + i, a.name, a.type) for i, a in enumerate(names))
    reader = LogicalPlan("CTERelationRef", (), read, info={"cte": 3})
    condition = call("And", is_(read[2], "web"), is_(read[1], 9000))
    found = PlanEstimates(leaf, [definition])(SubqueryAlias("t", Filter(condition, reader)))
    assert found.rows == pytest.approx(rows(groups(1, "shop")) / DAYS)
    assert found.column(read[0].bit).ndv is not None
    assert found.base_rows == pytest.approx(2 * rows(groups(1, "shop")))


@pytest.mark.parametrize("between", [False, True])
def test_a_definition_that_has_changed_since(between: bool) -> None:
    """Predicates move into a definition while its readers, or what is above them, are known by the one before."""
    names = tuple(Attribute(300 + i, 300 + i, a.name, a.type) for i, a in enumerate((KEY, DAY, KIND)))

    def definition() -> LogicalPlan:
        chosen = Project(tuple(named(reference(a), b) for a, b in zip((KEY, DAY, KIND), names)), BOTH)
        return LogicalPlan("CTERelationDef", (chosen,), names, info={"cte": 3})

    def filtered(condition: Expression) -> LogicalPlan:
        return Filter(condition, definition().children[0])

    before = definition()
    after = LogicalPlan("CTERelationDef", (filtered(is_(names[2], "web")),), names, info={"cte": 3})
    reader = LogicalPlan("CTERelationRef", (), names, info={"cte": 3})
    below = SubqueryAlias("t", reader) if between else reader
    estimates = PlanEstimates(leaf, [before])
    assert estimates(below).rows == rows(BOTH)
    estimates.add_ctes([after])
    found = estimates(Filter(is_(names[1], 9000), below))
    assert found.rows == PlanEstimates(leaf, [after])(Filter(is_(names[1], 9000), below)).rows
    assert estimates(Filter(is_(names[1], 9000), reader)).rows == found.rows
    assert between or estimates(below).rows == rows(groups(1, "shop"))


def test_sums_of_what_is_positive_are_positive() -> None:
    plan = groups(0, "shop")
    above = Filter(call("GreaterThan", reference(PAID), literal(0, "decimal")), plan)
    assert rows(above) == rows(plan)
    much = Filter(call("GreaterThan", reference(PAID), literal(10**6, "decimal")), plan)
    assert rows(much) < rows(plan) / 10
    twice = Expression("Add", (col("o_total"), col("o_total")), "decimal")
    net = Expression("Subtract", (col("o_total"), twice), "decimal")
    (*others, last) = plan.aggregates
    negative = Aggregate(plan.grouping, (*others, named(total(net), plan.output[-1])), plan.child, plan.output)
    unknown = Filter(call("GreaterThan", reference(negative.output[-1]), literal(0, "decimal")), negative)
    assert rows(unknown) == pytest.approx(rows(negative) / 3)


def test_groups_are_drawn_from_all_values() -> None:
    """Customers of a day and of another one: each is one of 150,000, which both days have in common."""

    def customers(number: int, day: int) -> LogicalPlan:
        key = Attribute(400 + number, 400 + number, "c", "bigint")
        ordered = Filter(eq("o_date", lit(day)), TABLES["orders"])
        return Aggregate((col("o_cust"),), (named(col("o_cust"), key),), ordered, (key,))

    one, other = customers(1, 8100), customers(2, 8200)
    both = Join(one, other, "Inner", call("EqualTo", *(reference(plan.output[0]) for plan in (one, other))))
    estimate = PlanEstimates(_counted)
    assert estimate(both).rows == pytest.approx(estimate(one).rows * estimate(other).rows / 149_999, rel=0.01)


def _counted(node: LogicalPlan) -> RelationStatistics:
    """Statistics with the count of customers."""
    known = leaf(node)
    bit = COLUMNS["o_cust"].bit
    counted = replace(known.column(bit), ndv=149_999.0, guessed=False)
    return replace(known, columns={**known.columns, bit: counted})


def test_unions_of_unions_of_unions() -> None:
    plan: LogicalPlan = BOTH
    for _ in range(3000):
        plan = union(plan, groups(3, "mail"))
    assert rows(Filter(is_(KIND, "mail"), plan)) > 3000 * rows(groups(3, "mail")) / 4


def test_a_row_of_no_rows() -> None:
    alone = Aggregate(
        (), (named(total(col("o_total")), PAID), named(literal("x", TEXT), KIND)), TABLES["orders"], (PAID, KIND)
    )
    assert not PlanEstimates(leaf)(Filter(is_(KIND, "y"), alone)).exact
