"""Sources that are not among Spark's jars, by stand-ins: the log of a Delta table, what a DSv2 source reports.

A table's log is written here as the Delta protocol describes it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import pyjoinopt
from pyjoinopt.bridge.shim import bridge_for

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.slow  # the stand-ins are compiled first
SCHEMA = "id BIGINT, day DATE, price DOUBLE, part INT"


def shown(df: DataFrame, **options: Any) -> dict[str, Any]:
    (row,) = pyjoinopt.statistics.show(df, **options).to_dict("records")
    return row


def test_what_a_source_reports(spark: SparkSession, stand_ins: Any) -> None:
    df = spark.read.format("org.apache.spark.sql.delta.standin.Reporting").load()
    row = shown(df, store="off")
    assert (row["rows"], row["source"], row["distinct"], row["keys"]) == (1000, "reported", {"id": 70}, [("name",)])


def add(number: int, rows: int | None, size: int = 1000, part: str | None = "1", hidden: int = 0) -> dict[str, Any]:
    """File `number` holds ids from 100 * number on, days from 2020-01-01 on, a NULL price in every tenth row."""
    stats = {
        "numRecords": rows, "minValues": {"id": 100 * number, "day": "2020-01-01", "price": 0.5},
        "maxValues": {"id": 100 * number + (rows or 0) - 1, "day": "2020-01-31", "price": 9.5},
        "nullCount": {"id": 0, "day": 0, "price": (rows or 0) // 10},
    }  # fmt: skip
    one = {"path": f"f{number}.parquet", "partitionValues": {"part": part}, "size": size, "dataChange": True}
    if rows is not None:
        one["stats"] = json.dumps(stats)
    if hidden:
        one["deletionVector"] = {"storageType": "u", "pathOrInlineDv": "x", "sizeInBytes": 9, "cardinality": hidden}
    return one


def commit(table: Path, version: int, *actions: dict[str, Any]) -> None:
    (table / "_delta_log").mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(action) + "\n" for action in actions)
    (table / "_delta_log" / f"{version:020}.json").write_text(lines)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    commit(tmp_path, 0, {"protocol": {}}, {"add": add(0, 50)}, {"add": add(1, 60)})
    commit(tmp_path, 1, {"remove": {"path": "f0.parquet"}}, {"add": add(2, 70, part="2")})
    commit(tmp_path, 2, {"add": add(3, 80, part=None, hidden=30)})
    return tmp_path


def frame(spark: SparkSession, stand_ins: Any, table: Path, version: int) -> DataFrame:
    from pyspark.sql import DataFrame

    return DataFrame(stand_ins.delta(spark._jsparkSession, str(table), version, SCHEMA, "part INT"), spark)


def test_rows_are_those_of_the_version(spark: SparkSession, stand_ins: Any, table: Path) -> None:
    rows = [shown(frame(spark, stand_ins, table, version), store="off")["rows"] for version in range(3)]
    # The last file has 80 rows less 30 that a deletion vector hides.
    assert rows == [50 + 60, 60 + 70, 60 + 70 + 50]


def test_columns_of_a_version(spark: SparkSession, stand_ins: Any, table: Path, tmp_path: Path) -> None:
    from pyjoinopt.bridge.gateway import Py4jGateway
    from pyjoinopt.statistics.leaves import LeafStatistics

    df = frame(spark, stand_ins, table, 2)
    with Py4jGateway(bridge_for(df), df._jdf) as gateway:
        ((relation, known),) = LeafStatistics(gateway.statistics, gateway.export.nodes, "footers").known()
    columns = known.columns
    assert (known.source, known.exact) == ("delta log", True)
    assert (columns["id"].min, columns["id"].max) == (100, 379)
    assert (columns["day"].min, columns["day"].max) == (18262, 18292)
    assert (columns["price"].min, columns["price"].max, columns["price"].nulls) == (0.5, 9.5, 6 + 7 + 8)
    assert (columns["part"].ndv, columns["part"].min, columns["part"].max, columns["part"].nulls) == (2, 1, 2, None)
    assert relation.files is not None and relation.files.count == 3


def test_files_without_statistics_are_like_the_others(spark: SparkSession, stand_ins: Any, table: Path) -> None:
    commit(table, 3, {"add": add(4, None, size=3000)})
    row = shown(frame(spark, stand_ins, table, 3), store="off")
    # 180 rows in 3,000 bytes; as many in the 3,000 bytes of which the log tells nothing.
    assert (row["rows"], row["exact"]) == (360, False)


def test_a_checkpoint(spark: SparkSession, stand_ins: Any, table: Path) -> None:
    files = [add(1, 60), add(2, 70, part="2")]
    schema = (
        "add struct<path: string, partitionValues: map<string, string>, size: bigint, stats: string, "
        "deletionVector: struct<cardinality: bigint>>, txn struct<appId: string>"
    )
    rows = [((f["path"], f["partitionValues"], f["size"], f["stats"], None), None) for f in files] + [(None, ("x",))]
    spark.createDataFrame(rows, schema).coalesce(1).write.parquet(str(table / "checkpoint"))
    (part,) = (table / "checkpoint").glob("*.parquet")
    part.rename(table / "_delta_log" / f"{1:020}.checkpoint.parquet")
    for version in range(2):
        (table / "_delta_log" / f"{version:020}.json").unlink()
    assert shown(frame(spark, stand_ins, table, 2), store="off")["rows"] == 60 + 70 + 50
    assert shown(frame(spark, stand_ins, table, 1), store="off")["rows"] == 60 + 70


@pytest.mark.parametrize("damage", ["missing", "garbled", "gone"])
def test_a_log_that_cannot_be_understood(spark: SparkSession, stand_ins: Any, table: Path, damage: str) -> None:
    log = table / "_delta_log"
    if damage == "missing":
        (log / f"{1:020}.json").unlink()
    elif damage == "garbled":
        (log / f"{1:020}.json").write_text("{")
    else:
        for file in log.iterdir():
            file.unlink()
    row = shown(frame(spark, stand_ins, table, 2), store="off")
    assert row["source"] in ("size", "reported", "default") and row["rows"] > 0


def test_a_version_is_remembered(spark: SparkSession, stand_ins: Any, table: Path, tmp_path: Path) -> None:
    store = str(tmp_path / "store.sqlite")
    for version, rows in ((1, 130), (2, 180), (1, 130)):
        assert shown(frame(spark, stand_ins, table, version), store=store)["rows"] == rows
