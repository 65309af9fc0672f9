"""The contents of a plan's export."""

from __future__ import annotations

import datetime
import decimal
from typing import TYPE_CHECKING

import pytest

from tests.shim.support import Shim, expressions, find, leaf

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytest.importorskip("pyspark")

DETERMINISTIC, NULL_INTOLERANT, FOLDABLE, PYTHON, UNEVALUABLE = 1, 2, 4, 16, 32
OUTER, SUBQUERY, AGGREGATING, ANSI, NULLABLE, CORRELATED = 64, 128, 256, 512, 1024, 2048


def test_children_come_first_and_are_told_once(spark: SparkSession, shim: Shim) -> None:
    df = spark.range(3).where("id > 1")
    export = shim.export(df.union(df))
    for number, node in enumerate(export["nodes"]):
        assert all(child < number for child in node["k"])
    for number, row in enumerate(export["expressions"]):
        assert all(child < number for child in row[4])
    assert export["root"] == len(export["nodes"]) - 1
    assert (export["streaming"], export["command"], export["resolved"]) == (False, False, True)


def test_outputs_are_those_of_spark(spark: SparkSession, shim: Shim) -> None:
    left, right = spark.range(3).withColumnRenamed("id", "a"), spark.range(4).selectExpr("id as b", "id % 2 as c")
    for how, columns in {"inner": "abc", "left": "abc", "full": "abc", "leftsemi": "a", "leftanti": "a"}.items():
        df = left.join(right, left["a"] == right["b"], how).where("a >= 0").alias("t")
        export = shim.export(df)
        output = export["nodes"][export["root"]]["o"]
        assert [export["attributes"][bit][2] for bit in output] == list(columns), how
        assert [export["attributes"][bit][0] for bit in output] == _ids(df), how


def _ids(df: DataFrame) -> list[int]:
    output = df._jdf.queryExecution().analyzed().output()
    return [output.apply(i).exprId().id() for i in range(output.size())]


def test_joins_tell_type_condition_and_hint(spark: SparkSession, shim: Shim) -> None:
    from pyspark.sql import functions as f

    a, b = spark.range(3).alias("a"), spark.range(3).alias("b")
    df = a.join(f.broadcast(b), f.col("a.id") == f.col("b.id"), "left")
    export = shim.export(df)
    join = export["nodes"][find(export, "Join")]
    assert join["t"] == "LeftOuter"
    assert export["expressions"][join["cond"]][0] == "EqualTo"
    assert export["nodes"][find(export, "ResolvedHint")]["hint"] == "BROADCAST"
    optimized = shim.export(df, stage="optimized")
    assert optimized["nodes"][find(optimized, "Join")]["hint"] == [None, "BROADCAST"]


def test_flags(spark: SparkSession, shim: Shim) -> None:
    from pyspark.sql import functions as f

    python = f.udf(lambda n: n, "long")
    df = spark.range(3).select(
        (f.col("id") + 1).alias("sum"),
        f.rand(1).alias("random"),
        python("id").alias("python"),
        f.coalesce(f.col("id"), f.lit(0)).alias("first"),
        f.expr("(select max(id) from range(3))").alias("subquery"),
    )
    export = shim.export(df)
    flags = {
        kind: expressions(export, kind)[0][1][2] for kind in ("Add", "Rand", "PythonUDF", "Coalesce", "ScalarSubquery")
    }
    assert flags["Add"] & (DETERMINISTIC | NULL_INTOLERANT) == DETERMINISTIC | NULL_INTOLERANT
    assert not flags["Rand"] & DETERMINISTIC
    assert flags["PythonUDF"] & (PYTHON | UNEVALUABLE) == PYTHON | UNEVALUABLE
    assert not flags["Coalesce"] & NULL_INTOLERANT
    assert flags["ScalarSubquery"] & SUBQUERY and not flags["ScalarSubquery"] & CORRELATED
    maximum = expressions(export, "Max")[0][1]
    assert maximum[2] & AGGREGATING


