"""Faulty tables: their reported statistics, and planning that continues and starts no Spark job."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import pyjoinopt

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytest.importorskip("pyspark")
ROWS = 2000
#: Seconds that planning may take on a slow machine that does other things, too: a bound, no measure.
BOUNDED = 60


@pytest.fixture(scope="module")
def session(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    own = spark.newSession()
    own.conf.set("spark.pyjoinopt.store", "off")
    folder = tmp_path_factory.mktemp("partners")
    for name, rows in (("few", 10), ("some", 200)):
        own.range(rows).withColumnRenamed("id", f"{name}_id").write.parquet(str(folder / name))
        own.read.parquet(str(folder / name)).createOrReplaceTempView(name)
    return own


@contextmanager
def no_job(session: SparkSession) -> Iterator[None]:
    """Fails if a Spark job is started meanwhile."""
    tracker = session.sparkContext.statusTracker()
    before = set(tracker.getJobIdsForGroup(None))
    yield
    assert set(tracker.getJobIdsForGroup(None)) == before


def files_of(path: Path) -> list[Path]:
    return sorted(path.glob("part-*"))


def write(session: SparkSession, path: Path, *columns: str, files: int = 2, rows: int = ROWS) -> None:
    session.range(rows).selectExpr(*(columns or ("id", "id % 10 AS k"))).repartition(files).write.parquet(str(path))


def joined(session: SparkSession, df: DataFrame) -> DataFrame:
    df.createOrReplaceTempView("bad")
    return session.sql("SELECT bad.id FROM bad JOIN some ON id = some_id JOIN few ON k = few_id WHERE id >= 0")


def planned(session: SparkSession, df: DataFrame) -> DataFrame:
    """The query over three tables, optimised without a job and in bounded time."""
    query = joined(session, df)
    started = time.monotonic()
    with no_job(session):
        fast = query.optimize_joins(strict=True)
    assert time.monotonic() - started < BOUNDED
    return fast


def shown(df: DataFrame) -> dict[str, Any]:
    (row,) = pyjoinopt.statistics.show(df).to_dict("records")
    return row


def ids(df: DataFrame) -> list[int]:
    return sorted(row[0] for row in df.collect())


# -- files that are missing, broken, forbidden, changed ------------------------------------------------------------


def spoil(file: Path, how: str) -> None:
    if how == "cut short":
        file.write_bytes(file.read_bytes()[:-6])
        return
    if how == "garbled":
        file.write_bytes(b"PAR1" + bytes(200) + b"PAR1")
        return
    file.unlink()
    if how == "forbidden":
        file.symlink_to(file)  # not even root reads a link that leads in a circle


@pytest.mark.parametrize("how", ["missing", "cut short", "garbled", "forbidden"])
def test_one_of_three_files(session: SparkSession, tmp_path: Path, how: str) -> None:
    """The others stand for it, and the note names it."""
    write(session, tmp_path / "t", files=3)
    df = session.read.parquet(str(tmp_path / "t"))
    spoil(victim := files_of(tmp_path / "t")[0], how)
    row = shown(df)
    assert row["rows"] == pytest.approx(ROWS, rel=0.2) and not row["exact"]
    assert "1 of 3 footers cannot be read" in row["note"] and victim.name in row["note"]
    planned(session, df)


def test_no_file_can_be_read(session: SparkSession, tmp_path: Path) -> None:
    write(session, tmp_path / "t")
    df = session.read.parquet(str(tmp_path / "t"))
    for file in files_of(tmp_path / "t"):
        spoil(file, "cut short")
    row = shown(df)
    assert row["source"] == "size" and row["rows"] > 0 and "2 of 2 footers cannot be read" in row["note"]
    planned(session, df)


def test_files_that_change_between_planning_and_running(session: SparkSession, tmp_path: Path) -> None:
    """Spark reads the remaining files, or fails as without us; a reopened table has the new files' statistics."""
    write(session, tmp_path / "t")
    df = session.read.parquet(str(tmp_path / "t"))
    fast = planned(session, df)
    for file in files_of(tmp_path / "t"):
        file.unlink()
    write(session, tmp_path / "new", rows=50)
    for file in files_of(tmp_path / "new"):
        file.rename(tmp_path / "t" / file.name)
    with pytest.raises(Exception, match="FILE_NOT_EXIST|FileNotFound|does not exist"):
        fast.collect()
    again = session.read.parquet(str(tmp_path / "t"))
    assert shown(again)["rows"] == 50
    assert ids(planned(session, again)) == ids(joined(session, again)) == list(range(50))


# -- shapes --------------------------------------------------------------------------------------------------------


def test_empty_tables(session: SparkSession, tmp_path: Path) -> None:
    write(session, tmp_path / "t", rows=0, files=1)
    (tmp_path / "bare").mkdir()
    for df in (
        session.read.parquet(str(tmp_path / "t")),
        session.read.schema("id BIGINT, k BIGINT").parquet(str(tmp_path / "bare")),
    ):
        assert (shown(df)["rows"], shown(df)["exact"]) == (0, True)
        assert ids(planned(session, df)) == []


