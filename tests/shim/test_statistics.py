"""Statistics compared with the data: row counts, bounds, numbers of NULLs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.shim.support import Shim, find, leaf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytest.importorskip("pyspark")

ROWS = 1000
COLUMNS = (
    "cast(id % 100 as tinyint) as tiny",
    "cast(id - 500 as int) as i",
    "if(id % 10 = 0, null, id * 1000000000000) as l",
    "cast(id / 7 as float) as f",
    "if(id % 3 = 0, null, id / 7.0D) as d",
    "cast(id / 8 as decimal(9, 3)) as small",
    "cast(id as decimal(18, 2)) as middle",
    "cast(id * -1 as decimal(38, 4)) as large",
    "date_add(date'1969-12-30', cast(id as int)) as day",
    "timestamp_micros(id * 1000001 - 7000000) as at",
    "cast(timestamp_micros(id * 1000003) as timestamp_ntz) as local",
    "id % 2 = 0 as flag",
    "concat('s', id) as text",
    "cast(null as int) as nothing",
    "array(id) as list",
)


def _table(spark: SparkSession, rows: int = ROWS) -> DataFrame:
    return spark.range(rows).selectExpr(*COLUMNS)


def _leaf_facts(shim: Shim, df: DataFrame, **request: Any) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The export of the only leaf, and its columns by name."""
    export = shim.export(df)
    number = leaf(export)
    reported = shim.statistics(export, nodes=[number], **request)["nodes"][str(number)]
    names = {str(bit): row[2] for bit, row in enumerate(export["attributes"])}
    return reported, {names[bit]: facts for bit, facts in reported.get("columns", {}).items()}


def _truth(df: DataFrame, column: str) -> tuple[Any, Any, int]:
    """Minimum and maximum as the shim exports them, and the number of NULLs."""
    from pyspark.sql import functions as f

    kind = dict(df.dtypes)[column]
    value = f.col(column)
    if kind == "date":
        value = f.datediff(value, f.lit("1970-01-01").cast("date"))
    elif kind.startswith("timestamp"):
        value = f.unix_micros(value.cast("timestamp"))
    elif kind.startswith(("decimal", "float")):
        value = value.cast("double")
    row = df.agg(f.min(value), f.max(value), f.count(f.when(f.col(column).isNull(), 1))).first()
    assert row is not None
    return row[0], row[1], row[2]


@pytest.mark.parametrize("format", ["parquet", "orc"])
def test_footers_agree_with_the_data(spark: SparkSession, shim: Shim, tmp_path: Path, format: str) -> None:
    path = str(tmp_path / "t")
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    try:
        _table(spark).repartition(3).write.format(format).save(path)
    finally:
        spark.conf.unset("spark.sql.parquet.outputTimestampType")
    df = spark.read.format(format).load(path)
    reported, columns = _leaf_facts(shim, df)
    assert (reported["source"], reported["rows"], reported["exact"]) == ("footers", ROWS, True)
    assert reported["bytes"] == sum(f.stat().st_size for f in Path(path).glob(f"*.{format}"))
    bounded = {"tiny", "i", "l", "f", "d", "small", "middle", "large", "day", "flag"}
    bounded |= {"at", "local"} if format == "parquet" else set()
    for name in bounded:
        low, high, nulls = _truth(df, name)
        assert columns[name]["min"] == pytest.approx(low), name
        assert columns[name]["max"] == pytest.approx(high), name
        assert columns[name]["nulls"] == nulls, name
    length = math.ceil(sum(len(row.text) for row in df.select("text").collect()) / ROWS) if format == "parquet" else 20
    assert columns["text"] == {"nulls": 0.0, "avgLen": length}, "ORC: never less than Spark assumes"
    assert columns["nothing"] == {"nulls": float(ROWS)}


