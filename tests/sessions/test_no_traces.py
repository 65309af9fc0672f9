"""Planning starts no Spark job and opens no socket, on either side of the pipe."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pyjoinopt
from tests.sessions.conftest import BAD_ORDER, BETTER, orders, planned, rows
from tests.sessions.fakes import fake, give, workers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = BAD_ORDER.format(hint="")


@pytest.fixture
def tables(session: SparkSession, tmp_path: Path) -> Iterator[SparkSession]:
    """Files that nobody has read yet: words to sample, and more partitions than Spark lists without a job."""
    words = "concat_ws(' ', 'a', CAST(id % 7 AS string), CAST(id AS string)) AS word"
    session.range(3000).selectExpr("id AS w_k", words, "id % 40 AS w_p").coalesce(1).write.parquet(str(tmp_path / "w"))
    session.read.parquet(str(tmp_path / "w")).createOrReplaceTempView("words")
    session.sql("DROP TABLE IF EXISTS parted")
    session.table("words").write.partitionBy("w_p").saveAsTable("parted")
    yield session
    session.sql("DROP TABLE IF EXISTS parted")


QUERIES = {
    "files": SQL,
    "filters that need samples": SQL.replace("WHERE", "JOIN words ON fact_k = w_k WHERE word LIKE '% 3 %' AND"),
    "more partitions than 32": SQL.replace("WHERE", "JOIN parted ON fact_k = w_k WHERE w_p < 39 AND"),
    "partitions that Spark does not list": SQL.replace("WHERE", "JOIN parted ON fact_k = w_k WHERE word > 'a 3' AND"),
    "subqueries": SQL + " AND fact_k IN (SELECT w_k FROM words) AND fact_k < (SELECT max(w_k) FROM words, dim, mid)",
}


@pytest.mark.parametrize("text", QUERIES.values(), ids=QUERIES)
def test_planning_starts_no_job(tables: SparkSession, tmp_path: Path, text: str) -> None:
    """Counts the application's jobs in all threads: as many as in a disabled session."""
    scheduler = tables.sparkContext._jsc.sc().dagScheduler()
    pyjoinopt.enable(tables, store=str(tmp_path / "store.sqlite"))

    def jobs(enabled: str) -> int:
        tables.conf.set("spark.pyjoinopt.enabled", enabled)
        tables.catalog.refreshTable("parted")
        before = scheduler.numTotalJobs()
        tables.sql(f"EXPLAIN {text}").collect()
        return int(scheduler.numTotalJobs()) - before

    off = jobs("false")
    on, reports = planned(tables, lambda: jobs("true"))
    assert any("(mid ⋈ dim)" in order for order in orders(reports)) and all(r.error is None for r in reports)
    assert on == off
    assert (off > 0) == ("w_p" in text)  # Spark's own listing of many folders


def sockets(process: int) -> set[str]:
    found = set()
    for file in Path(f"/proc/{process}/fd").iterdir():
        try:
            target = os.readlink(file)
        except OSError:
            continue
        if target.startswith("socket:"):
            found.add(target)
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="sockets are looked up in /proc")
def test_no_socket_is_opened(session: SparkSession, tmp_path: Path) -> None:
    """Neither by the JVM, from before the worker starts until its plan is there, nor by the worker."""
    jvm = int(session._jvm.java.lang.ProcessHandle.current().pid())
    query = session.sql(SQL)._jdf.queryExecution()
    python = fake(tmp_path, "import sys\nfrom pyjoinopt.worker.serve import main\nsys.exit(main())")
    give(session, python=python)
    known, seen, done = sockets(jvm), set(), threading.Event()

    def watch() -> None:
        while not done.is_set():
            seen.update(sockets(jvm))

    watching = threading.Thread(target=watch)
    watching.start()
    query.optimizedPlan()
    done.set()
    watching.join()
    assert seen and seen <= known
    opened = [os.readlink(file) for worker in workers() for file in Path(f"/proc/{worker}/fd").iterdir()]
    assert sum(file.startswith("pipe:") for file in opened) >= 3  # in, out, complaints
    assert not [file for file in opened if file.startswith("socket:")]


def test_a_worker_needs_no_socket(session: SparkSession, tmp_path: Path) -> None:
    """Where every socket is refused, the plan is made all the same."""
    refuse = (
        "import sys\n"
        "def refuse(event, arguments):\n"
        "    if event.startswith('socket.'):\n"
        "        raise RuntimeError(f'{event} by a worker')\n"
        "sys.addaudithook(refuse)\n"
    )
    give(session, python=fake(tmp_path, refuse + "from pyjoinopt.worker.serve import main\nmain()"))
    assert orders(planned(session, lambda: rows(session.sql(SQL)))[1]) == [BETTER]
    program = f"{refuse}import socket\nsocket.socket().bind(('127.0.0.1', 0))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "by a worker" in done.stderr
