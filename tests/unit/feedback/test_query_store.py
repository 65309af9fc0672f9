"""The tables of recurring queries, in the file of statistics."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pyjoinopt.estimation.store import sqlite_file
from pyjoinopt.estimation.store.store import Store
from pyjoinopt.feedback.query_store import AS_WRITTEN, MOST_OF_QUERY, MOST_RUNS, MOST_WHOLES, Entry, QueryStore, Run

RUN = Run("i", "p", "a -> b", "driver", False, 2.0, 100.0, 5.0, 1.5, 0.1, 7.0, 3.0, "")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "statistics.sqlite"


def add(queries: QueryStore, run: Run = RUN, shape: str = "s", conditions: str = "c") -> None:
    queries.add(shape, conditions, ("t", "u"), run)


def test_another_process_reads_what_was_written(path: Path) -> None:
    store = Store(path)
    add(QueryStore(store))
    QueryStore(store).explore("s", "c")
    QueryStore(store).lead("s", "c", "whole")
    store.close()
    queries = QueryStore(Store(path))
    (query,) = queries.queries()
    assert query.runs == (RUN,) and query.tables == ("t", "u")
    assert queries.entry("s", "c") == Entry(("whole",), 1) and queries.entry("s", "d") == Entry()


def test_warm_runs_are_those_of_one_driver(path: Path) -> None:
    queries = QueryStore(Store(path))
    for driver in ("one", "two", "one", "two", "three"):
        add(queries, replace(RUN, driver=driver, warm=False))
    add(queries, replace(RUN, driver="four", warm=True))  # it has run it without recording
    assert [run.warm for run in queries.runs("s", "c")] == [False, False, True, True, False, True]


def test_a_plan_that_leads_to_many_queries(path: Path) -> None:
    queries = QueryStore(Store(path))
    for number in (*range(20), 15):
        queries.lead("s", "c", f"{number}")
    wholes = queries.entry("s", "c").wholes
    assert len(wholes) == MOST_WHOLES and len(set(wholes)) == MOST_WHOLES and wholes[-2:] == ("19", "15")


def test_runs_of_other_queries_and_conditions_are_not_mixed(path: Path) -> None:
    queries = QueryStore(Store(path))
    for shape, conditions in (("s", "c"), ("s", "d"), ("r", "c")):
        add(queries, replace(RUN, changes=f"{shape}{conditions}"), shape, conditions)
    assert [run.changes for run in queries.runs("s", "d")] == ["sd"]
    assert len(queries.queries()) == 3


def test_of_each_plan_the_latest_runs_are_kept(path: Path) -> None:
    queries = QueryStore(Store(path))
    add(queries, replace(RUN, plan=AS_WRITTEN))
    for number in range(MOST_RUNS + 5):
        add(queries, replace(RUN, seconds=float(number)))
    kept = queries.runs("s", "c")
    assert [run.seconds for run in kept if run.plan] == [float(n) for n in range(5, MOST_RUNS + 5)]
    assert sum(run.plan == AS_WRITTEN for run in kept) == 1
    for number in range(MOST_OF_QUERY):
        add(queries, replace(RUN, plan=f"{number}"))
    assert len(queries.runs("s", "c")) == MOST_OF_QUERY


def test_a_store_of_an_earlier_release_gets_the_tables(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr(sqlite_file, "_add_tables", lambda _: None)
        store = Store(path)
        store.put_feedback("g", {1: 5.0})
        assert QueryStore(store).queries() == () and QueryStore(store).entry("s", "c") == Entry()
        store.close()
    queries = QueryStore(Store(path))
    add(queries)
    assert len(queries.runs("s", "c")) == 1 and Store(path).feedback("g") == {1: 5.0}


def test_everything_is_forgotten(path: Path) -> None:
    store = Store(path)
    add(QueryStore(store))
    QueryStore(store).explore("s", "c")
    store.forget([])
    assert QueryStore(store).queries()  # the files of one query say nothing about runs
    store.forget()
    assert QueryStore(store).queries() == () and QueryStore(store).entry("s", "c") == Entry()


def test_the_file_does_not_grow_without_end(path: Path) -> None:
    store = Store(path, max_bytes=200_000)
    for number in range(600):
        add(QueryStore(store), replace(RUN, changes="x" * 1000), shape=f"{number}")
    store.close()
    assert path.stat().st_size < 1_000_000
    shapes = [query.shape for query in QueryStore(Store(path)).queries()]
    assert 0 < len(shapes) < 300 and shapes[-1] == "599"


def test_a_process_that_is_killed_while_it_writes(path: Path) -> None:
    """What was committed is there, and the next process goes on."""
    program = (
        "import sys; from pathlib import Path; from tests.unit.feedback.test_query_store import *\n"
        "queries = QueryStore(Store(Path(sys.argv[1])))\n"
        "while True:\n"
        "    add(queries)\n"
        "    print('.', flush=True)\n"
    )
    for _ in range(2):
        with subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            for _ in range(5):
                assert writer.stdout.readline() == ".\n"
            writer.kill()
    queries = QueryStore(Store(path))
    assert 10 <= len(queries.runs("s", "c")) <= MOST_RUNS
    add(queries, replace(RUN, plan="other"))
    assert queries.runs("s", "c")[-1].plan == "other"


def test_two_processes_write_at_once(path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from tests.unit.feedback.test_query_store import *\n"
        "queries = QueryStore(Store(Path(sys.argv[1])))\n"
        "for n in range(40): add(queries, replace(RUN, plan=f'{sys.argv[2]}{n}'))\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", program, str(path), name]) for name in "ab"]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    assert len(QueryStore(Store(path)).runs("s", "c")) == 80


def test_a_full_disk_costs_one_warning(path: Path) -> None:
    """As it is reported by SQLite: the page limit of the connection is what stands for the disk."""
    store = Store(path)
    queries = QueryStore(store)
    add(queries)
    store.read(lambda c: c.execute(f"PRAGMA max_page_count = {c.execute('PRAGMA page_count').fetchone()[0]}"), None)
    with pytest.warns(RuntimeWarning, match="full"):
        for _ in range(20):
            add(queries, replace(RUN, changes="x" * 5000, plan=AS_WRITTEN))
    assert isinstance(queries.runs("s", "c"), tuple)
    assert QueryStore(Store(path)).runs("s", "c")[0] == RUN


def test_a_broken_file_is_replaced(path: Path) -> None:
    store = Store(path)
    add(QueryStore(store))
    store.close()
    path.write_bytes(b"SQLite format 3\0" + b"\1" * 5000)
    with pytest.warns(RuntimeWarning, match="broken"):
        queries = QueryStore(Store(path))
        assert queries.runs("s", "c") == ()
        add(queries)
    assert queries.runs("s", "c") == (RUN,)
    assert sqlite3.connect(path).execute("PRAGMA quick_check").fetchone()[0] == "ok"
