"""The planning deadline by the size of a query's input, as far as the size is known without I/O."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pyjoinopt
from tests.sessions.conftest import BAD_ORDER, BETTER, orders, planned, rows, swollen
from tests.sessions.fakes import fake, give
from tests.sessions.test_cancelled import interrupt_all
from tests.support.oracle_bridge import oracle_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = BAD_ORDER.format(hint="")
GIB = 1 << 30


def timeout(session: SparkSession, text: str) -> int:
    """How many milliseconds a query waits for its order; it is planned for that, but does not wait now."""
    pyjoinopt.disable(session)
    found = int(oracle_of(session).timeout(session.sql(text)._jdf))
    session.conf.set("spark.pyjoinopt.enabled", "true")
    return found


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (SQL, 2),
        ("SELECT * FROM range(134000000) a JOIN fact ON id = fact_k", 2),  # 8 bytes a row: just below 1 GiB
        ("SELECT * FROM range(134217728) a JOIN fact ON id = fact_k", 3),
        ("SELECT * FROM range(1342177280) a JOIN fact ON id = fact_k", 12),
        ("SELECT * FROM range(1342177280) a JOIN range(1342177280) b USING (id)", 22),
        ("SELECT * FROM fact WHERE fact_k > (SELECT max(id) FROM range(1342177280))", 12),
        ("SELECT * FROM range(100000000000) a JOIN fact ON id = fact_k", 60),
    ],
)
def test_auto_waits_by_what_a_query_reads(session: SparkSession, text: str, seconds: int) -> None:
    assert timeout(session, text) == 30_000  # of this fixture: an explicit deadline applies to every query
    for key in ("auto", "AUTO", ""):
        session.conf.set("spark.pyjoinopt.timeout", key)
        assert timeout(session, text) == seconds * 1000
    session.conf.unset("spark.pyjoinopt.timeout")
    assert timeout(session, text) == seconds * 1000
    session.conf.set("spark.pyjoinopt.timeout", "700ms")
    assert timeout(session, text) == 700


def test_files_count_with_their_size_and_cached_data_with_its_own(session: SparkSession, tmp_path: Path) -> None:
    session.conf.set("spark.pyjoinopt.timeout", "auto")
    swollen(session, tmp_path, 5 * GIB)
    assert timeout(session, SQL) == 7_000
    session.conf.set("spark.sql.sources.useV1SourceList", "")
    session.read.parquet(str(tmp_path / "fact")).createOrReplaceTempView("fact")
    assert "BatchScan" in session.table("fact")._jdf.queryExecution().executedPlan().toString()
    assert timeout(session, SQL) == 7_000
    cached = session.sql("SELECT f.* FROM fact f JOIN mid m ON f.fact_f = m.mid_k").cache()
    cached.createOrReplaceTempView("joined")
    text = "SELECT * FROM joined JOIN dim ON fact_f = dim_k LEFT JOIN note ON dim_f = note_k"
    try:
        assert timeout(session, text) == 7_000  # this query is to read the files
        cached.count()
        assert timeout(session, text) == 2_000
    finally:
        cached.unpersist()


def test_a_join_of_two_relations_is_planned_if_its_files_are_large(session: SparkSession, tmp_path: Path) -> None:
    text = "SELECT fact_k, mid_v FROM fact JOIN mid ON fact_f = mid_k WHERE fact_v < 4"
    before, reports = planned(session, lambda: rows(session.sql(text)))
    assert not reports, "it has one order, and a hint is not worth the time"
    swollen(session, tmp_path, 65 << 20)
    after, reports = planned(session, lambda: rows(session.sql(text)))
    (report,) = reports
    (pair,) = report.pairs
    assert sorted(relation.name for relation in pair.relations) == ["fact", "mid"] and not report.groups
    assert after == before


def test_no_file_is_listed_to_learn_a_size(session: SparkSession) -> None:
    """A partitioned table of the catalog is of unknown size until it is ANALYZEd."""
    discovered = session._jvm.org.apache.spark.metrics.source.HiveCatalogMetrics.METRIC_FILES_DISCOVERED()
    session.conf.set("spark.pyjoinopt.timeout", "auto")
    session.sql("DROP TABLE IF EXISTS parted_by_day")
    session.range(300).selectExpr("id", "id % 3 AS day").write.partitionBy("day").saveAsTable("parted_by_day")
    try:
        session.catalog.refreshTable("parted_by_day")
        before = discovered.getCount()
        assert timeout(session, "SELECT * FROM parted_by_day JOIN dim ON id = dim_k") == 6_000
        assert discovered.getCount() == before
        session.sql("ANALYZE TABLE parted_by_day COMPUTE STATISTICS NOSCAN")
        assert timeout(session, "SELECT * FROM parted_by_day JOIN dim ON id = dim_k") == 2_000
    finally:
        session.sql("DROP TABLE parted_by_day")


def test_a_wrong_timeout_says_that_auto_is_allowed(session: SparkSession, warnings: Callable[[], list[str]]) -> None:
    wrong = f"automatic-{time.monotonic_ns()}"
    session.conf.set("spark.pyjoinopt.timeout", wrong)
    warnings()
    rows(session.sql(SQL))
    (warning,) = warnings()
    assert f"spark.pyjoinopt.timeout is {wrong}, but must be auto or a time" in warning


@pytest.mark.parametrize(
    "small_subquery",
    [pytest.param(False, marks=pytest.mark.slow), pytest.param(True, marks=pytest.mark.ci)],
    ids=["one plan", "a small subquery first"],
)
def test_a_large_query_waits_where_a_small_one_does_not(
    session: SparkSession, warnings: Callable[[], list[str]], tmp_path: Path, small_subquery: bool
) -> None:
    """Python takes six seconds to start. The subquery waits in vain; the query around it is another matter."""
    late = "import sys, time\ntime.sleep(6)\nfrom pyjoinopt.worker.serve import main\nsys.exit(main())"
    few = "SELECT max(n.note_k) + 1000 FROM mid JOIN dim ON mid_f = dim_k JOIN note n ON dim_f = n.note_k"
    text = f"{SQL} AND fact_k < ({few})" if small_subquery else SQL
    expected = rows(session.sql(text))
    give(session, workers="1")
    session.conf.set("spark.pyjoinopt.timeout", "auto")
    for name in ("small", "large"):
        (tmp_path / name).mkdir()
        give(session, python=fake(tmp_path / name, late))
        if name == "large":
            swollen(session, tmp_path, 40 * GIB)
        warnings()
        _, reports = planned(session, session.sql(text)._jdf.queryExecution().optimizedPlan)
        reported = [line for line in warnings() if line.startswith("WARN")]
        assert len(reported) == (name == "small" or small_subquery)
        assert all("within 2000 ms" in line for line in reported)
        assert orders(reports) == ([BETTER] if name == "large" else [])
    assert len(expected) > 10


def test_a_large_query_that_is_cancelled_does_not_wait(
    session: SparkSession, warnings: Callable[[], list[str]], tmp_path: Path
) -> None:
    """Neither for a worker that started in advance."""
    give(session, python=fake(tmp_path, "import time; time.sleep(60)"))
    session.conf.set("spark.pyjoinopt.timeout", "auto")
    give(session, workers="1")
    pyjoinopt.enable(session)
    swollen(session, tmp_path, 80 * GIB)
    assert timeout(session, SQL) == 60_000
    plan = session.sql(SQL)._jdf.queryExecution().analyzed()
    optimizer = session._jsparkSession.sessionState().optimizer()
    warnings()

    def run() -> bool:
        optimizer.execute(plan)
        return bool(session._jvm.java.lang.Thread.interrupted())

    with ThreadPoolExecutor(1) as pool:
        query = pool.submit(run)
        interrupt_all(session, 1)
        started = time.monotonic()
        assert query.result(30) and time.monotonic() - started < 10
    assert warnings() == []