def test_ansi_marks_what_can_fail(spark: SparkSession, shim: Shim) -> None:
    ansi = spark.conf.get("spark.sql.ansi.enabled")
    try:
        spark.conf.set("spark.sql.ansi.enabled", "true")
        export = shim.export(
            spark.sql(
                "select cast(s as int) n, cast(id as double) d, id / 2 q from (select id, string(id) s from range(3))"
            )
        )
        casts = {export["types"][row[1]]: row[2] & ANSI for _, row in expressions(export, "Cast")}
        assert casts["int"], "text may be no number"
        assert not casts["string"], "every number is a text"
        assert expressions(export, "Divide")[0][1][2] & ANSI
        spark.conf.set("spark.sql.ansi.enabled", "false")
        export = shim.export(
            spark.sql("select cast(s as int) n, id / 2 q from (select id, string(id) s from range(3))")
        )
        assert not any(row[2] & ANSI for row in export["expressions"])
    finally:
        spark.conf.set("spark.sql.ansi.enabled", ansi)


def test_meaning_is_shared_by_equal_expressions_only(spark: SparkSession, shim: Shim) -> None:
    export = shim.export(spark.range(3).where("id = 1 or (1 = id and id > 2)").selectExpr("rand(1)", "rand(1)"))
    first, second = [row[3] for _, row in expressions(export, "EqualTo")]
    assert first == second
    assert expressions(export, "GreaterThan")[0][1][3] != first
    one, other = [row[3] for _, row in expressions(export, "Rand")]
    assert one != other


def test_subqueries_tell_their_plan_and_what_they_take_from_outside(spark: SparkSession, shim: Shim) -> None:
    df = spark.sql("select * from range(3) o where exists (select 1 from range(5) i where i.id > o.id)")
    export = shim.export(df)
    [(number, row)] = expressions(export, "Exists")
    holder = find(export, "Filter", cond=number)
    assert row[2] & CORRELATED
    assert row[5]["plan"] < holder
    assert row[5]["plan"] not in export["nodes"][holder]["k"]
    [(_, outer)] = expressions(export, "OuterReference")
    assert outer[2] & OUTER and outer[4] == []
    outer_range = export["nodes"][holder]["k"][0]
    assert outer[5]["a"] in export["nodes"][outer_range]["o"]
    assert [export["expressions"][e][5]["a"] for e in row[5]["outer"]] == [outer[5]["a"]]


def test_common_table_expressions(spark: SparkSession, shim: Shim) -> None:
    export = shim.export(spark.sql("with t as (select id from range(3)) select * from t a join t b on a.id = b.id"))
    with_cte = export["nodes"][find(export, "WithCTE")]
    definition = export["nodes"][with_cte["k"][0]]
    assert definition["c"] == "CTERelationDef" and len(with_cte["k"]) == 2
    references = [node for node in export["nodes"] if node["c"] == "CTERelationRef"]
    assert [node["cte"] for node in references] == [definition["cte"]] * 2


def test_literals(spark: SparkSession, shim: Shim) -> None:
    export = shim.export(
        spark.sql(
            "select 1Y, 2, 3L, 1.5D, 1.25BD, true, 'text', date'2024-02-29', timestamp_ntz'2024-01-01 00:00:01', "
            "null, x'ab', double('NaN'), array(1), repeat('x', 3), interval '1' day"
        )
    )
    values = {export["types"][row[1]]: row[5] for _, row in expressions(export, "Literal")}
    assert values["tinyint"]["v"] == 1 and values["bigint"]["v"] == 3 and values["double"]["v"] == 1.5
    assert decimal.Decimal(values["decimal(3,2)"]["v"]["d"]) == decimal.Decimal("1.25")
    assert values["boolean"]["v"] is True and values["void"]["v"] is None
    assert values["date"]["v"] == {"date": (datetime.date(2024, 2, 29) - datetime.date(1970, 1, 1)).days}
    assert values["timestamp_ntz"]["v"] == {"ts": 1704067201000000}
    assert "v" not in values["binary"] and values["binary"]["s"] == "X'AB'"


def test_long_text_is_not_told(spark: SparkSession, shim: Shim) -> None:
    from pyspark.sql import functions as f

    export = shim.export(spark.range(1).select(f.lit("y" * 201).alias("long"), f.lit("y" * 200).alias("short")))
    long, short = [row[5] for _, row in expressions(export, "Literal")]
    assert "v" not in long and len(long["s"]) == 200
    assert short["v"] == "y" * 200