def test_some_footers_stand_for_all(spark: SparkSession, shim: Shim, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    _table(spark, 2000).repartition(8).write.parquet(path)
    reported, columns = _leaf_facts(shim, spark.read.parquet(path), maxFiles=2)
    assert not reported["exact"] and reported["source"] == "footers"
    assert reported["rows"] == pytest.approx(2000, rel=0.1)
    assert columns["d"]["nulls"] == pytest.approx(667, rel=0.3)


def test_out_of_time_is_size_only(spark: SparkSession, shim: Shim, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    _table(spark).write.parquet(path)
    reported, columns = _leaf_facts(shim, spark.read.parquet(path), maxFiles=0)
    assert (reported["source"], reported["rows"], columns) == ("size", None, {})
    assert reported["bytes"] > 0


def test_an_empty_table_is_counted(spark: SparkSession, shim: Shim, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    _table(spark).where("i > 100000").write.parquet(path)
    reported, _ = _leaf_facts(shim, spark.read.parquet(path))
    assert (reported["rows"], reported["exact"]) == (0, True)


def test_columns_of_a_partitioned_table(spark: SparkSession, shim: Shim, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    spark.range(100).selectExpr("id", "id % 4 as p").write.partitionBy("p").parquet(path)
    reported, columns = _leaf_facts(shim, spark.read.parquet(path))
    assert reported["rows"] == 100 and reported["exact"]
    assert (columns["id"]["min"], columns["id"]["max"]) == (0, 99)
    assert columns["p"] == {"ndv": 4, "min": 0, "max": 3, "nulls": 0}


def test_a_changed_file_is_read_again(spark: SparkSession, shim: Shim, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    for rows in (10, 25):
        spark.range(rows).coalesce(1).write.mode("overwrite").parquet(path)
        assert _leaf_facts(shim, spark.read.parquet(path))[0]["rows"] == rows


def test_a_broken_file_spoils_only_itself(spark: SparkSession, shim: Shim, tmp_path: Path) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    spark.range(10).coalesce(1).write.parquet(str(good))
    df = spark.read.parquet(str(good))
    spark.range(10).coalesce(1).write.parquet(str(bad))
    broken = spark.read.parquet(str(bad))
    for file in bad.glob("*.parquet"):
        file.write_bytes(b"PAR1 this is no footer PAR1")
    export = shim.export(df.union(broken))
    leaves = [number for number, node in enumerate(export["nodes"]) if not node["k"]]
    reported = shim.statistics(export, nodes=leaves)["nodes"]
    assert sorted(str(facts["rows"]) for facts in reported.values()) == ["10.0", "None"]


@pytest.mark.parametrize("format", ["csv", "json"])
def test_text_files_have_a_size(spark: SparkSession, shim: Shim, tmp_path: Path, format: str) -> None:
    path = str(tmp_path / "t")
    spark.range(50).write.format(format).save(path)
    reported, columns = _leaf_facts(shim, spark.read.schema("id long").format(format).load(path))
    assert (reported["source"], reported["rows"], columns) == ("size", None, {})
    assert reported["bytes"] > 0


@pytest.fixture
def analyzed(spark: SparkSession) -> Iterator[str]:
    spark.sql("drop table if exists shim_analyzed")
    _table(spark).drop("list", "nothing", "local").write.format("parquet").saveAsTable("shim_analyzed")
    spark.sql("analyze table shim_analyzed compute statistics for all columns")
    yield "shim_analyzed"
    spark.sql("drop table shim_analyzed")


def test_the_catalog_comes_first(spark: SparkSession, shim: Shim, analyzed: str) -> None:
    reported, columns = _leaf_facts(shim, spark.table(analyzed))
    assert (reported["source"], reported["rows"]) == ("catalog", ROWS)
    assert columns["i"]["ndv"] == pytest.approx(ROWS, rel=0.1)
    assert (columns["i"]["min"], columns["i"]["max"], columns["i"]["nulls"]) == (-500, 499, 0)
    assert columns["text"]["avgLen"] == 4 and columns["text"]["maxLen"] == 4
    assert columns["day"]["min"] == -2
    reported, columns = _leaf_facts(shim, spark.table(analyzed), source="footers")
    assert reported["source"] == "footers" and "ndv" not in columns["i"]


def test_a_partitioned_catalog_table(spark: SparkSession, shim: Shim) -> None:
    spark.sql("drop table if exists shim_parts")
    spark.range(100).selectExpr("id", "id % 4 as p").write.partitionBy("p").format("parquet").saveAsTable("shim_parts")
    try:
        reported, columns = _leaf_facts(shim, spark.table("shim_parts"))
        assert (reported["source"], reported["rows"], reported["exact"]) == ("footers", 100, True)
        assert columns["id"]["max"] == 99
    finally:
        spark.sql("drop table shim_parts")


def test_rows_inside_the_plan_are_counted(spark: SparkSession, shim: Shim) -> None:
    reported, columns = _leaf_facts(shim, spark.sql("select * from values (1, 'a'), (3, null), (3, 'b') as t(n, s)"))
    assert (reported["source"], reported["rows"], reported["exact"]) == ("local", 3, True)
    assert columns["n"] == {"ndv": 2, "min": 1, "max": 3, "nulls": 0, "most": 2}
    assert columns["s"] == {"ndv": 2, "nulls": 1, "most": 1}
    reported, columns = _leaf_facts(shim, spark.range(5, 25, 2))
    assert (reported["rows"], columns["id"]["min"], columns["id"]["max"]) == (10, 5, 23)


def test_cached_rows_are_counted_once_they_are_there(spark: SparkSession, shim: Shim) -> None:
    df = spark.range(40).where("id % 4 = 0").cache()
    try:
        export = shim.export(df)
        root = str(export["root"])
        assert shim.statistics(export, nodes=[export["root"]])["nodes"][root]["source"] != "memory"
        df.count()
        reported = shim.statistics(export, nodes=[export["root"]])["nodes"][root]
        assert (reported["source"], reported["rows"], reported["exact"]) == ("memory", 10, True)
    finally:
        df.unpersist()


def test_catalyst_estimates_a_plan(spark: SparkSession, shim: Shim, analyzed: str) -> None:
    df = spark.sql(f"select x.i from {analyzed} x join {analyzed} y on x.i = y.i where x.i < 0")
    export = shim.export(df)
    reported = shim.statistics(export, nodes=[find(export, "Join")], source="catalyst")
    assert reported["nodes"][str(find(export, "Join"))]["rows"] == pytest.approx(ROWS, rel=0.1)
    plain = df._jdf.queryExecution().optimizedPlan().stats()
    assert plain.rowCount().isEmpty(), "the session itself still estimates without the cost-based mode"


def test_one_node_does_not_spoil_the_others(spark: SparkSession, shim: Shim) -> None:
    export = shim.export(spark.range(3))
    reported = shim.statistics(export, nodes=[77, leaf(export)])["nodes"]
    assert "no node 77" in reported["77"]["error"]
    assert reported[str(leaf(export))]["rows"] == 3


def test_no_job_runs(spark: SparkSession, shim: Shim, tmp_path: Path, analyzed: str) -> None:
    path = str(tmp_path / "t")
    _table(spark).write.parquet(path)
    df = (
        spark.read.parquet(path).join(spark.table(analyzed), "i").join(spark.range(3).withColumnRenamed("id", "l"), "l")
    )
    tracker = spark.sparkContext.statusTracker()
    before = set(tracker.getJobIdsForGroup(None))
    export = shim.export(df)
    for source in ("auto", "footers", "catalog", "catalyst"):
        shim.statistics(export, nodes=list(range(len(export["nodes"]))), source=source)
    assert set(tracker.getJobIdsForGroup(None)) == before


DICTIONARIES = ("id % 7 as few", "concat('v', id % 300) as texts", "if(id % 2 = 0, null, id % 11) as some", "id as key")


def test_dictionaries_tell_how_many_values_there_are(spark: SparkSession, shim: Shim, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    spark.range(10_000).selectExpr(*DICTIONARIES).coalesce(1).write.parquet(path)
    _, columns = _leaf_facts(shim, spark.read.parquet(path))
    assert {name: facts.get("ndv") for name, facts in columns.items()} == {
        "few": 7, "texts": 300, "some": 11, "key": None
    }  # fmt: skip


def test_dictionaries_of_orc_files(spark: SparkSession, shim: Shim, tmp_path: Path) -> None:
    """Only columns of text have any, and none where nearly every row has a value of its own."""
    path = str(tmp_path / "t")
    columns = ("concat('v', id % 300) as texts", "if(id % 2 = 0, null, concat('s', id % 11)) as some", "id % 7 as few")
    rows = spark.range(10_000).selectExpr(*columns, "sha2(string(id), 256) as key", "cast(null as string) as nothing")
    rows.coalesce(1).write.option("compression", "zlib").orc(path)
    _, columns_told = _leaf_facts(shim, spark.read.orc(path))
    assert {name: facts.get("ndv") for name, facts in columns_told.items()} == {
        "texts": 300, "some": 11, "few": None, "key": None, "nothing": None
    }  # fmt: skip


def test_values_of_several_files(spark: SparkSession, shim: Shim, tmp_path: Path) -> None:
    """Files that come in the order of their ranges have values of their own; of others some are taken for the same."""
    path = str(tmp_path / "t")
    rows = spark.range(10_000).selectExpr("id div 100 as step", "id % 7 as few", "concat('v', id div 100) as text")
    rows.repartitionByRange(4, "step").write.parquet(path)
    _, columns = _leaf_facts(shim, spark.read.parquet(path))
    assert 25 < columns["step"]["ndv"] <= 100
    assert 7 <= columns["few"]["ndv"] <= 14
    assert 25 < columns["text"]["ndv"] <= 100


def test_a_dictionary_that_was_given_up_tells_nothing(spark: SparkSession, shim: Shim, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    rows = spark.range(200_000).selectExpr("if(id < 50000, id % 10, id) as mixed", "id % 10 as few").coalesce(1)
    rows.write.option("parquet.dictionary.page.size", 2000).parquet(path)
    _, columns = _leaf_facts(shim, spark.read.parquet(path))
    assert "ndv" not in columns["mixed"] and columns["few"]["ndv"] == 10
