"""Tables written by Iceberg: proven statistics match the data, and reading them starts no job."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.formats
_numbers = itertools.count()


@pytest.fixture
def name() -> str:
    return f"ice.db.t{next(_numbers)}"


def make(spark: SparkSession, name: str, rows: int = 1000, clause: str = "", mode: str = "merge-on-read") -> None:
    spark.sql(
        f"""CREATE TABLE {name} (id BIGINT, grp INT, price DOUBLE, day DATE) USING iceberg {clause} TBLPROPERTIES (
        'format-version' = '2', 'write.delete.mode' = '{mode}', 'write.update.mode' = '{mode}',
        'write.merge.mode' = '{mode}')"""
    )
    append(spark, name, 0, rows)


def append(spark: SparkSession, name: str, start: int, rows: int) -> None:
    spark.range(start, start + rows, 1, 2).selectExpr(
        "id", "int(id % 7) grp", "if(id % 10 = 0, null, double(id) / 2) price",
        "date_add(date'2020-01-01', int(id % 90)) day",
    ).writeTo(name).append()


def latest(spark: SparkSession, name: str) -> int:
    (row,) = spark.sql(f"SELECT snapshot_id s FROM {name}.snapshots ORDER BY committed_at DESC LIMIT 1").collect()
    return row["s"]


def test_an_empty_table_and_appends(spark: SparkSession, name: str, proved: Any) -> None:
    make(spark, name, 0)
    assert proved(spark.table(name)).rows == 0
    append(spark, name, 0, 100)
    append(spark, name, 100, 50)
    facts = proved(spark.table(name))
    assert (facts.rows, facts.source, facts.note) == (150, "iceberg snapshot", "")


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_deletes_updates_and_merges(spark: SparkSession, name: str, proved: Any, same: Any, mode: str) -> None:
    make(spark, name, 1000, mode=mode)
    exact = mode == "copy-on-write"
    for step in (
        f"DELETE FROM {name} WHERE id % 100 = 3",
        f"UPDATE {name} SET price = price + 1000 WHERE id % 50 = 7",
        f"""MERGE INTO {name} t USING (SELECT id, id * 2 x FROM range(990, 1010)) s ON t.id = s.id
            WHEN MATCHED AND s.id % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET price = s.x
            WHEN NOT MATCHED THEN INSERT (id, grp, price, day) VALUES (s.id, 1, null, null)""",
    ):
        spark.sql(step)
        facts = proved(spark.table(name), exact)
        assert facts.rows == spark.table(name).count()  # by the counts of position deletes, though not as a proof
        assert exact or "deleted" in facts.note
    spark.range(20000).selectExpr("id a", "id % 1000 b").createOrReplaceTempView("large")
    spark.range(3).selectExpr("id s").createOrReplaceTempView("small")
    same(spark.sql(f"SELECT count(*), sum(price) FROM large JOIN {name} t ON t.id = large.b JOIN small ON s = a"))
    spark.sql(f"CALL ice.system.rewrite_data_files(table => '{name[4:]}', options => map('rewrite-all', 'true'))")
    spark.sql(f"DELETE FROM {name} WHERE true")
    assert proved(spark.table(name)).rows == 0


def test_partition_evolution(spark: SparkSession, name: str, proved: Any, same: Any) -> None:
    make(spark, name, 100, "PARTITIONED BY (grp)")
    spark.sql(f"ALTER TABLE {name} REPLACE PARTITION FIELD grp WITH months(day)")
    append(spark, name, 100, 50)
    spark.sql(f"ALTER TABLE {name} DROP PARTITION FIELD months(day)")
    append(spark, name, 150, 50)
    assert proved(spark.table(name)).rows == 200
    spark.sql(f"DELETE FROM {name} WHERE grp = 3")
    same(spark.sql(f"""SELECT * FROM {name} a JOIN {name} b ON a.id = b.id JOIN range(50) r ON r.id = a.id
        WHERE a.day < '2020-02-03'"""))


def test_time_travel_branches_and_tags(spark: SparkSession, name: str, proved: Any, known: Any) -> None:
    make(spark, name, 100)
    first = latest(spark, name)
    spark.sql(f"ALTER TABLE {name} CREATE TAG one")
    append(spark, name, 100, 50)
    spark.sql(f"ALTER TABLE {name} CREATE BRANCH two")
    append(spark, name, 150, 50)
    spark.sql(f"INSERT INTO {name}.branch_two VALUES (1, 1, 1.0, null)")
    assert proved(spark.sql(f"SELECT * FROM {name} VERSION AS OF {first}")).rows == 100
    assert proved(spark.sql(f"SELECT * FROM {name} VERSION AS OF 'one'")).rows == 100
    assert proved(spark.sql(f"SELECT * FROM {name}.branch_two")).rows == 151
    assert proved(spark.table(name)).rows == 200
    assert proved(spark.read.option("snapshot-id", first).table(name)).rows == 100
    part = spark.read.option("start-snapshot-id", first).option("end-snapshot-id", latest(spark, name)).table(name)
    facts = known(part)[1]
    assert not facts.exact and facts.rows != 200


def test_metadata_is_not_the_table(spark: SparkSession, name: str, known: Any, jobs: Any) -> None:
    make(spark, name, 100)
    for kind in ("snapshots", "files", "history", "all_data_files"):
        before = jobs()
        facts = known(spark.table(f"{name}.{kind}"))[1]
        assert (facts.source, facts.exact) == ("default", False) and "nobody knows" in facts.note
        assert jobs() == before


def test_renamed_columns_and_different_values(spark: SparkSession, name: str, proved: Any) -> None:
    make(spark, name, 1000)
    first = latest(spark, name)
    spark.sql(f"CALL ice.system.compute_table_stats(table => '{name[4:]}', columns => array('id', 'grp'))")
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN grp TO part")
    facts = proved(spark.table(name))
    assert facts.columns["part"].ndv == 7 and abs(facts.columns["id"].ndv - 1000) < 50
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN part TO again")
    spark.sql(f"INSERT INTO {name} SELECT id, 3, 1.0, null FROM range(1000, 1010)")
    facts = proved(spark.table(name))  # of the snapshot before
    assert (facts.rows, facts.columns["again"].ndv) == (1010, 7)
    facts = proved(spark.sql(f"SELECT * FROM {name} VERSION AS OF {first}"))
    assert (facts.rows, facts.columns["grp"].ndv) == (1000, 7)  # as it was called then
