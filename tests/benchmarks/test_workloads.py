"""Folders of tables and queries that estimates are graded on, and their wrong uses."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.estimates import workloads
from benchmarks.flights import QUERIES
from benchmarks.workloads import Workload, WorkloadError, of_benchmark, of_folders, tables_of


def write(file: Path, *values: int) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"n": list(values)}), file)
    return file


@pytest.fixture
def workload(tmp_path: Path) -> Workload:
    """A file, a folder of part files and a partitioned folder, with two queries."""
    write(tmp_path / "tables" / "One.parquet", 1)
    write(tmp_path / "tables" / "two.parquet" / "part-0.parquet", 2)
    write(tmp_path / "tables" / "two.parquet" / "part-1.parquet", 3)
    (tmp_path / "tables" / "two.parquet" / "_SUCCESS").touch()
    write(tmp_path / "tables" / "three" / "year=2013" / "part-0.parquet", 4)
    (tmp_path / "tables" / "README.txt").touch()
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / "b.sql").write_text("-- what is in one?\nSELECT * FROM one;\n")
    (tmp_path / "queries" / "a.sql").write_text("SELECT * FROM two")
    return of_folders(tmp_path / "tables", tmp_path / "queries")


def test_tables_and_queries(workload: Workload, tmp_path: Path) -> None:
    tables = tmp_path / "tables"
    assert list(workload.tables) == ["one", "three", "two"]
    assert workload.files() == {
        "one": (tables / "One.parquet",),
        "two": (tables / "two.parquet" / "part-0.parquet", tables / "two.parquet" / "part-1.parquet"),
    }
    assert workload.queries == {"a": "SELECT * FROM two", "b": "-- what is in one?\nSELECT * FROM one"}


def test_some_queries(workload: Workload) -> None:
    assert list(workload.only(["b"]).queries) == ["b"]
    with pytest.raises(WorkloadError, match="has no query c; it has a, b"):
        workload.only(["a", "c"])


def test_other_files_have_another_fingerprint(workload: Workload, tmp_path: Path) -> None:
    before = workload.fingerprint()
    assert of_folders(tmp_path / "tables", tmp_path / "queries").fingerprint() == before
    write(tmp_path / "tables" / "two.parquet" / "part-2.parquet", 5)
    assert of_folders(tmp_path / "tables", tmp_path / "queries").fingerprint() != before


def test_folders_that_cannot_be_graded(workload: Workload, tmp_path: Path) -> None:
    tables, queries, empty = tmp_path / "tables", tmp_path / "queries", tmp_path / "empty"
    with pytest.raises(WorkloadError, match="nowhere does not exist; give the folder of the tables"):
        of_folders(tmp_path / "nowhere", queries)
    with pytest.raises(WorkloadError, match="One.parquet is a file; give the folder of the queries"):
        of_folders(tables, tables / "One.parquet")
    empty.mkdir()
    with pytest.raises(WorkloadError, match="empty has no tables; it needs files NAME.parquet"):
        of_folders(empty, queries)
    with pytest.raises(WorkloadError, match="empty has no queries; it needs files NAME.sql"):
        of_folders(tables, empty)
    (queries / "c.sql").write_text(" ;\n")
    with pytest.raises(WorkloadError, match="c.sql is empty; write a SELECT statement"):
        of_folders(tables, queries)
    (tables / "one").mkdir()
    with pytest.raises(WorkloadError, match="one has no Parquet files; add them"):
        tables_of(tables)
    write(tables / "one" / "part-0.parquet", 1)
    with pytest.raises(WorkloadError, match="are both named one; rename or remove one"):
        tables_of(tables)


@pytest.mark.parametrize(
    "given, message",
    [
        ({"tables": Path("t")}, "--tables and --queries belong together"),
        ({"tables": Path("t"), "queries": Path("q"), "nycflights13": True}, "give only one of"),
        ({"benchmarks": "tpcc"}, "'tpcc' is not a benchmark; use tpch or tpcds"),
        ({"timeout": 0.0}, "--timeout is 0.0; it has to be greater than 0"),
        ({"sets": -1}, "--sets is -1; it has to be greater than 0"),
    ],
)
def test_arguments_that_are_refused(given: dict[str, Any], message: str) -> None:
    usual = {
        "tables": None, "queries": None, "nycflights13": False, "benchmarks": None, "only": None,
        "sets": 500, "timeout": 30.0, "scale": 0.01,
    }  # fmt: skip
    with pytest.raises(WorkloadError, match=message):
        workloads(argparse.Namespace(**{**usual, **given}))


def test_benchmarks_are_workloads() -> None:
    found = of_benchmark("tpch", 0.01)
    assert len(found.queries) == 22 and "lineitem" in found.files()
    assert list(found.only(["2", "5"]).queries) == ["2", "5"]


def test_queries_over_the_flights() -> None:
    texts = [file.read_text(encoding="utf-8") for file in sorted(QUERIES.glob("*.sql"))]
    assert len(texts) == 40 and sum("Correlated:" in text.splitlines()[0] for text in texts) >= 15
    assert all(text.startswith("-- ") and 1 <= text.count("JOIN ") <= 6 for text in texts)
