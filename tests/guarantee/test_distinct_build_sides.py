"""What a semi join builds is made distinct, and nothing else changes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pyjoinopt.optimizer import distinct_build_sides
from tests.support.eager import FREE, session_with
from tests.support.prefilters import checked, enabled

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pyjoinopt.report.join_report import JoinReport

NOTE = "once: about"
#: SELECT * FROM of which the right side of one semi, anti or existence join is made distinct.
DISTINCT = {
    "IN": "d WHERE id IN (SELECT k FROM f)",
    "EXISTS": "d WHERE EXISTS (SELECT 1 FROM f WHERE k = id)",
    "NOT EXISTS": "d WHERE NOT EXISTS (SELECT 1 FROM f WHERE k = id)",
    "a semi join": "d LEFT SEMI JOIN f ON k = id",
    "an anti join": "d LEFT ANTI JOIN f ON k = id",
    "NULL equals NULL": "d LEFT SEMI JOIN f ON k <=> id",
    "no NULL equals NULL": "d LEFT ANTI JOIN f ON k <=> id",
    "an IN in an OR": "d WHERE id IN (SELECT k FROM f) OR w > 4",
    "a test of both": "d WHERE EXISTS (SELECT 1 FROM f WHERE k = id AND g < w)",
    "a test of both that is not fulfilled": "d WHERE NOT EXISTS (SELECT 1 FROM f WHERE k = id AND g < w)",
    "a test of one": "d LEFT ANTI JOIN f ON k = id AND g > 2 AND w < 4",
    "two keys": "d WHERE (id, w) IN (SELECT k, g FROM f)",
    "computed keys": "d WHERE EXISTS (SELECT 1 FROM f WHERE length(s) = id)",
    "texts": "d LEFT SEMI JOIN f ON ds = s",
    "wider types": "f LEFT ANTI JOIN (SELECT CAST(w AS BIGINT) w FROM d) ON w = i64",
    "a filtered side": "d WHERE id IN (SELECT k FROM f WHERE v > 0 AND s < 't5')",
    "a renamed column": "d WHERE id IN (SELECT c FROM (SELECT k c, v FROM f) WHERE v > 0)",
    "a joined side": "d WHERE id IN (SELECT f.k FROM f JOIN e ON g = z)",
    "a union": "d WHERE id IN (SELECT k FROM f UNION ALL SELECT z FROM e)",
    "no rows": "d WHERE id IN (SELECT k FROM f WHERE v > 1000)",
    "no rows, kept": "d WHERE NOT EXISTS (SELECT 1 FROM f WHERE v > 1000 AND k = id)",
    "no left rows": "nothing LEFT SEMI JOIN f ON k = id",
    "below a join": "e JOIN (SELECT * FROM d WHERE id IN (SELECT k FROM f)) ON z = w",
    "above a join": "(SELECT d.id, e.z FROM d JOIN e ON w = z) LEFT SEMI JOIN f ON f.k = id",
    "below an aggregate": "(SELECT n, count(*) FROM d LEFT SEMI JOIN f ON k = id GROUP BY n)",
    "an EXCEPT ALL": "(SELECT id FROM d) x LEFT SEMI JOIN (SELECT k FROM f EXCEPT ALL SELECT 3) ON k = id",
    "UNION below": "(SELECT id FROM d UNION ALL SELECT k FROM e) x WHERE id IN (SELECT k FROM f)",
    "decimals": "(SELECT CAST(w AS DECIMAL(9, 2)) m FROM d) x LEFT ANTI JOIN f ON x.m <=> f.m",
}
#: The same of which none is.
KEPT = {
    "an inner join": "d JOIN f ON k = id",
    "an outer join": "d LEFT JOIN f ON k = id",
    "distinct already": "d WHERE id IN (SELECT DISTINCT k FROM f)",
    "groups already": "d WHERE id IN (SELECT k FROM f GROUP BY k HAVING count(*) > 10)",
    "floats": "d LEFT SEMI JOIN f ON dx = x",
    "binary values": "d LEFT SEMI JOIN f ON dy = y AND k > 2",
    "a test that may fail": "d LEFT SEMI JOIN f ON k = id AND CAST(s AS INT) > w",
    "NOT IN": "d WHERE id NOT IN (SELECT k FROM f)",
    "NOT IN, without NULLs": "d WHERE id NOT IN (SELECT k FROM f WHERE k IS NOT NULL)",
    "no equality": "d WHERE EXISTS (SELECT 1 FROM f WHERE k < id)",
}


@pytest.fixture(scope="module")
def facts(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    session = session_with(spark, tmp_path_factory.mktemp("distinct"))
    session.conf.set("spark.pyjoinopt.costConstants", FREE)
    yield session


@pytest.fixture(params=["true", "false"], ids=["ansi", "not ansi"])
def in_either_mode(facts: SparkSession, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    facts.conf.set("spark.sql.ansi.enabled", request.param)
    yield facts
    facts.conf.unset("spark.sql.ansi.enabled")


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distinct_build_sides, "_MARGIN", 0.0)


def distinct_sides(session: SparkSession, text: str, **options: object) -> int:
    """How many right sides of a query became distinct, after rows and schema were compared with plain Spark's."""
    return _count(checked(session.sql(text), **options))


