"""Estimates graded on a folder of small tables, whose sub-plans are counted by hand."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.common import time_limit
from benchmarks.estimates import report, table
from benchmarks.held_out import read_through
from benchmarks.truth import Counter, _counted, _write
from benchmarks.workload_grader import SPARK, Grades, WorkloadGrader
from benchmarks.workloads import Workload, WorkloadError, of_folders
from pyjoinopt.bridge.gateway import Py4jGateway
from pyjoinopt.joins.graph.hypergraph import Edge, JoinGraph
from pyjoinopt.plan.expressions import Attribute, call, reference
from pyjoinopt.plan.nodes import relation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VISITS_OF_CUSTOMERS = """
SELECT count(*)
FROM buyers c JOIN purchases o ON c.id = o.customer JOIN visits v ON v.customer = c.id
WHERE c.city = 'A' AND v.year = 2020
"""
WITHOUT_ORDERS = """
SELECT * FROM buyers c JOIN visits v ON v.customer = c.id
WHERE NOT EXISTS (SELECT 1 FROM purchases o WHERE o.customer = c.id)
"""
OUTER = "SELECT * FROM buyers c JOIN visits v ON v.customer = c.id LEFT JOIN purchases o ON o.customer = c.id"


def write(file: Path, **columns: list[object]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), file)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A table in one file, one in two files, and one partitioned by year."""
    tables = tmp_path / "tables"
    write(tables / "purchases.parquet", id=[10, 11, 12, 13, 14, 15], customer=[1, 1, 2, 5, None, 3])
    write(tables / "buyers" / "a.parquet", id=[1, 2], city=["A", "A"])
    write(tables / "buyers" / "b.parquet", id=[3, 4], city=["B", None])
    write(tables / "visits" / "year=2020" / "a.parquet", customer=[1, 1, 3])
    write(tables / "visits" / "year=2021" / "a.parquet", customer=[2, 4])
    (tmp_path / "queries").mkdir()
    return tmp_path


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """The session of the run, with Spark's CBO; statistics of plans follow the settings of the active session."""
    keys = ("spark.sql.cbo.enabled", "spark.sql.hive.manageFilesourcePartitions")
    before = {key: spark.conf.get(key) for key in keys}
    spark.conf.set("spark.sql.cbo.enabled", "true")
    yield spark
    for key, value in before.items():
        spark.conf.set(key, value)
    spark.catalog.setCurrentDatabase("default")
    for database in ("folder", "folder_analysed"):
        spark.sql(f"DROP DATABASE IF EXISTS {database} CASCADE")


def workload(folder: Path, **queries: str) -> Workload:
    for name, text in queries.items():
        (folder / "queries" / f"{name}.sql").write_text(text)
    return of_folders(folder / "tables", folder / "queries")


def graded(session: SparkSession, found: Workload, cache: Path, anew: bool = False) -> Grades:
    session.catalog.setCurrentDatabase("default")
    for database in ("folder", "folder_analysed"):
        session.sql(f"DROP DATABASE IF EXISTS {database} CASCADE")
    return WorkloadGrader(session, found, anew=anew, cache=cache).grades()


def truths(grades: Grades, query: str) -> dict[str, float]:
    return {" ".join(plan.names): plan.truth for plan in grades.plans if plan.query == query}


@pytest.mark.slow
def test_a_folder_of_tables(session: SparkSession, folder: Path) -> None:
    found = workload(
        folder,
        visits=VISITS_OF_CUSTOMERS,
        without=WITHOUT_ORDERS,
        outer=OUTER,
        alone="SELECT * FROM purchases",
    )
    grades = graded(session, found, folder / "cache")
    # Customers 1 and 2 are from A. 1 has two orders and two visits in 2020, 2 has one order and none, 3 one of each.
    assert truths(grades, "visits") == {"c": 2, "v": 3, "c o": 3, "c v": 2, "o v": 5, "c o v": 4}
    # The anti join is one of the group: only customer 4 has no order. Each of the five visits has a customer.
    assert truths(grades, "without") == {"o": 6, "c v": 5, "c o": 1, "c v o": 1}
    assert truths(grades, "outer") == {"c v": 5}
    assert {plan.names for plan in grades.not_counted} == {("c", "o"), ("c", "v", "o")}
    assert {plan.reason for plan in grades.not_counted} == {"DuckDB's query has no translation of an outer join"}
    assert grades.without_joins == ["alone"]

    by_names = {" ".join(plan.names): plan for plan in grades.plans if plan.query == "visits"}
    # The sample of so small a table is the whole table, so the filter is counted.
    assert by_names["c"].estimates["auto"] == 2 and by_names["c"].error("auto") == 1
    # Spark: three rows that are not NULL have two cities, of which one is chosen; it rounds up.
    assert by_names["c"].estimates[SPARK] == 2 and by_names["v"].estimates[SPARK] == 3
    assert all(plan.estimates[SPARK] is not None for plan in by_names.values())
    assert by_names["v"].estimates["footers"] == 3
    errors = sorted(plan.error("auto") or 0.0 for plan in by_names.values())
    assert table(list(by_names.values()))[0].split()[-1] == f"{errors[-1]:.2f}"
    lines = report("folder", grades, 1)
    assert "folder: joins of two relations, 6 sub-plans" in lines
    assert "queries without a join group: alone" in lines and "  outer (c o)" in lines