def test_columns_of_nothing_but_null(session: SparkSession, tmp_path: Path) -> None:
    write(session, tmp_path / "t", "CAST(NULL AS BIGINT) AS id", "CAST(NULL AS BIGINT) AS k")
    df = session.read.parquet(str(tmp_path / "t"))
    report = pyjoinopt.join_report(joined(session, df), strict=True)
    assert all(0 <= relation.rows < 1e9 for relation in report.groups[0].relations)
    assert ids(planned(session, df)) == []


def test_of_two_thousand_columns_two_are_gathered(session: SparkSession, tmp_path: Path) -> None:
    write(session, tmp_path / "t", "id", "id % 10 AS k", *(f"id AS c{i}" for i in range(1998)), files=1, rows=20)
    df = session.read.parquet(str(tmp_path / "t"))
    shown_columns = pyjoinopt.statistics.show(joined(session, df)).set_index("relation").loc["t", "columns"]
    assert sorted(shown_columns) == ["id", "k"]
    assert ids(planned(session, df)) == list(range(20))


def test_one_value_in_nearly_all_rows(session: SparkSession, tmp_path: Path) -> None:
    """Footers show ten values, and the estimate assumes a uniform distribution; counted statistics are exact."""
    write(session, tmp_path / "t", "id", "IF(id < 10, id, 3) AS k")
    df = session.read.parquet(str(tmp_path / "t"))
    df.createOrReplaceTempView("bad")
    query = session.sql("SELECT id FROM bad JOIN some ON id = some_id JOIN few ON k = few_id WHERE k = 3")

    def rows() -> float:
        relations = pyjoinopt.join_report(query, strict=True).groups[0].relations
        return next(relation.rows for relation in relations if relation.name == "bad")

    pyjoinopt.analyze(session, df, columns=["id", "k"], progress=False)
    assert rows() == pytest.approx(ROWS - 9, rel=0.01)


@pytest.mark.slow
def test_a_hundred_thousand_files(session: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    write(session, path, files=2, rows=20)
    for one in files_of(path):  # a file may have 65,000 names
        for i in range(49_999):
            os.link(one, path / f"{one.stem}-{i:06}.parquet")
    df = session.read.parquet(str(path))
    planned(session, df)
    assert shown(df)["rows"] == pytest.approx(1e6, rel=0.01)


# -- catalogs ------------------------------------------------------------------------------------------------------


def test_catalog_statistics_that_are_older_than_the_files(session: SparkSession, tmp_path: Path) -> None:
    session.sql(f"CREATE TABLE outdated (id BIGINT, k BIGINT) USING parquet LOCATION '{(tmp_path / 't').as_posix()}'")
    try:
        session.sql("INSERT INTO outdated VALUES (1, 1)")
        session.sql("ANALYZE TABLE outdated COMPUTE STATISTICS FOR ALL COLUMNS")
        write(session, tmp_path / "new")
        for file in files_of(tmp_path / "new"):
            file.rename(tmp_path / "t" / file.name)
        session.catalog.refreshTable("outdated")
        row = shown(session.table("outdated"))
        assert "older than the files" in row["note"] and not row["exact"]
        assert ids(planned(session, session.table("outdated"))) == ids(joined(session, session.table("outdated")))
    finally:
        session.sql("DROP TABLE outdated")


def test_partitions_with_many_folders_in_them(session: SparkSession, tmp_path: Path) -> None:
    """To list them Spark would start a job; it may when the query runs, not while it is planned."""
    path, name = tmp_path / "t", "spark.sql.sources.parallelPartitionDiscovery.threshold"
    columns = "(id BIGINT, k BIGINT) USING parquet PARTITIONED BY (k)"
    session.sql(f"CREATE TABLE deep {columns} LOCATION '{path.as_posix()}'")
    before = session.conf.get(name)
    session.conf.set(name, "4")
    try:
        session.sql("INSERT INTO deep VALUES (1, 1), (2, 2)")
        assert shown(session.table("deep"))["rows"] == 2
        for i in range(8):
            (path / "k=1" / f"folder{i}").mkdir()
        session.catalog.refreshTable("deep")
        planned(session, session.table("deep"))
        with no_job(session):
            row = shown(session.table("deep"))
        assert row["source"] != "footers" and "not listed" in row["note"]
    finally:
        session.conf.set(name, before)
        session.sql("DROP TABLE deep")


@pytest.mark.slow
def test_an_index_of_files_that_somebody_else_wrote(
    session: SparkSession, stand_in_classes: Any, tmp_path: Path
) -> None:
    """Each of its methods starts a job, so planning calls none of them."""
    from pyspark.sql import DataFrame

    write(session, tmp_path / "t")
    index = stand_in_classes.foreign.ForeignIndex
    df = DataFrame(index.frame(session._jsparkSession, str(tmp_path / "t")), session)
    query = joined(session, df)
    requested = index.requested()
    with no_job(session):
        fast = {s: query.optimize_joins(strict=True, strategy=s) for s in ("auto", "spark")}
        row = shown(df)
    assert index.requested() == requested
    assert "not listed" in row["note"] and "ForeignIndex" in row["note"] and row["rows"] > 0
    assert [ids(one) for one in fast.values()] == [ids(query)] * 2