def _count(report: JoinReport) -> int:
    return sum(NOTE in note for note in report.eager_aggregations)


@pytest.mark.usefixtures("free")
@pytest.mark.parametrize("name", DISTINCT)
def test_right_sides_are_made_distinct(in_either_mode: SparkSession, name: str) -> None:
    assert distinct_sides(in_either_mode, f"SELECT * FROM {DISTINCT[name]}") == 1


@pytest.mark.usefixtures("free")
@pytest.mark.parametrize("name", KEPT)
def test_others_are_left_alone(facts: SparkSession, name: str) -> None:
    assert distinct_sides(facts, f"SELECT * FROM {KEPT[name]}") == 0


@pytest.mark.usefixtures("free")
@pytest.mark.parametrize("name", ["IN", "NOT EXISTS", "an IN in an OR"])
def test_the_aggregate_is_below_the_join(facts: SparkSession, name: str) -> None:
    """Plain Spark has no aggregate for these queries."""
    df = facts.sql(f"SELECT * FROM {DISTINCT[name]}")
    fast = df.optimize_joins(strict=True)
    plain, plan = (frame._jdf.queryExecution().optimizedPlan().toString() for frame in (df, fast))
    assert "Aggregate" not in plain and plan.index("Join") < plan.index("Aggregate [k#")


@pytest.mark.usefixtures("free")
def test_once_is_enough(facts: SparkSession) -> None:
    fast = facts.sql(f"SELECT * FROM {DISTINCT['IN']}").optimize_joins(strict=True)
    assert _count(fast._pyjoinopt_report) == 1
    assert _count(checked(fast)) == 0


@pytest.mark.usefixtures("free")
def test_cached_rows_are_read_from_the_cache(facts: SparkSession) -> None:
    cached = facts.sql("SELECT k FROM f WHERE v > 0").cache()
    try:
        df = facts.table("d").join(cached, cached.k == facts.table("d").id, "left_semi")
        fast = df.optimize_joins(strict=True)
        assert _count(checked(df)) == 1
        assert "InMemoryTableScan" in fast._jdf.queryExecution().executedPlan().toString()
    finally:
        cached.unpersist()


@pytest.mark.usefixtures("free")
def test_what_spark_computes_once_is_left_whole(facts: SparkSession) -> None:
    side = "(SELECT f.k FROM f JOIN e ON g = z)"
    text = f"SELECT count(*) FROM d LEFT SEMI JOIN {side} ON k = id UNION ALL SELECT count(*) FROM {side}"
    assert distinct_sides(facts, text) == 0


@pytest.mark.usefixtures("free")
def test_switched_off(facts: SparkSession) -> None:
    text = f"SELECT * FROM {DISTINCT['IN']}"
    assert distinct_sides(facts, text, rewrites_without="distinct_build_sides") == 0
    assert distinct_sides(facts, text, hints=False) == 0
    assert distinct_sides(facts, text, strategy="heuristic") == 0


