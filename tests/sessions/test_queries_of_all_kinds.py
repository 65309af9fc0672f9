"""Other work of a session: commands that write, cached data, views, prepared statements, streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pyjoinopt
from tests.sessions.conftest import BAD_ORDER, BETTER, orders, planned, rows
from tests.sessions.fakes import SLOW, children, fake, give

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.ci

SQL = BAD_ORDER.format(hint="")


@pytest.fixture
def expected(new_session: Callable[[], SparkSession]) -> list[str]:
    """The rows of the query in a session without us."""
    return rows(new_session().sql(SQL))


@pytest.fixture
def table(session: SparkSession) -> Iterator[str]:
    """The name of a table that does not exist yet, and will not afterwards."""
    session.sql("DROP TABLE IF EXISTS sessions_target")
    yield "sessions_target"
    session.sql("DROP TABLE IF EXISTS sessions_target")


def test_create_table_as_select(session: SparkSession, table: str, expected: list[str]) -> None:
    _, reports = planned(session, lambda: session.sql(f"CREATE TABLE {table} USING parquet AS {SQL}"))
    assert set(orders(reports)) == {BETTER}
    assert rows(session.table(table)) == expected


def test_insert_into_and_overwrite(session: SparkSession, table: str, expected: list[str]) -> None:
    session.sql(f"CREATE TABLE {table} (fact_k INT, mid_v INT, dim_v INT) USING parquet PARTITIONED BY (dim_v)")
    for verb in ("INSERT INTO", "INSERT OVERWRITE"):
        _, reports = planned(session, lambda verb=verb: session.sql(f"{verb} {table} {SQL}"))
        assert set(orders(reports)) == {BETTER}
        assert rows(session.table(table)) == expected
    session.sql(f"INSERT INTO {table} PARTITION (dim_v = 1) SELECT fact_k, mid_v FROM ({SQL})")
    assert session.table(table).count() == 2 * len(expected)


def test_write_a_dataframe(session: SparkSession, tmp_path: Path, expected: list[str]) -> None:
    _, reports = planned(session, lambda: session.sql(SQL).write.parquet(str(tmp_path / "out")))
    assert set(orders(reports)) == {BETTER}
    assert rows(session.read.parquet(str(tmp_path / "out"))) == expected


@pytest.mark.parametrize("before", [True, False], ids=["cached before", "cached after"])
def test_cached_data(
    session: SparkSession, new_session: Callable[[], SparkSession], expected: list[str], before: bool
) -> None:
    if before:
        pyjoinopt.disable(session)
    df = session.sql(SQL).cache()
    try:
        df.count()
        pyjoinopt.enable(session)
        again = session.sql(SQL)
        found, reports = planned(session, lambda: rows(again))
        assert found == expected and reports == []
        assert "InMemoryTableScan" in again._jdf.queryExecution().executedPlan().toString()
        note, dim = session.table("note"), session.table("dim").selectExpr("dim_k AS k", "dim_f AS f")
        above = df.join(note, df.mid_v == note.note_k).join(dim, note.note_v == dim.k)
        found, reports = planned(session, lambda: rows(above))
        assert "InMemoryTableScan" in above._jdf.queryExecution().executedPlan().toString()
        assert [len(group.relations) for report in reports for group in report.groups] == [3]
        pyjoinopt.disable(session)
        assert rows(df.join(note, df.mid_v == note.note_k).join(dim, note.note_v == dim.k)) == found
    finally:
        df.unpersist()


def test_views_and_common_table_expressions(session: SparkSession, expected: list[str]) -> None:
    session.sql(f"CREATE OR REPLACE TEMP VIEW wanted AS {SQL}")
    found, reports = planned(session, lambda: rows(session.table("wanted")))
    assert (found, orders(reports)) == (expected, [BETTER])
    twice = f"WITH c AS ({SQL}) SELECT a.fact_k FROM c a JOIN c b ON a.fact_k = b.fact_k WHERE rand(1) >= 0"
    found, reports = planned(session, lambda: rows(session.sql(twice)))
    assert len(found) == len(expected) and reports[0].changed


def test_prepared_statements(session: SparkSession, expected: list[str]) -> None:
    text = SQL.replace("dim_v = 1", "dim_v = :v").replace("fact_v < 4", "fact_v < :most")
    for _ in range(2):
        found, reports = planned(session, lambda: rows(session.sql(text, args={"v": 1, "most": 4})))
        assert (found, orders(reports)) == (expected, [BETTER])


def version(session: SparkSession) -> tuple[int, ...]:
    return tuple(int(part) for part in session.version.split(".")[:2])


def test_execute_immediate(session: SparkSession, expected: list[str]) -> None:
    if version(session) < (4, 0):
        pytest.skip("EXECUTE IMMEDIATE came with Spark 4.0")
    text = SQL.replace("dim_v = 1", "dim_v = :v").strip()
    found, reports = planned(session, lambda: rows(session.sql(f"EXECUTE IMMEDIATE '{text}' USING 1 AS v")))
    assert found == expected and set(orders(reports)) == {BETTER}


@pytest.mark.slow
def test_a_recursive_query(session: SparkSession) -> None:
    """Each step is planned by itself, with the rows of the step before in the place of the recursive reference."""
    if version(session) < (4, 1):
        pytest.skip("recursive queries came with Spark 4.1")
    text = """WITH RECURSIVE t(k, n) AS (SELECT dim_k, 0 FROM dim WHERE dim_v = 1 UNION ALL
        SELECT dim_k, n + 1 FROM t JOIN fact ON fact_f = k JOIN mid ON fact_k = mid_k JOIN dim ON mid_f = dim_k
        WHERE n < 3 AND fact_v < 4) SELECT n, k, count(*) FROM t GROUP BY n, k"""
    found, reports = planned(session, lambda: rows(session.sql(text)))
    assert reports and [report.error for report in reports if report.error] == []
    pyjoinopt.disable(session)
    assert found == rows(session.sql(text))


def test_a_write_to_a_newer_kind_of_source(session: SparkSession) -> None:
    _, reports = planned(session, lambda: session.sql(SQL).write.format("noop").mode("overwrite").save())
    assert set(orders(reports)) == {BETTER}


def test_cache_table_as(session: SparkSession, expected: list[str], warnings: Callable[[], list[str]]) -> None:
    """Spark plans a cached query in a clone of the session, so its report is in the log, not in the session."""
    warnings()
    session.sql(f"CACHE TABLE sessions_cached AS {SQL}")
    try:
        assert any(line.endswith(f"-> {BETTER}") for line in warnings())
        assert rows(session.table("sessions_cached")) == expected
    finally:
        session.sql("DROP VIEW IF EXISTS sessions_cached")


@pytest.mark.parametrize("kind", ["query", "explain", "insert", "create", "write"])
def test_one_line_of_information_whatever_the_query_is_part_of(
    session: SparkSession, warnings: Callable[[], list[str]], table: str, tmp_path: Path, kind: str
) -> None:
    if kind == "insert":
        session.sql(f"CREATE TABLE {table} (fact_k INT, mid_v INT, dim_v INT) USING parquet")
    warnings()
    match kind:
        case "query":
            session.sql(SQL).collect()
        case "explain":
            session.sql(f"EXPLAIN {SQL}").collect()
        case "insert":
            session.sql(f"INSERT INTO {table} {SQL}")
        case "create":
            session.sql(f"CREATE TABLE {table} USING parquet AS {SQL}")
        case "write":
            session.sql(SQL).write.parquet(str(tmp_path / "out"))
    assert [line.split()[0] for line in warnings()] == ["INFO"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.sql.adaptive.enabled", "false"),
        ("spark.sql.autoBroadcastJoinThreshold", "-1"),
        ("spark.sql.cbo.enabled", "true"),
        ("spark.sql.ansi.enabled", "false"),
        ("spark.sql.exchange.reuse", "false"),
    ],
)
def test_settings_of_spark(session: SparkSession, expected: list[str], key: str, value: str) -> None:
    session.conf.set(key, value)
    found, reports = planned(session, lambda: rows(session.sql(SQL)))
    assert found == expected and orders(reports) == [BETTER]


def test_runtime_filters(session: SparkSession, expected: list[str]) -> None:
    """Spark puts them in after our rule, for the joins as we have ordered them."""
    session.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    session.conf.set("spark.sql.optimizer.runtime.bloomFilter.enabled", "true")
    session.conf.set("spark.sql.optimizer.runtime.bloomFilter.applicationSideScanSizeThreshold", "1")
    df = session.sql(SQL)
    found, reports = planned(session, lambda: rows(df))
    assert "might_contain" in df._jdf.queryExecution().optimizedPlan().toString()
    assert found == expected and orders(reports) == [BETTER]


def test_dynamic_partition_pruning(session: SparkSession, table: str) -> None:
    session.sql(f"CREATE TABLE {table} (k INT, p INT) USING parquet PARTITIONED BY (p)")
    session.sql(f"INSERT INTO {table} SELECT mid_k, mid_k % 20 FROM mid")
    text = f"""SELECT k, dim_v, fact_k FROM {table} JOIN fact ON k = fact_f JOIN dim ON p = dim_k WHERE dim_v = 1"""
    df = session.sql(text)
    found, reports = planned(session, lambda: rows(df))
    assert reports[0].error is None
    assert "dynamicpruning" in df._jdf.queryExecution().executedPlan().toString().lower()
    pyjoinopt.disable(session)
    assert found == rows(session.sql(text))


def test_subqueries_are_planned_on_their_own(session: SparkSession, warnings: Callable[[], list[str]]) -> None:
    text = f"SELECT note_k, (SELECT max(fact_k) FROM ({SQL})) m FROM note WHERE note_k IN (SELECT mid_v FROM ({SQL}))"
    warnings()
    found, reports = planned(session, lambda: rows(session.sql(text)))
    assert orders(reports) == [BETTER, BETTER]
    (line,) = warnings()
    assert line.startswith("INFO ") and line.count(f"-> {BETTER}") == 2, "one line a query, with its subqueries"
    pyjoinopt.disable(session)
    assert found == rows(session.sql(text))


@pytest.mark.ci
def test_the_time_is_for_a_query_with_its_subqueries(
    session: SparkSession, warnings: Callable[[], list[str]], tmp_path: Path
) -> None:
    """The first of the two plans takes most of it: the second is not begun, and no worker is ended."""
    text = f"SELECT note_k, (SELECT max(fact_k) FROM ({SQL})) m FROM note WHERE note_k IN (SELECT mid_v FROM ({SQL}))"
    expected = rows(session.sql(text))
    give(session, python=fake(tmp_path, SLOW.replace("sleep(2)", "sleep(11)")))
    session.conf.set("spark.pyjoinopt.timeout", "14s")
    warnings()
    found, reports = planned(session, lambda: rows(session.sql(text)))
    assert found == expected and orders(reports) == [BETTER]
    assert [line.split()[0] for line in warnings()] == ["WARN", "INFO"]
    assert children(str(tmp_path)), "the worker is there for the next query"


def test_streams_are_left_alone(session: SparkSession, small_files: Path, tmp_path: Path) -> None:
    stream = session.readStream.schema(session.table("fact").schema).parquet(str(small_files / "fact"))
    joined = stream.join(session.table("mid"), stream.fact_f == session.table("mid").mid_k).join(
        session.table("dim"), session.table("mid").mid_f == session.table("dim").dim_k
    )
    hinted = joined.hint("OPTIMIZE_JOINS")
    for name, df in (("plain", joined), ("hinted", hinted)):
        query = df.writeStream.format("memory").queryName(f"streamed_{name}").option(
            "checkpointLocation", str(tmp_path / name)
        ).trigger(availableNow=True).start()  # fmt: skip
        _, reports = planned(session, lambda query=query: query.awaitTermination(60))
        assert reports == []
        assert session.table(f"streamed_{name}").count() == session.sql(
            "SELECT 1 FROM fact JOIN mid ON fact_f = mid_k JOIN dim ON mid_f = dim_k"
        ).count()


def test_a_repeated_query_is_planned_alike(session: SparkSession) -> None:
    df = session.sql(SQL)
    plans = {df.select("*")._jdf.queryExecution().optimizedPlan().canonicalized().toString() for _ in range(3)}
    assert len(plans) == 1


def test_a_single_call_in_a_session_that_is_on(session: SparkSession, expected: list[str]) -> None:
    fast = session.sql(SQL).optimize_joins(strict=True)
    assert fast._pyjoinopt_report.changed
    found, reports = planned(session, lambda: rows(fast))
    assert found == expected and [report.changed for report in reports] == [False]
