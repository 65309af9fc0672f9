"""Tables written by Delta Lake: proven statistics match the data."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.formats
_numbers = itertools.count()


@pytest.fixture
def name() -> str:
    return f"t{next(_numbers)}"


def make(spark: SparkSession, name: str, rows: int = 1000, clause: str = "", **properties: str) -> DataFrame:
    """A table of two files: id, grp (a few), price (with NULLs), day."""
    listed = ", ".join(f"'{key.replace('_', '.')}' = '{value}'" for key, value in properties.items())
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, grp INT, price DOUBLE, day DATE) USING delta {clause}"
        + (f" TBLPROPERTIES ({listed})" if listed else "")
    )
    append(spark, name, 0, rows)
    return spark.table(name)


def append(spark: SparkSession, name: str, start: int, rows: int) -> None:
    spark.range(start, start + rows, 1, 2).selectExpr(
        "id", "int(id % 7) grp", "if(id % 10 = 0, null, double(id) / 2) price",
        "date_add(date'2020-01-01', int(id % 90)) day",
    ).write.format("delta").mode("append").saveAsTable(name)


def log_of(spark: SparkSession, name: str) -> Path:
    (row,) = spark.sql(f"DESCRIBE DETAIL {name}").collect()
    return Path(row["location"].removeprefix("file:")) / "_delta_log"


def joined(spark: SparkSession, name: str) -> DataFrame:
    """A bad order: the two large ones first."""
    spark.range(20000).selectExpr("id a", "id % 1000 b").createOrReplaceTempView("large")
    spark.range(3).selectExpr("id s", "'x' x").createOrReplaceTempView("small")
    return spark.sql(
        f"SELECT count(*) n, sum(price) p FROM large JOIN {name} t ON t.grp = large.b JOIN small ON small.s = large.a"
    )


@pytest.mark.parametrize("vectors", ["false", "true"])
def test_appends_deletes_updates_and_merges(
    spark: SparkSession, name: str, proved: Any, same: Any, vectors: str
) -> None:
    make(spark, name, 1000, delta_enableDeletionVectors=vectors)
    steps = [
        f"DELETE FROM {name} WHERE id % 100 = 3",
        f"DELETE FROM {name} WHERE id % 100 = 4",
        f"UPDATE {name} SET price = price + 1000 WHERE id % 50 = 7",
        f"""MERGE INTO {name} t USING (SELECT id, id * 2 x FROM range(990, 1010)) s ON t.id = s.id
            WHEN MATCHED AND s.id % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET price = s.x
            WHEN NOT MATCHED THEN INSERT (id, grp, price, day) VALUES (s.id, 1, null, null)""",
        f"DELETE FROM {name} WHERE grp < 6",
    ]
    for step in steps:
        spark.sql(step)
        known = proved(spark.table(name))
        assert known.source == "delta log" and known.columns["id"].max is not None
    if vectors == "true":
        assert "deletionVector" in "".join(file.read_text() for file in log_of(spark, name).glob("*.json"))
    report = same(joined(spark, name))
    assert report.changed
    spark.sql(f"OPTIMIZE {name}")
    proved(spark.table(name))
    spark.sql(f"DELETE FROM {name}")
    assert proved(spark.table(name)).rows == 0


def test_a_large_table_with_deletion_vectors_gets_no_broadcast(spark: SparkSession, name: str, same: Any) -> None:
    make(spark, name, 20_000, delta_enableDeletionVectors="true")
    spark.sql(f"DELETE FROM {name} WHERE id % 1000 = 3")
    spark.range(500_000).selectExpr("id k").createOrReplaceTempView("keys")
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "10kb")
    try:
        report = same(spark.sql(f"SELECT count(*) n FROM {name} t JOIN keys ON t.id = keys.k"), hint_slack=1)
        assert "BROADCAST" not in [hint.strategy for hint in report.hints]
        spark.sql(f"DELETE FROM {name} WHERE id > 100")
        report = same(spark.sql(f"SELECT count(*) n FROM {name} t JOIN keys ON t.id = keys.k"), hint_slack=1)
        assert "BROADCAST" in [hint.strategy for hint in report.hints]
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")


@pytest.mark.parametrize("policy", ["classic", "v2"])
def test_checkpoints(spark: SparkSession, name: str, proved: Any, same: Any, policy: str) -> None:
    spark.conf.set("spark.databricks.delta.checkpointV2.topLevelFileFormat", "json")
    vectors = {"delta_enableDeletionVectors": "true"}
    make(spark, name, 100, delta_checkpointPolicy=policy, delta_checkpointInterval="3", **vectors)
    for round in range(4):
        append(spark, name, 1000 * (round + 1), 100)
        spark.sql(f"DELETE FROM {name} WHERE id % 10 = {round}")
    append(spark, name, 9000, 10)  # after the newest checkpoint
    log = log_of(spark, name)
    checkpoints = sorted(log.glob("*.checkpoint*"))
    assert checkpoints and (policy == "classic" or list(log.glob("_sidecars/*.parquet")))
    expected = proved(spark.table(name)).rows
    # Only the newest checkpoint and the later commits are left.
    newest = int(checkpoints[-1].name[:20])
    for file in log.glob("*.json"):
        if file.name[20:] == ".json" and int(file.name[:20]) < newest:
            file.unlink()
    for number in (newest, newest + 1):
        proved(spark.sql(f"SELECT * FROM {name} VERSION AS OF {number}"))
    assert proved(spark.table(name)).rows == expected
    same(joined(spark, name))


def test_statistics_as_structs_only(spark: SparkSession, name: str, proved: Any) -> None:
    make(
        spark, name, 100, delta_checkpointInterval="1", delta_checkpoint_writeStatsAsJson="false",
        delta_checkpoint_writeStatsAsStruct="true",
    )  # fmt: skip
    log = log_of(spark, name)
    assert list(log.glob("*.checkpoint*"))
    for file in log.glob("*.json"):
        if int(file.name[:20]) < 1:
            file.unlink()
    checkpoint = max(log.glob("*.checkpoint*.parquet"))
    written = "stats_parsed" in str(pq.read_schema(checkpoint).field("add").type)
    known = proved(spark.table(name), exact=written)
    if written:
        assert (known.columns["id"].min, known.columns["id"].max, known.columns["price"].nulls) == (0, 99, 10)
        assert known.columns["day"].min == 18262
    else:  # Delta 3 writes neither then
        assert known.columns == {}


def test_time_travel(spark: SparkSession, name: str, proved: Any, same: Any) -> None:
    make(spark, name, 100)
    append(spark, name, 100, 50)
    spark.sql(f"DELETE FROM {name} WHERE id < 30")
    rows = [proved(spark.sql(f"SELECT * FROM {name} VERSION AS OF {v}")).rows for v in range(4)]
    assert rows == [0, 100, 150, 120]
    same(spark.sql(f"""SELECT a.id, b.id, c.id FROM {name} VERSION AS OF 1 a
        JOIN {name} VERSION AS OF 2 b ON a.id = b.id JOIN {name} c ON b.id = c.id"""))


def test_what_another_writer_adds_is_seen(spark: SparkSession, name: str, proved: Any) -> None:
    df = make(spark, name, 100)
    assert proved(df).rows == 100
    path = log_of(spark, name).parent
    spark.newSession().range(100, 110).selectExpr("id", "1 grp", "0d price", "date'2020-01-01' day").write.format(
        "delta"
    ).mode("append").save(str(path))
    assert proved(df.select("*")).rows == 110  # planned again, from the same relation


def test_renamed_and_dropped_columns(spark: SparkSession, name: str, proved: Any, same: Any) -> None:
    make(spark, name, 100, delta_columnMapping_mode="name", delta_minReaderVersion="2", delta_minWriterVersion="5")
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN id TO old")
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN grp TO id")
    known = proved(spark.table(name))
    assert (known.columns["old"].max, known.columns["id"].max) == (99, 6)
    spark.sql(f"ALTER TABLE {name} DROP COLUMN old")
    spark.sql(f"ALTER TABLE {name} ADD COLUMN old BIGINT")
    spark.sql(f"INSERT INTO {name} (id, price, day, old) VALUES (500, 1.0, date'2021-01-01', 7)")
    known = proved(spark.table(name))
    assert known.columns["id"].max == 500 and known.columns["old"].max is None  # unknown in the older files
    same(spark.sql(f"""SELECT a.id, b.k, c.old FROM {name} a JOIN (SELECT id k FROM range(600)) b ON a.id = b.k
        JOIN {name} c ON c.id = b.k"""))


def test_columns_mapped_and_partitioned_from_the_start(spark: SparkSession, name: str, proved: Any) -> None:
    make(spark, name, 100, "PARTITIONED BY (grp)", delta_columnMapping_mode="name")
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN grp TO part")
    known = proved(spark.table(name))
    assert (known.columns["part"].ndv, known.columns["part"].min, known.columns["part"].max) == (7, 0, 6)


def test_upgraded_tables_are_mapped_by_the_names_they_had(spark: SparkSession, name: str, proved: Any) -> None:
    make(spark, name, 100)
    spark.sql(
        f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', "
        "'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5')"
    )
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN id TO grp2")
    assert proved(spark.table(name)).columns["grp2"].max == 99


def test_a_feature_that_is_not_known(spark: SparkSession, name: str, known: Any) -> None:
    make(spark, name, 100, delta_enableDeletionVectors="true")
    df = spark.table(name)
    log = log_of(spark, name)
    (log / "zebra").write_text("")
    _, facts = known(df)
    assert (facts.rows, facts.exact) == (100, False) and "zebra" in facts.note


def test_changes_are_not_the_table(spark: SparkSession, name: str, known: Any, same: Any) -> None:
    make(spark, name, 100, delta_enableChangeDataFeed="true")
    spark.sql(f"DELETE FROM {name} WHERE id < 30")
    changes = spark.sql(f"SELECT * FROM table_changes('{name}', 0)")
    assert changes.count() == 130
    assert not known(changes)[1].exact
    changes.createOrReplaceTempView("changes")
    same(spark.sql(f"SELECT count(*) FROM changes c JOIN {name} t ON t.id = c.id JOIN range(50) r ON r.id = t.id"))


def test_clones(spark: SparkSession, name: str, proved: Any) -> None:
    make(spark, name, 100, delta_enableDeletionVectors="true")
    spark.sql(f"DELETE FROM {name} WHERE id < 30")
    spark.sql(f"CREATE TABLE {name}_copy SHALLOW CLONE {name}")
    proved(spark.table(f"{name}_copy"))
    spark.sql(f"DELETE FROM {name}_copy WHERE id < 50")
    assert proved(spark.table(f"{name}_copy")).rows == 50
    assert proved(spark.table(name)).rows == 70
    spark.sql(f"RESTORE TABLE {name}_copy TO VERSION AS OF 0")
    assert proved(spark.table(f"{name}_copy")).rows == 70
