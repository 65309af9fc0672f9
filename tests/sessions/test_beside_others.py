"""Third-party extensions and sources: queries planned inside planning, and MERGE on tables with row-level changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

import pyjoinopt
from pyjoinopt.bridge.install import compile_scala, java
from pyjoinopt.bridge.shim import add_jar, bridge_of
from tests.sessions import doors
from tests.sessions.conftest import BAD_ORDER, BETTER, orders, planned, pythons, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(doors.SPARK < (4, 0), reason="the source beside this test is written for Spark 4"),
]
SQL = BAD_ORDER.format(hint="")
INSIDE = "SELECT {} count(*) FROM note JOIN mid ON note_f = mid_k JOIN dim ON mid_f = dim_k WHERE dim_v = 1"
SMALLER = INSIDE.format("/*+ OPTIMIZE_JOINS */")


@pytest.fixture(scope="module")
def beside(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Scala classes, compiled here and loaded into the running JVM; their rule does nothing until its key is set."""
    jar = tmp_path_factory.mktemp("beside") / "beside.jar"
    source = doors.ROOT / "tests" / "sessions" / "scala" / "Beside.scala"
    compile_scala.compile_shim(doors.HOME / "jars", java.ensure_java(), [source], jar)
    add_jar(spark._jvm, jar)
    bridge_of(spark).enable(spark._jsparkSession, *pythons())
    spark._jvm.beside.Planning().apply(spark._jsparkSession.extensions())


@pytest.fixture
def live(beside: None, new_session: Callable[[], SparkSession]) -> Iterator[SparkSession]:
    session = new_session()
    pyjoinopt.enable(session)
    yield session


def test_a_query_planned_inside_planning(live: SparkSession) -> None:
    expected, handles = rows(live.sql(SQL)), bridge_of(live).openHandles()
    live.conf.set("beside.query", SMALLER)
    try:
        found, reports = planned(live, lambda: rows(live.sql(SQL)))
    finally:
        live.conf.unset("beside.query")
    assert found == expected
    reported = orders(reports)
    assert BETTER in reported and any("note" in order for order in reported)
    assert bridge_of(live).openHandles() <= handles


def test_hints_of_the_one_are_not_those_of_the_other(live: SparkSession) -> None:
    """The query inside is planned between the outer query's hint and the outer query's joins."""
    pyjoinopt.disable(live)
    live.conf.set("beside.query", INSIDE.format(""))
    try:
        _, reports = planned(live, lambda: rows(live.sql(BAD_ORDER.format(hint="/*+ OPTIMIZE_JOINS */"))))
        assert orders(reports) == [BETTER]
        live.conf.set("beside.query", SMALLER)
        _, reports = planned(live, lambda: rows(live.sql(SQL)))
        assert orders(reports) and all("note" in order for order in orders(reports))
    finally:
        live.conf.unset("beside.query")


@pytest.fixture
def target(live: SparkSession) -> Iterator[str]:
    live.conf.set("spark.sql.catalog.rows", "beside.RowCatalog")
    live.sql("CREATE TABLE rows.ns.target (k INT, v INT)")
    yield "rows.ns.target"
    live.sql("DROP TABLE rows.ns.target")


MERGE = f"""
    MERGE INTO {{}} t USING (SELECT fact_k, max(mid_v) AS v FROM ({SQL}) GROUP BY fact_k) s ON t.k = s.fact_k
    WHEN MATCHED AND s.v > 2 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v
    WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.fact_k, s.v)
"""
STATEMENTS = (
    f"INSERT INTO {{}} SELECT fact_k, dim_v FROM ({SQL}) WHERE fact_k % 3 = 0",
    MERGE,
    f"UPDATE {{}} SET v = 9 WHERE k IN (SELECT fact_k FROM ({SQL}) WHERE fact_k % 2 = 0)",
    f"DELETE FROM {{}} WHERE k IN (SELECT fact_k FROM ({SQL}) WHERE fact_k % 3 = 1)",
)


def test_merge_update_and_delete_with_queries_inside(live: SparkSession, target: str) -> None:
    """Each statement leaves the same rows with the session on as off."""

    def states() -> list[list[str]]:
        found = []
        for statement in STATEMENTS:
            live.sql(statement.format(target))
            found.append(rows(live.table(target)))
        live.sql(f"DELETE FROM {target} WHERE true")
        return found

    pyjoinopt.disable(live)
    off = states()
    pyjoinopt.enable(live)
    on, reports = planned(live, states)
    assert on == off and len({str(state) for state in off}) == len(STATEMENTS)
    assert [report.error for report in reports if report.error] == []
    assert any(report.changed for report in reports)  # the query of INSERT, at the least


def test_the_source_of_a_merge_is_ordered(live: SparkSession, target: str) -> None:
    """The join with the target stays, with the target on the side that it was on."""
    live.sql(STATEMENTS[0].format(target))
    _, reports = planned(live, lambda: live.sql(MERGE.format(target)))
    assert set(orders(reports)) == {BETTER}  # Spark 4.0 plans a written query twice
    assert {report.error for report in reports} == {None}


def test_create_table_as_select_into_it(live: SparkSession, target: str) -> None:
    _, reports = planned(live, lambda: live.sql(f"CREATE TABLE rows.ns.other AS {SQL}"))
    assert BETTER in orders(reports)
    assert rows(live.table("rows.ns.other")) == rows(live.sql(SQL))
    live.sql("DROP TABLE rows.ns.other")