@pytest.mark.slow
def test_counts_are_stored(session: SparkSession, folder: Path) -> None:
    found = workload(folder, visits=VISITS_OF_CUSTOMERS)
    graded(session, found, folder / "cache")
    (stored,) = (folder / "cache").rglob("*.json")
    known = json.loads(stored.read_text())
    (group,) = (key for key in known if key.endswith("/truth"))
    known[group]["1"] = 7.0
    stored.write_text(json.dumps(known))
    assert truths(graded(session, found, folder / "cache"), "visits")["c"] == 7
    assert truths(graded(session, found, folder / "cache", anew=True), "visits")["c"] == 2


def test_estimates_by_footers_need_spark_only_once(
    session: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = workload(folder, visits=VISITS_OF_CUSTOMERS, alone="SELECT * FROM purchases")
    grader = WorkloadGrader(session, found, cache=folder / "cache")
    visits, alone = sorted(grader.by_footers(), key=lambda query: query.name == "alone")
    assert alone.errors() == []
    before = visits.errors()
    known = [plan.error("footers") for plan in grader.grades().plans if plan.query == "visits"]
    assert before == known and len(known) == 6
    monkeypatch.setattr(Py4jGateway, "_send", None)  # no further request is possible
    # The filter keeps one of two cities of four buyers: so many values do not count as repeated ones, as it is.
    with read_through("repeated_text", lambda: 0.9):
        assert visits.errors() != before
    assert visits.errors() == before


@pytest.mark.parametrize(
    "query, message",
    [
        ("SELEC 1", "query wrong of .* does not parse: .*one SELECT statement"),
        ("SELECT 1; SELECT 2", "query wrong of .* does not parse"),
        ("DROP TABLE purchases", "query wrong of .* does not parse"),
        (
            "SELECT * FROM bills",
            "query wrong reads the table bills, which is not in .*; tables there are buyers, purchases, visits. "
            "Add bills.parquet",
        ),
        ("SELECT price FROM purchases", "query wrong of .* is not valid: .*price"),
    ],
)
def test_queries_that_are_refused(session: SparkSession, folder: Path, query: str, message: str) -> None:
    found = workload(folder, good=VISITS_OF_CUSTOMERS, wrong=query)
    with pytest.raises(WorkloadError, match=message):
        WorkloadGrader(session, found, cache=folder / "cache")
    assert session.table("folder.purchases").count() == 6
    assert not (folder / "cache").exists()


def test_a_count_that_takes_too_long() -> None:
    one, other = Attribute(0, 0, "a"), Attribute(1, 1, "b")
    edge = Edge(call("LessThan", reference(one), reference(other)), 3, 3)
    graph = JoinGraph((relation("x", [one]), relation("y", [other])), ("x", "y"), (edge,), ((),) * 2)
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE v0 AS SELECT i AS c0 FROM range(3_000_000) t(i)")
        connection.execute("CREATE TABLE v1 AS SELECT i AS c1 FROM range(3_000_000) t(i)")
        assert _counted(Counter(graph, connection), connection, 3, 0.2) == "not counted within 0.2 s"
        assert _counted(Counter(graph, connection), connection, 1, 60.0) == 3_000_000


def test_a_relation_that_takes_too_long(spark: SparkSession, tmp_path: Path) -> None:
    endless = spark.range(10**15).where("id % 7 = 8")  # no row, so that a limit without effect fills no disk
    assert _write(endless, tmp_path / "a", spark, 0.5) == "a relation not computed within 0.5 s"
    # The limit ends while the query is still being planned, before there is a job to cancel.
    assert _write(endless, tmp_path / "b", spark, 0.001) == "a relation not computed within 0.001 s"
    assert _write(spark.range(3), tmp_path / "c", spark, 60.0) == ""
    assert spark.read.parquet(str(tmp_path / "c")).count() == 3


def test_a_time_limit_that_ends_before_the_work_begins() -> None:
    running, cancelled = threading.Event(), threading.Event()

    def cancel() -> None:
        if running.is_set():
            cancelled.set()

    with time_limit(0.01, cancel) as over:
        assert over.wait(5)
        running.set()
        assert cancelled.wait(5)
