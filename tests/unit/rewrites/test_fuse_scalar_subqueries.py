"""Scalar subqueries over one table get one filter, and FILTER clauses; for each condition a query just misses it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest

from pyjoinopt.plan.constructors import ColumnFactory, aggregate, aggregate_call
from pyjoinopt.plan.expressions import ANSI, CORRELATED, DETERMINISTIC, SUBQUERY, Expression, call, reference
from pyjoinopt.plan.nodes import Aggregate, Filter, Join, LogicalPlan, Project, SubqueryAlias
from pyjoinopt.plan.traversal import post_order
from pyjoinopt.rewrites import fuse_scalar_subqueries as module
from pyjoinopt.rewrites.fuse_scalar_subqueries import fuse_scalar_subqueries, may_be_worthwhile, merges_equal_inputs
from tests.support.letters import Letters

FILES = {"kind": "file", "format": "parquet", "name": "t", "bytes": 1.0}
MERGING = "org.apache.spark.sql.catalyst.optimizer."


class Query:
    """Builds a query whose only row has one scalar subquery a column."""

    def __init__(self) -> None:
        self.w = Letters()
        self._fresh = ColumnFactory(1000)
        self._tables = 0

    def table(
        self, rel: dict[str, Any] | None = None, types: Sequence[str] = ("int", "int"), **info: Any
    ) -> LogicalPlan:
        """A reading of the table with columns `xN` and `yN`; each has columns of its own."""
        self._tables += 1
        names = [f"{c}{self._tables}" for c in "xy"]
        for name, type in zip(names, types, strict=True):
            self.w.attribute(name, type)
        found = {**FILES, **(rel or {})}
        if found.pop("partitioned", False):
            found["partitionCols"] = [self.w.attribute(names[0]).bit]
        return self.w.relation(f"t{self._tables}", " ".join(names), **{"alike": 1, "rel": found, **info})

    def filtered(self, table: LogicalPlan, where: str) -> LogicalPlan:
        number = table.output[0].name[1:]
        return Filter(self.w(re.sub(r"\b([xy])\b", rf"\g<1>{number}", where)), table) if where else table

    def counted(
        self, where: str = "", table: LogicalPlan | None = None, function: Expression | None = None
    ) -> Aggregate:
        """SELECT count(y) or another function FROM the table WHERE."""
        table = table if table is not None else self.table()
        function = function if function is not None else aggregate_call("Count", reference(table.output[1]))
        return aggregate((), (self._fresh.alias(parameters(function), "c"),), self.filtered(table, where))

    def summed(
        self, where: str, type: str = "int", function: str = "Sum", flags: int = 0, distinct: bool = False
    ) -> Aggregate:
        table = self.table(types=("int", type))
        call = aggregate_call(function, reference(table.output[1]), type)
        inner = Expression(function, call.children[0].children, type, call.children[0].flags | flags)
        info = {**call.info, "distinct": distinct}
        return self.counted(where, table, Expression(call.kind, (inner,), type, call.flags, info=info))

    def select(self, *plans: LogicalPlan, flags: int = 0) -> Project:
        columns = tuple(self._fresh.alias(scalar(plan, flags), f"s{i}") for i, plan in enumerate(plans))
        return Project(columns, LogicalPlan("OneRowRelation"))


def parameters(call: Expression) -> Expression:
    """The call as the export has it, with the function's other parameters."""
    return Expression(call.kind, call.children, call.type, call.flags, info={"parameters": "", **call.info})


def scalar(plan: LogicalPlan, flags: int = 0) -> Expression:
    return Expression("ScalarSubquery", (), "bigint", DETERMINISTIC | SUBQUERY | flags, plan=plan)


def fused(plan: LogicalPlan) -> int:
    """How many subqueries are computed together."""
    result, notes = fuse_scalar_subqueries(plan)
    assert (result is plan) is (not notes)
    return sum(int(note.split()[0]) for note in notes)


@pytest.fixture
def q() -> Query:
    return Query()


def test_what_it_becomes(q: Query) -> None:
    query = q.select(q.counted("x = 1 and y > 0"), q.counted("x = 2 and y > 0"))
    plan, notes = fuse_scalar_subqueries(query)
    assert notes == ("2 scalar subqueries over t are computed in one pass",)
    assert plan.output == query.output
    texts = []
    for e in plan.expressions:
        (inner,) = (s.plan for s in e.children)
        assert isinstance(inner, Aggregate) and isinstance(inner.child, Filter)
        (listed,) = inner.aggregates
        texts.append((str(listed.children[0].children[1]), str(inner.child.condition)))
    assert texts == [
        ("(x1 = 1)", "((y1 > 0) AND ((x1 = 1) OR (x1 = 2)))"),
        ("(x2 = 2)", "((y2 > 0) AND ((x2 = 1) OR (x2 = 2)))"),
    ]


