"""Spark's size estimates without its cost-based optimizer."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any

import pytest

from pyjoinopt.catalyst.planner.size_in_bytes import UNKNOWN, SparkSizes
from pyjoinopt.plan.expressions import SUBQUERY, Attribute, Expression, call, reference
from pyjoinopt.plan.nodes import Aggregate, Filter, Join, LogicalPlan, Project
from pyjoinopt.plan.required_columns import needed_columns
from tests.support.estimated_tables import COLUMNS, TABLES, col, eq, lit

A, B, S = Attribute(0, 0, "a", "int"), Attribute(1, 1, "b", "bigint"), Attribute(2, 2, "s", "string")
C = Attribute(3, 3, "c", "int")


def table(size: float | None, *columns: Attribute) -> LogicalPlan:
    relation = {"name": "t"} if size is None else {"name": "t", "bytes": size}
    return LogicalPlan("LogicalRelation", (), columns, info={"rel": relation})


def spark_size(plan: LogicalPlan, **options: Any) -> int:
    return SparkSizes(**options)(plan)


def read(plan: LogicalPlan) -> int:
    """The columns read anywhere in the plan."""
    return reduce(or_, needed_columns(plan).values())


def on(a: Attribute, b: Attribute) -> Expression:
    return Expression("EqualTo", (reference(a), reference(b)))


def node(kind: str, *children: LogicalPlan, **info: Any) -> LogicalPlan:
    return LogicalPlan(kind, children, children[0].output, info=info)


def test_leaves() -> None:
    assert spark_size(table(5000, A, B)) == 5000
    assert spark_size(table(None, A, B)) == UNKNOWN
    assert spark_size(table(None, A, B), conf={"spark.sql.defaultSizeInBytes": "77"}) == 77
    assert spark_size(LogicalPlan("Range", (), (B,), info={"rows": 10})) == 80
    assert spark_size(LogicalPlan("Range", (), (B,), info={"rows": 0})) == 0
    assert spark_size(LogicalPlan("LocalRelation", (), (A, S), info={"rows": 2})) == 64
    assert spark_size(LogicalPlan("OneRowRelation")) == 1
    assert spark_size(table(0, A)) == 0


def test_filters_change_nothing_and_projections_scale() -> None:
    t = table(4000, A, B, S)  # 8 + 4 + 8 + 20 bytes a row
    assert spark_size(Filter(eq(reference(A), lit(1)), t)) == 4000
    assert spark_size(Project((reference(A),), t)) == 4000 * 12 // 40
    assert spark_size(Filter(eq(reference(A), lit(1)), Project((reference(A), reference(B)), t))) == 4000 * 20 // 40


def test_columns_that_nothing_reads_do_not_count() -> None:
    t = table(4000, A, B, S)
    plan = Project((reference(A),), Filter(eq(reference(B), lit(1)), t))
    assert read(plan) == A.mask | B.mask
    sizes = SparkSizes(root=plan)
    assert sizes(t) == 4000 * 20 // 40
    assert spark_size(t) == 4000
    joined = Join(t, table(300, C), "Inner", on(A, C))
    assert read(Project((reference(B),), joined)) == A.mask | B.mask | C.mask


def test_joins() -> None:
    left, right = table(1000, A), table(300, C)
    for kind in ("Inner", "Cross", "LeftOuter", "RightOuter", "FullOuter"):
        assert spark_size(Join(left, right, kind, on(A, C))) == 300_000
    for kind in ("LeftSemi", "LeftAnti"):
        assert spark_size(Join(left, right, kind, on(A, C))) == 1000


def test_join_with_a_grouped_side_adds_up() -> None:
    left, right = table(1000, A), table(300, C, B)
    groups = Aggregate((reference(C),), (reference(C),), right, (C,))
    assert spark_size(groups) == 300 * 12 // 20
    assert spark_size(Join(left, groups, "Inner", on(A, C))) == 1000 + 180
    assert spark_size(Join(left, Filter(eq(reference(C), lit(1)), groups), "LeftOuter", on(A, C))) == 1180
    both = Aggregate((reference(C), reference(B)), (reference(C), reference(B)), right, (C, B))
    assert spark_size(Join(left, both, "Inner", on(A, C))) == 300_000  # grouped by more than the key


def test_other_operators() -> None:
    t = table(4000, A, B, S)
    assert spark_size(node("Union", t, table(6, A, B, S))) == 4006
    assert spark_size(node("Intersect", t, table(6, A, B, S))) == 6
    assert spark_size(node("Except", t, table(6, A, B, S))) == 4000
    assert spark_size(node("GlobalLimit", t, limit=3)) == 120
    assert spark_size(node("LocalLimit", t, limit=3)) == 4000
    assert spark_size(node("Sample", t, fraction=0.25)) == 1000
    assert spark_size(node("Sample", t, fraction=0.0001)) == 1
    assert spark_size(node("Sample", t, fraction=0.0003)) == 2
    assert spark_size(node("Sort", t)) == 4000
    assert spark_size(node("Expand", t, projections=[[], [], []])) == 12000
    assert spark_size(node("Window", t)) == 4000
    assert spark_size(Aggregate((), (reference(A),), t, (A,))) == 12


def test_rows_are_known_in_a_few_places() -> None:
    numbers = LogicalPlan("Range", (), (B,), info={"rows": 10})
    assert spark_size(node("GlobalLimit", numbers, limit=3)) == 3 * 16
    assert spark_size(node("GlobalLimit", numbers, limit=50)) == 10 * 16
    assert spark_size(node("GlobalLimit", node("Sort", numbers), limit=50)) == 10 * 16
    assert spark_size(node("GlobalLimit", Filter(eq(reference(B), lit(1)), numbers), limit=50)) == 50 * 16
    assert spark_size(node("GlobalLimit", node("Sample", numbers, fraction=0.25), limit=50)) == 3 * 16
    assert spark_size(node("GlobalLimit", numbers, limit=0)) == 1
    assert spark_size(node("LocalLimit", numbers, limit=0)) == 1
    one = Aggregate((), (reference(B),), numbers, (B,))
    assert spark_size(node("GlobalLimit", one, limit=50)) == 16
    semi = Join(one, table(5000, A), "LeftSemi", on(A, B))
    assert spark_size(node("GlobalLimit", semi, limit=50)) == 16
    offset = LogicalPlan("Offset", (numbers,), (B,), (lit(4),))
    assert spark_size(offset) == 6 * 16
    assert spark_size(LogicalPlan("Offset", (table(5000, B),), (B,), (lit(4),))) == 1


def test_empty_inputs() -> None:
    """A product with an empty input is not 0: Spark leaves out factors of 0, and sizes of 1 in sums."""
    empty, some = LogicalPlan("LocalRelation", (), (A,), info={"rows": 0}), table(300, C)
    assert spark_size(empty) == 0
    assert spark_size(Filter(eq(reference(A), lit(1)), empty)) == 1
    assert spark_size(Join(empty, some, "LeftOuter", on(A, C))) == 300
    assert spark_size(Join(empty, empty)) == 1
    groups = Aggregate((reference(A),), (reference(A),), empty, (A,))
    assert spark_size(Join(groups, some, "Inner", on(A, C))) == 300
    assert spark_size(Join(groups, some, "Cross", on(A, C))) == 300
    assert spark_size(node("Union", empty, empty)) == 0


def test_products_stay_finite() -> None:
    plan: LogicalPlan = table(1e12, A)
    for _ in range(1500):
        plan = node("CoGroup", plan, table(1e12, C))
    assert spark_size(plan) == 10 ** (12 * 1501)
    for _ in range(40):
        plan = node("CoGroup", plan, plan)  # each level squares the size
    assert spark_size(plan).bit_length() < 1 << 18


def test_deep_plans_are_looked_at_once() -> None:
    sizes = SparkSizes()
    plan: LogicalPlan = table(4000, A)
    for _ in range(2500):
        plan = Filter(eq(reference(A), lit(1)), plan)
        assert sizes(plan) == 4000
    assert read(plan) == A.mask


def test_definitions_of_common_tables() -> None:
    definition = node("CTERelationDef", table(500, A), cte=1)
    ref = LogicalPlan("CTERelationRef", (), (B,), info={"cte": 1})
    plan = LogicalPlan("WithCTE", (definition, Join(ref, table(10, C), "LeftSemi", on(B, C))), (B,))
    assert spark_size(plan) == 500
    assert SparkSizes(root=plan)(ref) == 500  # a separate request still finds it
    assert SparkSizes()(ref) == UNKNOWN


@pytest.mark.parametrize("name", sorted(TABLES))
def test_tables_without_bytes_are_unknown(name: str) -> None:
    assert spark_size(TABLES[name]) == UNKNOWN
    assert col(sorted(COLUMNS)[0]).attribute is not None


def test_what_a_filter_tests_multiplies_it_unless_it_is_alone() -> None:
    t, requested = table(4000, A, B, S), table(100, C)
    exists = Expression("Exists", flags=SUBQUERY, plan=requested, info={"outer_references": A.mask})
    once = Expression("Exists", flags=SUBQUERY, plan=requested)
    is_in = Expression("InSubquery", (reference(A), Expression("ListQuery", flags=SUBQUERY, plan=requested)))
    other = eq(reference(B), lit(1))
    for alone in (exists, call("Not", exists), is_in, call("And", exists, is_in), call("Or", once, other)):
        assert spark_size(Filter(alone, t)) == 4000
    assert spark_size(Filter(call("Or", exists, other), t)) == 400_000
    assert spark_size(Filter(call("And", other, call("Or", exists, is_in)), t)) == 40_000_000
    assert spark_size(Project((call("Or", exists, other), reference(A)), t)) > 4000
