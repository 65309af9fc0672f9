"""Edits: the plans that they build, and the checks that refuse a wrong DataFrame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.shim.support import Shim, copy_all, expressions, find, message
from tests.support.compare import assert_same_rows, assert_same_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytest.importorskip("pyspark")


@pytest.fixture
def joined(spark: SparkSession) -> DataFrame:
    """((a ⋈ b) ⋈ c), with a filter on top."""
    a = spark.createDataFrame([(1, 10), (2, 20), (2, 21), (None, 30)], "a int, x int")
    b = spark.createDataFrame([(1, "p"), (2, "q"), (2, None)], "b int, s string")
    c = spark.createDataFrame([(10, 1.0), (20, 2.0), (21, 3.0)], "c int, v double")
    return a.join(b, a["a"] == b["b"]).join(c, a["x"] == c["c"]).where("v < 3.0")


def _joins(export: dict[str, Any]) -> tuple[int, int]:
    lower, upper = [number for number, node in enumerate(export["nodes"]) if node["c"] == "Join"]
    return lower, upper


def _swapped(export: dict[str, Any], hint: list[str | None]) -> dict[str, Any]:
    """(c ⋈ a) ⋈ b, columns put back."""
    lower, upper = _joins(export)
    nodes = export["nodes"]
    a, b = nodes[lower]["k"]
    c = nodes[upper]["k"][1]
    top = nodes[export["root"]]
    return {
        "exprs": [],
        "nodes": [
            ["Join", c, a, "Inner", nodes[upper]["cond"], hint],
            ["Join", -1, b, "Inner", nodes[lower]["cond"], [None, None]],
            ["Output", -2, upper],
            ["Filter", -3, top["cond"]],
        ],
        "root": -4,
    }


def test_another_order(spark: SparkSession, shim: Shim, joined: DataFrame) -> None:
    export = shim.export(joined)
    rebuilt = shim.rebuild(export, _swapped(export, [None, "BROADCAST"]))
    assert_same_schema(joined, rebuilt)
    assert_same_rows(joined, rebuilt)
    assert_same_rows(joined.select(joined["x"], joined["s"]), rebuilt.select(joined["x"], joined["s"]))
    again = shim.export(rebuilt)
    assert again["nodes"][find(again, "Join", hint=[None, "BROADCAST"])]["t"] == "Inner"


def test_both_orders_join_with_each_other(spark: SparkSession, shim: Shim, joined: DataFrame) -> None:
    export = shim.export(joined)
    rebuilt = shim.rebuild(export, _swapped(export, [None, None]))
    both = rebuilt.alias("l").join(joined.alias("r"), on="x")
    assert both.count() == joined.join(joined.alias("r"), on="x").count()


def test_output_is_left_out_where_nothing_moved(spark: SparkSession, shim: Shim, joined: DataFrame) -> None:
    export = shim.export(joined)
    lower, upper = _joins(export)
    edits = {
        "nodes": [
            ["JoinLike", upper, lower, export["nodes"][upper]["k"][1], None, export["nodes"][upper]["cond"]],
            ["Output", -1, upper],
            ["Copy", export["root"], [-2]],
        ],
        "root": -3,
    }
    rebuilt = shim.rebuild(export, edits)
    assert [node["c"] for node in shim.export(rebuilt)["nodes"]] == [node["c"] for node in export["nodes"]]


def test_expressions_by_name(spark: SparkSession, shim: Shim) -> None:
    df = spark.sql("select a, b from values (1, 2), (3, null), (null, 4), (5, 5) as t(a, b) where a is not null")
    export = shim.export(df)
    filtered = export["nodes"][find(export, "Filter")]
    [a, b] = filtered["o"]
    edits = {
        "exprs": [
            ["Attr", a],
            ["Attr", b],
            ["Coalesce", [-2, -1]],
            ["EqualTo", -3, -1],
            ["LessThan", -1, -2],
            ["Or", -4, -5],
            ["IsNull", -1],
            ["Not", -7],
            ["And", -6, -8],
            ["GreaterThanOrEqual", -1, -1],
            ["And", -9, -10],
            ["EqualNullSafe", -1, -1],
            ["And", -11, -12],
            ["True"],
            ["And", -13, -14],
            ["IsNotNull", -1],
            ["And", -15, -16],
        ],
        "nodes": [["Filter", filtered["k"][0], -17], ["Copy", export["root"], [-1]]],
        "root": -2,
    }
    expected = [(1, 2), (3, None), (5, 5)]
    assert sorted(map(tuple, shim.rebuild(export, edits).collect())) == expected


def test_an_alias_keeps_its_column(spark: SparkSession, shim: Shim) -> None:
    df = spark.range(3).selectExpr("id + 1 as n")
    export = shim.export(df)
    [(alias, row)] = expressions(export, "Alias")
    attribute = expressions(export, "AttributeReference")[0][0]
    edits = {
        "exprs": [["Alias", attribute, alias]],
        "nodes": [["Exprs", export["root"], [0], [[alias, -1]]]],
        "root": -1,
    }
    rebuilt = shim.rebuild(export, edits)
    assert sorted(r.n for r in rebuilt.select(df["n"]).collect()) == [0, 1, 2]


def test_a_subquery_gets_another_plan(spark: SparkSession, shim: Shim) -> None:
    df = spark.sql("select * from range(6) o where id in (select l.id from range(4) l join range(9) r on l.id = r.id)")
    export = shim.export(df)
    [(query, row)] = expressions(export, "ListQuery")
    [(holder, contains)] = expressions(export, "InSubquery")
    join = export["nodes"][find(export, "Join")]
    plan = row[5]["plan"]
    edits = {
        "exprs": [["Plan", query, -2, None], ["Copy", holder, [contains[4][0], -1]]],
        "nodes": [
            ["Join", join["k"][1], join["k"][0], "Inner", join["cond"], [None, None]],
            ["Copy", plan, [-1]],
            ["Exprs", find(export, "Filter"), [export["nodes"][find(export, "Filter")]["k"][0]], [[holder, -2]]],
            ["Copy", export["root"], [-3]],
        ],
        "root": -4,
    }
    rebuilt = shim.rebuild(export, edits)
    assert_same_rows(df, rebuilt)
    again = shim.export(rebuilt)
    swapped = again["nodes"][find(again, "Join")]
    assert [again["nodes"][k]["c"] for k in swapped["k"]] == [export["nodes"][k]["c"] for k in reversed(join["k"])]


def test_an_outer_join_becomes_inner(spark: SparkSession, shim: Shim) -> None:
    df = spark.sql("select l.id a, r.id b from range(5) l left join range(3) r on l.id = r.id where r.id >= 1")
    export = shim.export(df)
    join = find(export, "Join")
    left, right = export["nodes"][join]["k"]
    edits = {
        "nodes": [
            ["JoinLike", join, left, right, "Inner", export["nodes"][join]["cond"]],
            ["Copy", find(export, "Filter"), [-1]],
            ["Copy", export["root"], [-2]],
        ],
        "root": -3,
    }
    rebuilt = shim.rebuild(export, edits)
    assert_same_rows(df, rebuilt)
    assert_same_schema(df, rebuilt)
    assert rebuilt.schema == df.schema  # what was nullable may stay so


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no such node": ({"root": 99}, "There is no node 99"),
    "no root": ({}, "A number of a node is missing"),
    "unknown kind of node": ({"nodes": [["Teleport", 0]], "root": -1}, "no kind of node Teleport"),
    "unknown kind of expression": ({"exprs": [["Xor", 0, 0]], "root": 0}, "no kind of expression Xor"),
    "a later entry": ({"nodes": [["Copy", 2, [-2, 1]], ["Copy", 2, [0, 1]]], "root": -1}, "later"),
    "same columns twice": ({"nodes": [["Join", 0, 0, "Inner", None, [None, None]]], "root": -1}, "same column"),
    "lost columns": ({"root": 0}, "The columns changed"),
    "wrong number of children": ({"nodes": [["Copy", 2, [0]]], "root": -1}, "has 2 children, not 1"),
    "unknown hint": ({"nodes": [["Join", 0, 1, "Inner", None, ["MAGIC", None]]], "root": -1}, "no join strategy MAGIC"),
    "unknown type": ({"nodes": [["Join", 0, 1, "Sideways", None, [None, None]]], "root": -1}, "type Sideways"),
    "wider nulls": ({"nodes": [["Join", 0, 1, "FullOuter", None, [None, None]]], "root": -1}, "became nullable"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(spark: SparkSession, shim: Shim, name: str) -> None:
    from py4j.protocol import Py4JJavaError

    export = shim.export(spark.range(3).crossJoin(spark.range(2).withColumnRenamed("id", "b")))
    edits, expected = REFUSED[name]
    with pytest.raises(Py4JJavaError) as error:
        shim.rebuild(export, _renumber(export, edits))
    assert expected in message(error)
    assert "\n" not in message(error)


def _renumber(export: dict[str, Any], edits: dict[str, Any]) -> dict[str, Any]:
    """In the table above 0 and 1 are the sides of the join, and 2 is the join; here they get their real numbers."""
    join = find(export, "Join")
    real = {0: export["nodes"][join]["k"][0], 1: export["nodes"][join]["k"][1], 2: join}

    def renumber(value: Any) -> Any:
        if isinstance(value, list):
            return [renumber(item) for item in value]
        return real.get(value, value) if isinstance(value, int) else value

    return {key: value if key == "exprs" else renumber(value) for key, value in edits.items()}


def test_a_missing_column_is_named(spark: SparkSession, shim: Shim, joined: DataFrame) -> None:
    from py4j.protocol import Py4JJavaError

    export = shim.export(joined)
    lower, upper = _joins(export)
    a, b = export["nodes"][lower]["k"]
    edits = {"nodes": [["Join", a, b, "Inner", export["nodes"][upper]["cond"], [None, None]]], "root": -1}
    with pytest.raises(Py4JJavaError) as error:
        shim.rebuild(export, edits)
    assert "Join needs the column c#" in message(error)


def test_a_condition_that_is_no_predicate(spark: SparkSession, shim: Shim) -> None:
    from py4j.protocol import Py4JJavaError

    export = shim.export(spark.range(3).selectExpr("id", "array(id) as list").where("id > 1"))
    project = export["nodes"][find(export, "Filter")]["k"][0]
    bit = export["nodes"][project]["o"][1]
    with pytest.raises(Py4JJavaError) as error:
        shim.rebuild(export, {"exprs": [["Attr", bit]], "nodes": [["Filter", project, -1]], "root": -1})
    assert "is no predicate" in message(error)


def test_a_test_for_null_above_an_outer_join(spark: SparkSession, shim: Shim) -> None:
    """The join below becomes an outer one: IS NULL over a column that was never NULL would be simplified to false."""
    where = "isnull(r.id) or r.id >= 0"
    df = spark.sql(f"select l.id a, r.id b from range(4) l join range(2) r on l.id = r.id where {where}")
    export = shim.export(df)
    join, tested = find(export, "Join"), find(export, "Filter")
    left, right = export["nodes"][join]["k"]
    outer = ["JoinLike", join, left, right, "LeftOuter", export["nodes"][join]["cond"]]
    [a], [b] = export["nodes"][left]["o"], export["nodes"][right]["o"]
    alias = export["nodes"][export["root"]]["list"][1]
    exprs = [["Attr", a], ["Attr", b], ["Coalesce", [-2, -1]], ["Alias", -3, alias]]
    for kept in (["Copy", tested, [-1]], ["Filter", -1, export["nodes"][tested]["cond"]]):
        nodes = [outer, kept, ["Exprs", export["root"], [-2], [[alias, -4]]]]
        rebuilt = shim.rebuild(export, {"exprs": exprs, "nodes": nodes, "root": -3})
        assert sorted(map(tuple, rebuilt.collect())) == [(0, 0), (1, 1), (2, 2), (3, 3)]


def test_a_column_of_another_type(spark: SparkSession, shim: Shim) -> None:
    """An alias keeps its id when its input is replaced; the columns that reference it must match."""
    from py4j.protocol import Py4JJavaError

    df = spark.range(3).selectExpr("id", "array(id) as n").where("n[0] > 1")
    export = shim.export(df)
    project = export["nodes"][find(export, "Filter")]["k"][0]
    alias = export["nodes"][project]["list"][1]
    edits = {
        "exprs": [["Alias", export["nodes"][project]["list"][0], alias]],
        "nodes": [["Exprs", project, export["nodes"][project]["k"], [[alias, -1]]], ["Copy", export["root"], [-1]]],
        "root": -2,
    }
    with pytest.raises(Py4JJavaError) as error:
        shim.rebuild(export, edits)
    assert "for ARRAY<BIGINT>" in message(error) and "but it is BIGINT" in message(error)


def test_handles_are_let_go(spark: SparkSession, shim: Shim) -> None:
    from py4j.protocol import Py4JJavaError

    df = spark.range(3).where("id > 1")
    before = shim.bridge.openHandles()
    for _ in range(5):
        export = shim.export(df)
        shim.rebuild(export, copy_all(export))
        shim.bridge.release(export["handle"])
    assert shim.bridge.openHandles() == before
    shim.bridge.release(export["handle"])
    with pytest.raises(Py4JJavaError) as error:
        shim.rebuild(export, {"root": 0})
    assert "no longer open" in message(error)


def test_forgotten_handles_are_bounded(spark: SparkSession, shim: Shim) -> None:
    df = spark.range(1)
    first = shim.export(df)
    for _ in range(300):
        shim.export(df)
    assert shim.bridge.openHandles() <= 256
    from py4j.protocol import Py4JJavaError

    with pytest.raises(Py4JJavaError):
        shim.rebuild(first, {"root": first["root"]})