def test_one_filter_for_all_if_one_reads_all_rows(q: Query) -> None:
    plan, _ = fuse_scalar_subqueries(q.select(q.counted("x = 1"), q.counted("")))
    for e in plan.expressions:
        (inner,) = (s.plan for s in e.children)
        assert inner is not None and not any(isinstance(node, Filter) for node in post_order(inner))
    assert [len(e.children[0].plan.expressions[0].children[0].children) for e in plan.expressions] == [2, 1]  # type: ignore[union-attr]


def test_a_repeated_filter_is_one_alternative(q: Query) -> None:
    plan, notes = fuse_scalar_subqueries(q.select(q.counted("x = 1"), q.counted("x = 1"), q.counted("x = 2")))
    (inner,) = (s.plan for s in plan.expressions[0].children)
    assert inner is not None and str(inner.children[0].expressions[0]) == "((x1 = 1) OR (x1 = 2))"
    assert notes == ("3 scalar subqueries over t are computed in one pass",)


def test_filters_in_another_order_are_one_alternative(q: Query) -> None:
    plan, _ = fuse_scalar_subqueries(
        q.select(q.counted("x = 1 and y = 2"), q.counted("y = 2 and x = 1"), q.counted("x = 3"))
    )
    (inner,) = (s.plan for s in plan.expressions[0].children)
    assert inner is not None and str(inner.children[0].expressions[0]) == "(((x1 = 1) AND (y1 = 2)) OR (x1 = 3))"


def test_equal_filters_are_left_to_spark(q: Query) -> None:
    assert fused(q.select(q.counted("x = 1"), q.counted("x = 1"))) == 0
    assert fused(q.select(q.counted(""), q.counted(""))) == 0


def test_two_tables(q: Query) -> None:
    query = q.select(
        q.counted("x = 1"),
        q.counted("x = 1", q.table(alike=2)),
        q.counted("x = 2"),
        q.counted("x = 3", q.table(alike=2)),
    )
    assert len(fuse_scalar_subqueries(query).notes) == 2 and fused(query) == 4
    assert fused(q.select(q.counted("x = 1"), q.counted("x = 2", q.table(alike=2)))) == 0


@pytest.mark.parametrize(
    ("rel", "expected"),
    [
        ({}, 2),
        ({"format": "orc"}, 2),
        ({"format": "csv"}, 0),
        ({"kind": "v2"}, 0),
        ({"bytes": None}, 0),
        ({"partitioned": True}, 0),
    ],
)
def test_which_tables(q: Query, rel: dict[str, Any], expected: int) -> None:
    assert fused(q.select(q.counted("x = 1", q.table(rel)), q.counted("x = 2", q.table(rel)))) == expected


def test_partition_columns_that_all_filter_alike(q: Query) -> None:
    rel = {"partitioned": True}
    tables = [q.counted(f"x = 1 and y = {i}", q.table(rel)) for i in range(2)]
    assert fused(q.select(*tables)) == 2


def test_cached_data(q: Query) -> None:
    assert fused(q.select(q.counted("x = 1", q.table(cached=True)), q.counted("x = 2", q.table(cached=True)))) == 0


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("x = 1", "length(y) = 2", 2),  # the second one reads all rows anyway
        ("x = 1", "f(x) = 2", 0),  # the function may fail
        ("x = 1 and y > 2", "x = 2 and in(y, 1, 2)", 2),
        ("x = 1 and length(y) = 2", "x = 2", 0),
        ("x = 1 and length(y) = 2", "", 2),
        ("x = 1 and length(y) = 2", "x = 2 and length(y) = 2", 2),
        ("x = 1 and length(y) = 2", "length(y) = 2", 2),
        ("x = 1 and (x = 2 or length(y) = 3)", "x = 2", 0),
        ("x = 1 and x = y", "x = 2", 0),
        ("x = 1 and y is null", "x = 2 and not y is null", 2),
        ("x = 1 and in(y, 1, x)", "x = 2", 0),
        ("x = 1 and in(length(y), 1, 2)", "x = 2", 0),
        ("x = 1 and contains(y, 1)", "x = 2", 0),
        ("x = 1 and coalesce(y, 1) is null", "x = 2", 0),
        ("x = 1 and x + y > 3", "x = 2", 0),
        ("true", "x = 2", 0),
        ("rand(x) = 1", "x = 2", 0),
    ],
)
def test_which_filters(q: Query, first: str, second: str, expected: int) -> None:
    assert fused(q.select(q.counted(first), q.counted(second))) == expected


