"""Queries are recognised without their constants and over tables that have grown."""

from __future__ import annotations

import pytest

from pyjoinopt.feedback.query_shape import QueryShape, query_shape
from pyjoinopt.plan.expressions import SUBQUERY, Attribute, Expression, call, literal, reference
from pyjoinopt.plan.nodes import INNER, LEFT, Filter, Join, LogicalPlan, Project, relation


def column(bit: int, name: str, type: str = "int") -> Attribute:
    return Attribute(bit, 100 + bit, name, type)


def table(name: str, *columns: Attribute, path: str = "/data", size: float = 10.0) -> LogicalPlan:
    made = relation(name, list(columns))
    made.info["rel"] = {"kind": "file", "format": "parquet", "name": name, "path": f"{path}/{name}", "bytes": size}
    return made


def query(
    constant: int = 1, first: int = 0, join_type: str = INNER, path: str = "/data", size: float = 10.0,
    type: str = "int", swapped: bool = False,
) -> QueryShape:  # fmt: skip
    """Two tables joined by a column, and a filter with a constant; columns are numbered from `first`."""
    a, b = column(first, "a"), column(first + 1, "b", type)
    condition = call("EqualTo", *(reference(c) for c in ((b, a) if swapped else (a, b))))
    joined = Join(table("t", a, path=path, size=size), table("u", b), join_type, condition)
    return query_shape(Filter(call("LessThan", reference(a), literal(constant, "int")), joined))


def test_other_constants() -> None:
    one, other = query(1), query(2)
    assert one.shape == other.shape and one.instance != other.instance
    assert query(1).instance == one.instance
    assert one.tables == ("t", "u") and one.bytes == 20.0


def test_other_numbers_of_columns_and_grown_files() -> None:
    """The export numbers the columns of subqueries, too, which may be planned in another way next time."""
    assert query(first=7) == query()
    grown = query(size=90.0)
    assert grown.shape == query().shape and grown.bytes == 100.0


@pytest.mark.parametrize(
    "other",
    [query(join_type=LEFT), query(path="/other"), query(type="bigint"), query(swapped=True)],
    ids=["join type", "path", "schema", "operands"],
)
def test_other_queries(other: QueryShape) -> None:
    assert other.shape != query().shape


def test_lists_of_any_length() -> None:
    a = column(0, "a")

    def among(*values: int) -> QueryShape:
        options = (literal(v, "int") for v in values)
        return query_shape(Filter(Expression("In", (reference(a), *options)), table("t", a)))

    assert among(1, 2).shape == among(3, 4, 5).shape and among(1, 2).instance != among(1, 3).instance
    with_column = Expression("In", (reference(a), reference(a), literal(1, "int")))
    assert query_shape(Filter(with_column, table("t", a))).shape != among(1, 2).shape


def test_many_values() -> None:
    """Of more than ten values Spark makes an InSet, and of some hundred their number is exported."""
    a = column(0, "a")

    def among(kind: str, *options: Expression, **info: object) -> QueryShape:
        return query_shape(Filter(Expression(kind, (reference(a), *options), info=dict(info)), table("t", a)))

    few = among("In", literal(1, "int"))
    some, many = among("InSet", values=[1, 2], hset=2), among("InSet", hset=300)
    assert few.shape == some.shape == many.shape
    assert len({few.instance, some.instance, many.instance}) == 3


def test_parameters_of_expressions() -> None:
    a = column(0, "a")
    shapes = {
        query_shape(Filter(Expression("SortOrder", (reference(a),), info=info), table("t", a))).shape
        for info in ({"asc": True}, {"asc": False}, {"name": "f"}, {"name": "g"}, {"ordinal": 1})
    }
    assert len(shapes) == 5


def test_subqueries_count_by_what_they_read() -> None:
    """Their own plans may be changed or not."""
    a, b, c = (column(bit, name) for bit, name in enumerate("abc"))

    def inside(plan: LogicalPlan) -> QueryShape:
        subquery = Expression("ScalarSubquery", (), "int", plan=plan, flags=1 | SUBQUERY)
        return query_shape(Filter(call("LessThan", reference(a), subquery), table("t", a)))

    def plan(name: str, constant: int) -> LogicalPlan:
        return Filter(call("LessThan", reference(b), literal(constant, "int")), Join(table(name, b), table("u", c)))

    changed = Join(table("u", c), Filter(call("LessThan", reference(b), literal(5, "int")), table("t", b)))
    assert inside(plan("t", 5)) == inside(changed)
    assert inside(plan("v", 5)).shape != inside(plan("t", 5)).shape
    assert inside(plan("t", 6)).shape == inside(plan("t", 5)).shape
    assert inside(plan("t", 6)).instance != inside(plan("t", 5)).instance


def test_names_that_may_hold_constants() -> None:
    a = column(0, "a")
    jdbc = relation("(SELECT * FROM people WHERE ssn = '123') t", [a])
    jdbc.info["rel"]["kind"] = "jdbc"
    folder = relation("day=2026-01-01", [a])
    folder.info["rel"] = {"kind": "file", "name": "day=2026-01-01", "path": "/data/sales/day=2026-01-01/hour=7"}
    assert query_shape(jdbc).tables == ("a relation",) and query_shape(folder).tables == ("sales",)


def test_limits_are_constants() -> None:
    a = column(0, "a")
    one, other = (query_shape(LogicalPlan("GlobalLimit", (table("t", a),), (a,), info={"limit": n})) for n in (5, 6))
    assert one.shape == other.shape and one.instance != other.instance


def test_columns_of_two_tables_with_one_name() -> None:
    """`a.k = 1` and `b.k = 1` differ."""
    one, two = column(0, "k"), column(1, "k")
    joined = Join(table("t", one), table("u", two), INNER, call("EqualTo", reference(one), reference(two)))
    shapes = {
        query_shape(Filter(call("LessThan", reference(c), literal(1, "int")), Project((reference(one),), joined))).shape
        for c in (one, two)
    }
    assert len(shapes) == 2