def test_filters_that_reject_nulls(spark: SparkSession, shim: Shim) -> None:
    df = spark.sql(
        "select * from range(3) l left join range(3) r on l.id = r.id "
        "where r.id > 1 and r.id is null and coalesce(r.id, 7) = 7 and r.id <=> 1 "
        "and r.id in (1, 2) and r.id + rand() > 0 and not (r.id = 5) and (r.id = 1 or r.id = 2) "
        "and r.id > (select 1) and nvl(r.id, 0) = 1 and r.id in (select 3L)"
    )
    export = shim.export(df)
    reported = {_text(export, number) for number in export["filtersNull"]}
    assert reported == {
        "EqualTo(id,id)",
        "GreaterThan(id,Cast(1))",
        "EqualNullSafe(id,Cast(1))",
        "In(Cast(id),Cast(1),Cast(2))",
        "Not(EqualTo(id,Cast(5)))",
        "Or(EqualTo(id,Cast(1)),EqualTo(id,Cast(2)))",
        "EqualTo(Nvl(Coalesce(id,Cast(0))),Cast(1))",
    }


def _text(export: dict, number: int) -> str:
    kind, _, _, _, children, extra = export["expressions"][number]
    if kind == "AttributeReference":
        return str(export["attributes"][extra["a"]][2])
    if kind == "Literal":
        return str(extra["s"])
    return kind + "(" + ",".join(_text(export, c) for c in children) + ")"


def test_no_outer_join_no_question(spark: SparkSession, shim: Shim) -> None:
    assert shim.export(spark.range(3).where("id > 1"))["filtersNull"] == []


def test_cached_plans_are_marked_once(spark: SparkSession, shim: Shim) -> None:
    inner = spark.range(30).selectExpr("id as a", "id % 3 as k").join(spark.range(3).withColumnRenamed("id", "k2"))
    df = inner.where("k = k2").join(spark.range(5), on=[inner["a"] > 1], how="left")
    assert not any(node.get("cached") for node in shim.export(df)["nodes"])
    inner.cache()
    try:
        inner.createOrReplaceTempView("shim_cached")
        for query in (df, spark.sql("select * from range(9) where id > (select max(a) from shim_cached)")):
            export = shim.export(query)
            [marked] = [node for node in export["nodes"] if node.get("cached")]
            assert [export["attributes"][bit][2] for bit in marked["o"]] == ["a", "k", "k2"]
    finally:
        inner.unpersist()
    assert not any(node.get("cached") for node in shim.export(df)["nodes"])


def test_files(spark: SparkSession, shim: Shim, tmp_path: Path) -> None:
    spark.range(10).selectExpr("id", "id % 2 as part").write.partitionBy("part").parquet(str(tmp_path / "items"))
    export = shim.export(spark.read.parquet(str(tmp_path / "items")))
    node = export["nodes"][leaf(export)]
    reported = node["rel"]
    described = [reported[key] for key in ("kind", "format", "name", "catalog")]
    assert described == ["file", "parquet", "items", False]
    assert reported["bytes"] > 0
    assert [export["attributes"][bit][2] for bit in reported["partitionCols"]] == ["part"]


def test_settings_are_told_as_spark_reads_them(spark: SparkSession, shim: Shim) -> None:
    before = spark.conf.get("spark.sql.autoBroadcastJoinThreshold")
    try:
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "2MB")
        spark.conf.set("spark.pyjoinopt.test", "here")
        conf = shim.export(spark.range(1))["conf"]
        assert conf["spark.sql.autoBroadcastJoinThreshold"] == "2097152"
        assert conf["spark.pyjoinopt.test"] == "here"
        assert conf["spark.sql.cbo.joinReorder.card.weight"] == "0.7"
    finally:
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", before)
        spark.conf.unset("spark.pyjoinopt.test")


def test_streams_are_told(spark: SparkSession, shim: Shim) -> None:
    stream = spark.readStream.format("rate").load()
    assert shim.export(stream.join(spark.range(3), on=[stream["value"] > 3]))["streaming"]


@pytest.mark.parametrize(
    "name",
    [
        "boolean",
        "tinyint",
        "decimal(38,10)",
        "binary",
        "void",
        "array<map<string,int>>",
        "struct<a:struct<b:int>>",
        "interval day",
        "timestamp_ntz",
    ],
)
def test_every_type_has_a_name(spark: SparkSession, shim: Shim, name: str) -> None:
    df = spark.sql(f"select cast(null as {name}) as x from range(2)")
    export = shim.export(df)
    output = export["nodes"][export["root"]]["o"]
    reported = export["types"][export["attributes"][output[0]][3]]
    assert reported == df.schema[0].dataType.simpleString()