@pytest.mark.parametrize(
    ("function", "type", "flags", "expected"),
    [
        ("Sum", "int", ANSI, 2),
        ("Sum", "bigint", ANSI, 0),
        ("Sum", "bigint", 0, 2),
        ("Sum", "decimal(28,2)", ANSI, 2),
        ("Sum", "decimal(29,2)", ANSI, 0),
        ("Sum", "decimal(38,2)", 0, 2),
        ("Sum", "interval day", 0, 0),
        ("Sum", "double", ANSI, 2),
        ("Average", "bigint", ANSI, 2),
        ("Average", "decimal(29,2)", ANSI, 0),
        ("Max", "bigint", ANSI, 2),
        ("Max", "array<int>", 0, 0),
        ("First", "int", 0, 0),
    ],
)
def test_which_functions(q: Query, function: str, type: str, flags: int, expected: int) -> None:
    query = q.select(*(q.summed(f"x = {i}", type, function, flags) for i in range(2)))
    assert fused(query) == expected


def test_distinct(q: Query) -> None:
    assert fused(q.select(q.summed("x = 1"), q.summed("x = 2", distinct=True))) == 0


def test_not_if_what_is_left_needs_as_many_scans(q: Query) -> None:
    def left(where: str) -> Aggregate:
        return q.summed(where, distinct=True)

    assert fused(q.select(q.counted("x = 1"), q.counted("x = 2"), left("x = 1"))) == 0
    three = [q.counted(f"x = {i}") for i in range(3)]
    assert fused(q.select(*three, left("x = 1"))) == 3
    assert fused(q.select(*three, left("x = 1"), left("x = 2"))) == 0
    assert fused(q.select(*three, left("x = 3"), left("x = 4"))) == 3
    table = q.table()
    computed = q._fresh.alias(q.w(f"{table.output[0].name} + 1"), "z")
    below = Project((reference(table.output[1]), computed), q.filtered(table, "x = 1"))
    grouped = aggregate((reference(table.output[0]),), three[0].aggregates, q.filtered(table, "x = 1"))
    assert fused(q.select(q.counted("x = 1"), q.counted("x = 2"), grouped)) == 2
    hidden = q.counted("", below, aggregate_call("First", reference(table.output[1])))
    assert fused(q.select(q.counted("x = 1"), q.counted("x = 2"), hidden)) == 0
    other = q.counted("x = 1", q.table(alike=2), aggregate_call("First", reference(q.table().output[1])))
    assert fused(q.select(q.counted("x = 1"), q.counted("x = 2"), other)) == 2, "it reads another table"


def test_hashing_and_sorting_are_not_mixed(q: Query) -> None:
    def text(where: str) -> Aggregate:
        return q.summed(where, "string", "Max")

    numbers = [q.table(types=("int", "string")) for _ in range(2)]
    counts = [q.counted(f"x = {i}", table) for i, table in enumerate(numbers)]
    assert fused(q.select(text("x = 1"), counts[0])) == 0
    query = q.select(text("x = 1"), counts[0], text("x = 2"), counts[1])
    assert len(fuse_scalar_subqueries(query).notes) == 2


def test_a_result_that_cannot_be_computed(q: Query) -> None:
    def divided(where: str, flags: int) -> Aggregate:
        plan = q.counted(where)
        (listed,) = plan.aggregates
        one = Expression("Literal", type="bigint", value=1, text="1")
        body = Expression("Divide", (one, listed.children[0]), "double", DETERMINISTIC | flags)
        return aggregate((), (listed.with_children((body,)),), plan.child)

    for flags, expected in ((0, 2), (ANSI, 0)):
        assert fused(q.select(q.counted("x = 1"), divided("x = 2", flags))) == expected


def test_what_is_above_or_beside_the_aggregate(q: Query) -> None:
    one = q.counted("x = 1")

    def over(kind: str) -> LogicalPlan:
        other = q.counted("x = 2")
        return LogicalPlan(kind, (other,), other.output)

    assert fused(q.select(one, SubqueryAlias("s", q.counted("x = 2")))) == 2
    for kind in ("Sort", "GlobalLimit", "Distinct"):
        assert fused(q.select(one, over(kind))) == 0
    having = q.counted("x = 2")
    assert fused(q.select(one, Filter(Expression("IsNotNull", (reference(having.output[0]),)), having))) == 0
    table = q.table()
    grouped = aggregate((reference(table.output[0]),), q.counted("", table).aggregates, q.filtered(table, "x = 2"))
    assert fused(q.select(one, grouped)) == 0
    two = q.counted("x = 2")
    assert fused(q.select(one, aggregate((), two.aggregates * 2, two.child))) == 0
    assert fused(q.select(one, aggregate((), (q._fresh.alias(q.w("7"), "c"),), two.child))) == 0
    hinted = q.counted("x = 2")
    hinted.info["hint"] = "x"
    assert fused(q.select(one, hinted)) == 0