@pytest.fixture(scope="module")
def large(facts: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    """Four million rows with two thousand keys, and other rows that are too many to be broadcast."""
    folder: Path = tmp_path_factory.mktemp("large")
    session = facts.newSession()
    for name, value, rows in (
        ("visits", "id * 7919 % 2000", 4_000_000), ("places", "id % 4000", 400_000), ("people", "id", 400_000),
    ):  # fmt: skip
        text = f"SELECT CAST({value} AS INT) place, CAST(id AS INT) v FROM range({rows})"
        session.sql(text).coalesce(1).write.parquet(str(folder / name))
        session.read.parquet(str(folder / name)).createOrReplaceTempView(name)
    session.conf.set("spark.sql.autoBroadcastJoinThreshold", "100kb")
    return session


@pytest.mark.ci
def test_only_where_it_pays(large: SparkSession) -> None:
    text = "SELECT count(*), max(v) FROM places WHERE place IN (SELECT place FROM {} WHERE v > 1)"
    assert distinct_sides(large, text.format("visits"), statistics="full") == 1
    assert distinct_sides(large, text.format("people"), statistics="full") == 0, "each once already"
    few = "SELECT count(*) FROM people WHERE place IN (SELECT place FROM visits WHERE v < 1000)"
    assert distinct_sides(large, few, statistics="full") == 0


@pytest.mark.ci
def test_keys_that_fit_are_broadcast(large: SparkSession) -> None:
    text = "SELECT count(*), max(v) FROM places WHERE place IN (SELECT place FROM visits WHERE v > 1)"
    report = checked(large.sql(text), statistics="full")
    assert [hint.strategy for hint in report.hints] == ["BROADCAST"] and _count(report) == 1


@pytest.mark.ci
def test_in_an_enabled_session(large: SparkSession) -> None:
    text = """SELECT count(*), max(a.v) FROM places a LEFT JOIN people b ON a.place = b.place
        WHERE a.place IN (SELECT place FROM visits WHERE v > 1)"""
    plain = large.sql(text).collect()
    with enabled(large, "") as report_of:
        fast = large.sql(text).collect()
        report = report_of()
    assert fast == plain and report.error is None and _count(report) >= 1


@pytest.mark.ci
@pytest.mark.usefixtures("free")
@pytest.mark.parametrize("seed", range(4))
def test_drawn_queries(in_either_mode: SparkSession, seed: int) -> None:
    draw = random.Random(f"{seed} {in_either_mode.conf.get('spark.sql.ansi.enabled')}")
    assert sum(distinct_sides(in_either_mode, _drawn(draw)) for _ in range(15)) >= 6


def _drawn(draw: random.Random) -> str:
    """A query that tests for partners once or twice, with equalities and other comparisons."""

    def test(outer: str) -> str:
        columns = {"d": ("d.id", "d.w", "d.ds"), "f": ("f.k", "f.g", "f.s"), "e": ("e.k", "e.z", "concat('t', e.z)")}
        inner = draw.choice([name for name in columns if name != outer])
        keys = draw.sample(range(2), draw.randint(1, 2)) if draw.random() < 0.7 else [2]
        equal = [f"{columns[inner][i]} {draw.choice(['=', '=', '<=>'])} {columns[outer][i]}" for i in keys]
        more = draw.choice(["", "", f"{columns[inner][1]} < {columns[outer][1]}", f"{columns[inner][1]} > 2"])
        source = draw.choice([inner, inner, f"(SELECT * FROM {inner} WHERE {columns[inner][1]} <> 1) {inner}"])
        condition = " AND ".join([*equal, *([more] if more else [])])
        found = f"EXISTS (SELECT 1 FROM {source} WHERE {condition})"
        return draw.choice([found, found, f"NOT {found}", f"({found} OR {columns[outer][1]} = 2)"])

    outer = draw.choice(["d", "f", "e"])
    tests = [test(outer) for _ in range(draw.randint(1, 2))]
    return f"SELECT {draw.choice(['*', 'count(*)'])} FROM {outer} WHERE {' AND '.join(tests)}"
