"""The planning deadline of a query, including its subqueries, with workers that are busy or starting.

The times are waiting times, not processing times: a broken deadline would exceed the asserted limits by seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.sessions.conftest import BAD_ORDER, BETTER, orders, planned, rows
from tests.sessions.fakes import GREETS, SLOW, children, counting, fake, give, gone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = BAD_ORDER.format(hint="")
ONE = "SELECT max(fact_k) FROM fact JOIN mid ON fact_f = mid_k JOIN dim ON mid_f = dim_k WHERE dim_v = {}"
#: A query of four plans: Spark optimises the three subqueries first, each by itself.
FOUR = SQL + "".join(f" AND fact_k < ({ONE.format(n)})" for n in (1, 2, 3))
pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")


def seconds_to_plan(session: SparkSession, text: str) -> float:
    query = session.sql(text)._jdf.queryExecution()
    query.analyzed()
    started = time.monotonic()
    query.optimizedPlan()
    return time.monotonic() - started


@pytest.mark.parametrize("text", [SQL, FOUR], ids=["one plan", "four plans"])
def test_a_worker_that_hangs_costs_the_default_deadline_once(
    session: SparkSession, warnings: Callable[[], list[str]], tmp_path: Path, text: str
) -> None:
    give(session, python=fake(tmp_path, counting(tmp_path / "starts", GREETS + "time.sleep(60)")))
    session.conf.unset("spark.pyjoinopt.timeout")
    seconds_to_plan(session, "SELECT 1 FROM fact LEFT JOIN mid ON fact_f = mid_k")  # the first, and the JVM is warm
    warnings()
    assert 1.5 < seconds_to_plan(session, text) < 4
    (warning,) = warnings()
    assert warning.startswith("WARN") and "did not answer in time" in warning
    assert len((tmp_path / "starts").read_text()) == 2 and gone(str(tmp_path))


@pytest.mark.parametrize(
    ("program", "said", "longest"),
    [("import time; time.sleep(60)", "a plan within 2000 ms", 3.5), ("raise SystemExit(3)", "with code 3", 2)],
    ids=["never greets", "dies at once"],
)
def test_a_query_pays_for_one_start(
    session: SparkSession, warnings: Callable[[], list[str]], tmp_path: Path, program: str, said: str, longest: float
) -> None:
    expected = rows(session.sql(FOUR))
    give(session, python=fake(tmp_path, counting(tmp_path / "starts", program)))
    session.conf.unset("spark.pyjoinopt.timeout")
    warnings()
    assert seconds_to_plan(session, FOUR) < longest
    (warning,) = warnings()
    assert said in warning and (tmp_path / "starts").read_text() == "x"
    assert rows(session.sql(FOUR)) == expected


@pytest.mark.ci
def test_a_python_that_hangs_at_its_start_holds_up_one_query(
    session: SparkSession, warnings: Callable[[], list[str]], tmp_path: Path
) -> None:
    """Queries that arrive while it hangs are planned at once; these, and its end, cause no further warning."""
    program = counting(tmp_path / "starts", "import time; time.sleep(60)")
    give(session, python=fake(tmp_path, program))
    session.conf.set("spark.pyjoinopt.timeout", "2s")
    give(session, start_timeout="8s")
    seconds_to_plan(session, SQL)
    time.sleep(0.6)  # a quarter of the time is left for planning: it does not wait for the whole of it
    assert len(warnings()) == 1 and children(str(tmp_path))
    assert sum(seconds_to_plan(session, SQL + f" AND fact_k <> {n}") for n in range(3)) < 1.5
    until = time.monotonic() + 15
    while children(str(tmp_path)) and time.monotonic() < until:
        time.sleep(0.1)
    assert children(str(tmp_path)) == [] and warnings() == [] and (tmp_path / "starts").read_text() == "x"


def test_a_worker_that_starts_slowly_is_there_for_later_queries(
    session: SparkSession, warnings: Callable[[], list[str]], tmp_path: Path
) -> None:
    """Python takes four seconds to start, a query waits for one."""
    late = "import sys, time\ntime.sleep(4)\nfrom pyjoinopt.worker.serve import main\nsys.exit(main())"
    give(session, python=fake(tmp_path, counting(tmp_path / "starts", late)))
    give(session, workers=1)
    session.conf.set("spark.pyjoinopt.timeout", "1s")
    expected, reports = planned(session, lambda: rows(session.sql(SQL)))
    assert reports == []
    session.conf.set("spark.pyjoinopt.timeout", "30s")
    assert planned(session, lambda: rows(session.sql(SQL)))[0] == expected  # waits, as it may
    found, reports = planned(session, lambda: rows(session.sql(SQL)))
    assert found == expected and orders(reports) == [BETTER]
    assert (tmp_path / "starts").read_text() == "x"
    (warning,) = [line for line in warnings() if line.startswith("WARN")]
    assert "in time for a plan within 1000 ms" in warning and "60000 ms (spark.pyjoinopt.startTimeout)" in warning


@pytest.mark.ci
def test_waiting_for_a_busy_worker_counts(
    session: SparkSession, warnings: Callable[[], list[str]], tmp_path: Path
) -> None:
    """Another plan holds the only worker for two seconds; what is then left of three is not three again."""
    give(session, python=fake(tmp_path, SLOW))
    give(session, workers=1)
    session.conf.set("spark.pyjoinopt.timeout", "30s")
    assert orders(planned(session, lambda: rows(session.sql(SQL)))[1]) == [BETTER]
    (worker,) = children(str(tmp_path))
    warnings()
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(seconds_to_plan, session, SQL + " AND fact_k <> 1")
        time.sleep(0.5)
        session.conf.set("spark.pyjoinopt.timeout", "3s")
        assert seconds_to_plan(session, FOUR) < 4.5
        assert first.result(60) < 30
    (warning,) = [line for line in warnings() if line.startswith("WARN")]
    assert "did not answer in time" in warning and worker not in children(str(tmp_path))