def test_what_is_below_the_aggregate(q: Query) -> None:
    def through(body: str) -> Aggregate:
        table = q.table()
        x, y = table.output
        columns: tuple[Expression, ...] = (reference(y), reference(x))
        if body:
            columns = (reference(y), q._fresh.alias(q.w(f"{x.name} + 1"), "z"))
        call = aggregate_call("Count", reference(y))
        return q.counted("", Project(columns, q.filtered(table, "x = 2")), call)

    assert fused(q.select(q.counted("x = 1"), through(""))) == 2
    assert fused(q.select(q.counted("x = 1"), through("computed"))) == 0
    table, other = q.table(), q.w.relation("u", "k")
    joined = Join(q.filtered(table, "x = 2"), other)
    call_of = aggregate_call("Count", reference(table.output[1]))
    assert fused(q.select(q.counted("x = 1"), q.counted("", joined, call_of))) == 0


def test_correlated_subqueries(q: Query) -> None:
    assert fused(q.select(q.counted("x = 1"), q.counted("x = 2"), flags=CORRELATED)) == 0


def test_filters_with_subqueries(q: Query) -> None:
    table = q.table()
    condition = call("EqualTo", reference(table.output[0]), scalar(q.counted("x = 3")))
    nested = q.counted("", Filter(condition, table), aggregate_call("Count", reference(table.output[1])))
    assert fused(q.select(q.counted("x = 1"), nested)) == 2, "the one inside"


def test_columns_that_are_not_read(q: Query) -> None:
    query = q.select(q.counted("x = 1"), q.counted("x = 2"))
    for read, expected in ((query.output, 2), (query.output[:1], 0)):
        assert fused(Project(tuple(map(reference, read)), query)) == expected


@pytest.mark.parametrize(("kind", "expected"), [("ListQuery", 2), ("Exists", 0)])
def test_inside_other_subqueries(q: Query, kind: str, expected: int) -> None:
    inside = q.select(q.counted("x = 1"), q.counted("x = 2"))
    one, other = LogicalPlan("OneRowRelation"), Expression(kind, flags=DETERMINISTIC | SUBQUERY, plan=inside)
    assert fused(Filter(other, one)) == expected
    plans = (q.counted("x = 3"), q.counted("x = 4"))
    operands = tuple(Expression(kind, flags=DETERMINISTIC | SUBQUERY, plan=plan) for plan in plans)
    assert fused(Filter(call("And", *operands), one)) == 0


def test_a_subquery_that_is_used_twice_counts_once(q: Query) -> None:
    one = q.counted("x = 1")
    assert fused(q.select(one, one, q.counted("x = 2"))) == 2


def test_common_tables_that_spark_keeps(q: Query) -> None:
    query = q.select(q.counted("x = 1"), q.counted("x = 2"))
    for condition, expected in (("k > 1", 2), ("rand(k) > 1", 0)):
        definition = LogicalPlan("CTERelationDef", (Filter(q.w(condition), q.w.relation("d", "k")),), info={"cte": 1})
        whole = LogicalPlan("WithCTE", (query, definition), query.output)
        assert fused(whole) == expected
        assert fused(q.select(whole)) == expected


def test_many_functions(q: Query) -> None:
    most = module._MOST_FUNCTIONS
    notes = fuse_scalar_subqueries(q.select(*(q.counted(f"x = {i}") for i in range(most + 2)))).notes
    assert [int(note.split()[0]) for note in notes] == [most, 2]
    # Two filters are two scans, and so many functions of each would be three passes.
    assert fused(q.select(*(q.counted(f"x = {i % 2}") for i in range(2 * most + 2)))) == 0


def test_when_it_is_worth_a_look(q: Query) -> None:
    one, other = scalar(q.counted("x = 1")), scalar(q.counted("x = 2"), CORRELATED)
    assert may_be_worthwhile([one, one]) and not may_be_worthwhile([one, other])
    assert not may_be_worthwhile([one, Expression("Exists", flags=SUBQUERY | DETERMINISTIC)])


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, True),
        ({module._REUSE: "false"}, False),
        ({module._SYMMETRIC: "true"}, False),
        ({module._SYMMETRIC: "false"}, True),
        ({module._EXCLUDED: MERGING + "MergeScalarSubqueries"}, False),
        ({module._EXCLUDED: f"{MERGING}CombineFilters, {MERGING}MergeSubplans"}, False),
        ({module._EXCLUDED: MERGING + "CombineFilters"}, True),
        ({module._EXTENSIONS: "io.delta.sql.DeltaSparkSessionExtension"}, False),
        ({module._EXTENSIONS: "org.example.Extension"}, True),
    ],
)
def test_settings(settings: dict[str, str], expected: bool) -> None:
    assert merges_equal_inputs(settings) is expected
