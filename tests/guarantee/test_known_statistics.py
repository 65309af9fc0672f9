"""Sources of statistics with real plans: what is reported, stored and deleted, and how it changes join orders."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import pyjoinopt
from pyjoinopt.estimation.sources.registry import register, unregister
from pyjoinopt.estimation.store import store
from pyjoinopt.statistics import Column, Known, Relation
from tests.support.compare import assert_same_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytest.importorskip("pyspark")


@pytest.fixture
def tables(spark: SparkSession, tmp_path: Path) -> Iterator[DataFrame]:
    """big ⋈ middle ⋈ small, written in a bad order, with a separate store."""
    session = spark.newSession()
    session.conf.set("spark.pyjoinopt.store", str(tmp_path / "store.sqlite"))
    for name, rows in (("big", 20_000), ("middle", 2_000), ("small", 20)):
        path = str(tmp_path / name)
        spark.range(rows).selectExpr(f"id as {name}_id", f"id % 20 as {name}_k").coalesce(1).write.parquet(path)
        session.read.parquet(path).createOrReplaceTempView(name)
    yield session.sql(
        "select * from big join middle on big_id = middle_id join small on middle_k = small_k where small_id < 3"
    )


def shown(df: DataFrame, **options: Any) -> dict[str, dict[str, Any]]:
    table = pyjoinopt.statistics.show(df, **options)
    return {row["relation"]: row for row in table.to_dict("records")}


def test_show(tables: DataFrame, tmp_path: Path) -> None:
    table = pyjoinopt.statistics.show(tables)
    names = "relation format rows bytes source exact age columns distinct sample sample_columns sample_age keys note"
    assert list(table.columns) == names.split()
    assert dict(zip(table.relation, table.rows)) == {"big": 20_000, "middle": 2_000, "small": 20}
    assert set(table.source) == {"footers"} and table.exact.all() and table.age.isna().all()
    assert shown(tables)["big"]["columns"] == ["big_id", "big_k"]
    again = pyjoinopt.statistics.show(tables)
    assert (again.age.dt.total_seconds() >= 0).all() and (again.age.dt.total_seconds() < 600).all()


def test_show_starts_no_job(spark: SparkSession, tables: DataFrame, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("1,2\n" * 1000)
    df = tables.crossJoin(spark.read.schema("x int, y int").csv(str(tmp_path / "t.csv")))
    tracker = spark.sparkContext.statusTracker()
    before = set(tracker.getJobIdsForGroup(None))
    assert shown(df)["t.csv"]["source"] == "size / row width" and shown(df)["t.csv"]["rows"] == 1000
    df.optimize_joins(strict=True)
    assert set(tracker.getJobIdsForGroup(None)) == before


def test_a_second_session_reads_no_file(tables: DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown(tables)
    monkeypatch.setattr(store, "_stores", {})
    for name in ("big", "middle", "small"):
        for file in (tmp_path / name).glob("*.parquet"):
            file.write_bytes(b"not a footer any more")  # Spark's listing, which names the files, was made before
    assert {name: row["rows"] for name, row in shown(tables).items()} == {"big": 20_000, "middle": 2_000, "small": 20}


def test_a_changed_table_is_noticed(spark: SparkSession, tables: DataFrame, tmp_path: Path) -> None:
    assert shown(tables)["small"]["rows"] == 20
    spark.range(30).selectExpr("id as small_id", "id % 20 as small_k").write.mode("append").parquet(
        str(tmp_path / "small")
    )
    session = tables.sparkSession
    session.read.parquet(str(tmp_path / "small")).createOrReplaceTempView("small")
    assert shown(session.table("small"))["small"]["rows"] == 50
    assert shown(session.table("big"))["big"]["age"].total_seconds() >= 0


def test_forget(tables: DataFrame, tmp_path: Path) -> None:
    import pandas

    session = tables.sparkSession
    shown(tables)
    pyjoinopt.statistics.forget(session.table("big"))
    assert pandas.isna(shown(session.table("big"))["big"]["age"])
    assert not pandas.isna(shown(session.table("small"))["small"]["age"])
    pyjoinopt.statistics.forget(store=str(tmp_path / "store.sqlite"))
    assert pandas.isna(shown(session.table("small"))["small"]["age"])


def test_off_writes_nothing(tables: DataFrame, tmp_path: Path) -> None:
    shown(tables, store="off")
    tables.optimize_joins(store="off", strict=True)
    pyjoinopt.statistics.forget(tables, store="off")
    assert not (tmp_path / "store.sqlite").exists()


def test_a_broken_store_does_not_stop_a_query(tables: DataFrame, tmp_path: Path) -> None:
    (tmp_path / "store.sqlite").write_bytes(b"nonsense" * 1000)
    with pytest.warns(RuntimeWarning, match="broken") as reported:
        fast = tables.optimize_joins(strict=True)
    assert len(reported) == 1
    assert_same_rows(tables, fast)


def test_a_users_source_decides_the_order(tables: DataFrame) -> None:
    class Wrong:
        name = "our catalogue"

        def lookup(self, relation: Relation) -> Known | None:
            rows = {"big": 1, "middle": 10**6, "small": 10**6}[relation.name]
            return Known(rows, columns={name: Column(ndv=rows) for name in relation.columns if name.endswith("id")})

    session = tables.sparkSession
    df = session.sql("select * from small join middle on small_k = middle_k join big on middle_id = big_id")
    before = pyjoinopt.join_report(df, strict=True, cost="c_out").groups[0]
    register(Wrong())
    try:
        after = pyjoinopt.join_report(df, strict=True, cost="c_out").groups[0]
    finally:
        unregister("our catalogue")
    assert {r.source for r in after.relations} == {"our catalogue"}
    assert set(before.estimated_rows[0].relations) == {"small", "middle"}
    assert set(after.estimated_rows[0].relations) == {"middle", "big"}


def test_a_failing_source_does_not_stop_a_query(tables: DataFrame) -> None:
    class Away:
        name = "a catalogue that is away"

        def lookup(self, relation: Relation) -> Known | None:
            raise ConnectionError("no route to host")

    register(Away())
    try:
        with pytest.warns(RuntimeWarning, match="no route to host") as reported:
            fast = tables.optimize_joins(strict=True)
            shown(tables)
    finally:
        unregister("a catalogue that is away")
    assert len(reported) == 1
    assert_same_rows(tables, fast)


@pytest.fixture
def empty_tables(spark: SparkSession) -> Iterator[SparkSession]:
    """Empty tables with the statistics of full ones, and full ones with statistics of their own."""
    sizes = {"e_big": 1_000_000, "e_middle": 10_000, "e_small": 10}
    from benchmarks.injection import create_table

    for name, rows in sizes.items():
        spark.sql(f"drop table if exists {name}")
        columns = {
            f"{name}_id": {"type": "int", "distinct": rows, "nulls": 0, "min": 0, "max": rows - 1},
            f"{name}_k": {"type": "int", "distinct": min(rows, 10_000), "nulls": 0, "min": 0, "max": rows - 1},
        }
        create_table(spark, name, {"rows": rows, "columns": columns})
    yield spark
    for name in sizes:
        spark.sql(f"drop table {name}")


def test_empty_tables_plan_by_the_catalog_as_if_they_were_full(empty_tables: SparkSession) -> None:
    df = empty_tables.sql(
        "select * from e_big join e_middle on e_big_k = e_middle_id join e_small on e_middle_k = e_small_id"
    )
    by_catalog = pyjoinopt.join_report(df, statistics="catalog", strict=True).groups[0]
    assert {r.name.split(".")[-1]: (r.rows, r.source) for r in by_catalog.relations} == {
        "e_big": (1_000_000, "catalog"), "e_middle": (10_000, "catalog"), "e_small": (10, "catalog"),
    }  # fmt: skip
    assert by_catalog.order_after.count("e_big") == 1 and by_catalog.changed
    inner = by_catalog.estimated_rows[0].relations
    assert {name.split(".")[-1] for name in inner} == {"e_middle", "e_small"}
    by_footers = pyjoinopt.join_report(df, statistics="footers", strict=True).groups[0]
    assert {r.source for r in by_footers.relations} == {"footers"}
    assert all(r.rows <= 1 for r in by_footers.relations)


def test_histograms_of_the_catalog(spark: SparkSession) -> None:
    """Squares are dense at the low end: half of a thousand are in the first quarter of their range."""
    session = spark.newSession()
    session.conf.set("spark.sql.statistics.histogram.enabled", "true")
    session.conf.set("spark.sql.statistics.histogram.numBins", "4")
    session.range(1000).selectExpr("id", "id * id AS square").coalesce(1).write.saveAsTable("squares")
    try:
        session.sql("ANALYZE TABLE squares COMPUTE STATISTICS FOR COLUMNS square")
        df = session.sql(
            "SELECT s.id FROM squares s JOIN range(9) a ON s.id = a.id JOIN range(9) b ON a.id = b.id "
            "WHERE square < 250000"
        )
        relations = pyjoinopt.join_report(df, statistics="catalog", strict=True).groups[0].relations
        (squares,) = [relation for relation in relations if relation.name == "s"]
        assert (squares.rows, squares.source) == (pytest.approx(500, rel=0.05), "catalog")
    finally:
        session.sql("DROP TABLE squares")


def test_counts_that_are_not_of_these_files_are_reported(empty_tables: SparkSession) -> None:
    table = pyjoinopt.statistics.show(empty_tables.table("e_big"))
    assert (table.rows[0], table.source[0], table.exact[0]) == (1_000_000, "catalog", False)
    assert table.note[0].startswith("older than the files")
    assert pyjoinopt.statistics.show(empty_tables.table("e_big"), statistics="catalog").note[0] == ""


def test_files_that_vanish_between_reading_and_planning(tables: DataFrame, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shutil.rmtree(tmp_path / "small")
        report = pyjoinopt.join_report(tables, strict=True)
        assert {r.name: r.source for r in report.groups[0].relations} == {
            "big": "footers", "middle": "footers", "small": "size",
        }  # fmt: skip
    assert "cannot be read" in shown(tables)["small"]["note"]
