"""Statistics of files: which files are read, estimates from their first lines, and faulty files."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.shim.support import Shim, leaf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytest.importorskip("pyspark")


def reported(shim: Shim, df: DataFrame, *sources: str, **request: Any) -> dict[str, Any]:
    """The export of the only leaf; columns by name."""
    export = shim.export(df)
    number = leaf(export)
    facts = shim.statistics(export, nodes=[number], sources=sources, identity=True, **request)["nodes"][str(number)]
    names = {str(bit): row[2] for bit, row in enumerate(export["attributes"])}
    return {**facts, "columns": {names[bit]: column for bit, column in facts.get("columns", {}).items()}}


def identity(shim: Shim, df: DataFrame) -> tuple[str, str]:
    files = reported(shim, df)["files"]
    return files["id"], files["schema"]


def parts(path: Path, format: str = "parquet") -> list[Path]:
    return sorted(path.glob(f"*.{format}"))


# -- which files -------------------------------------------------------------------------------------------------


def test_files_keep_their_identity_until_one_changes(spark: SparkSession, shim: Shim, tmp_path: Path) -> None:
    path = tmp_path / "t"
    spark.range(100).repartition(3).write.parquet(str(path))
    first = reported(shim, spark.read.parquet(str(path)))["files"]
    assert first["count"] == 3
    assert first["bytes"] == sum(f.stat().st_size for f in parts(path))
    assert first["newest"] == max(f.stat().st_mtime_ns // 1_000_000 for f in parts(path))
    seen = {first["id"]}
    assert identity(shim, spark.read.parquet(*map(str, reversed(parts(path)))))[0] == first["id"], "order is no matter"
    os.utime(parts(path)[0], (1, 1))
    seen.add(identity(shim, spark.read.parquet(str(path)))[0])
    shutil.copy(parts(path)[0], path / "another.parquet")
    seen.add(identity(shim, spark.read.parquet(str(path)))[0])
    parts(path)[-1].unlink()
    seen.add(identity(shim, spark.read.parquet(str(path)))[0])
    assert len(seen) == 4


def test_another_schema_or_option_is_another_thing(spark: SparkSession, shim: Shim, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    spark.range(10).write.csv(path)
    readers = [spark.read.schema(s) for s in ("id long", "id int", "k long")]
    seen = {identity(shim, reader.csv(path)) for reader in readers}
    seen.add(identity(shim, spark.read.schema("id long").csv(path, header=True)))
    assert len(seen) == 4 and len({files for files, _ in seen}) == 1


@pytest.mark.parametrize("format", ["parquet", "orc"])
def test_how_long_text_is(spark: SparkSession, shim: Shim, tmp_path: Path, format: str) -> None:
    """Parquet files of Spark 4 have the sum of all lengths. ORC has the size of long text only: repeated text is in a
    dictionary, so Spark's default assumption is kept."""
    columns = ["repeat(sha2(string(id), 256), 2) as long", "if(id % 2 = 0, 'even', 'odd') as short", "id"]
    spark.range(2000).selectExpr(*columns).coalesce(1).write.format(format).save(str(tmp_path / "t"))
    columns = reported(shim, spark.read.format(format).load(str(tmp_path / "t")), "footers")["columns"]
    assert columns["long"]["avgLen"] == pytest.approx(128, rel=0.05)
    assert columns["short"]["avgLen"] == (4 if format == "parquet" else 20)  # 3.5, rounded up
    assert "avgLen" not in columns["id"]


def test_no_identity_unless_it_is_asked_for(spark: SparkSession, shim: Shim, tmp_path: Path) -> None:
    spark.range(10).write.parquet(str(tmp_path / "t"))
    export = shim.export(spark.read.parquet(str(tmp_path / "t")))
    assert "files" not in shim.statistics(export, nodes=[leaf(export)], sources=[])["nodes"][str(leaf(export))]
    assert "files" not in reported(shim, spark.range(3))


@pytest.fixture
def analyzed(spark: SparkSession) -> Iterator[str]:
    spark.sql("drop table if exists outdated")
    spark.range(1000).repartition(2).write.format("parquet").saveAsTable("outdated")
    spark.sql("analyze table outdated compute statistics for all columns")
    yield "outdated"
    spark.sql("drop table outdated")


def test_catalog_counts_that_are_not_of_these_files(spark: SparkSession, shim: Shim, analyzed: str) -> None:
    fresh = reported(shim, spark.table(analyzed), "catalog")
    assert (fresh["source"], fresh["rows"], fresh.get("note")) == ("catalog", 1000, None)
    folder = Path(spark.table(analyzed).inputFiles()[0].removeprefix("file:")).parent
    spark.range(5).coalesce(1).write.mode("append").parquet(str(folder))
    spark.catalog.refreshTable(analyzed)
    assert reported(shim, spark.table(analyzed), "catalog")["note"].startswith("older than the files")


# -- text --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compression", ["none", "gzip", "bzip2"])
@pytest.mark.parametrize("format", ["csv", "json", "text"])
def test_rows_of_text_files(spark: SparkSession, shim: Shim, tmp_path: Path, format: str, compression: str) -> None:
    path = str(tmp_path / "t")
    rows = spark.range(20_000).selectExpr("concat('row ', id, repeat('x', cast(id % 7 as int))) as value")
    rows.repartition(2).write.format(format).option("compression", compression).save(path)
    facts = reported(shim, spark.read.schema("value string").format(format).load(path), "text")
    assert facts["source"] == "size / row width" and not facts["exact"]
    assert facts["rows"] == pytest.approx(20_000, rel=0.25)


def test_an_empty_file_says_nothing_of_the_others(spark: SparkSession, shim: Shim, tmp_path: Path) -> None:
    """Spark leaves them behind; a header is all that is in them."""
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "part-0.csv").write_text("a,b\n")
    (tmp_path / "t" / "part-1.csv").write_text("a,b\n" + "1,22222\n" * 500)
    (tmp_path / "t" / "part-2.csv").write_text("")
    facts = reported(shim, spark.read.schema("a int, b int").csv(str(tmp_path / "t"), header=True), "text")
    assert facts["rows"] == pytest.approx(500, rel=0.01)


def test_a_header_is_no_row(spark: SparkSession, shim: Shim, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a long name,b\n1,2\n3,4")
    facts = reported(shim, spark.read.schema("a int, b int").csv(str(tmp_path / "t.csv"), header=True), "text")
    assert facts["rows"] == 2


def test_only_some_kilobytes_are_read(spark: SparkSession, shim: Shim, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("1,22222,333333333\n" * 200_000)
    facts = reported(shim, spark.read.schema("a int, b int, c int").csv(str(tmp_path / "t.csv")), "text")
    assert facts["read"] <= 64 * 1024
    assert facts["rows"] == pytest.approx(200_000, rel=0.01)


@pytest.mark.parametrize("option", ["multiLine", "lineSep"])
def test_where_a_line_is_no_row(spark: SparkSession, shim: Shim, tmp_path: Path, option: str) -> None:
    (tmp_path / "t.json").write_text("[\n" + ",\n".join(['{\n"a":\n1\n}'] * 50) + "]")
    reader = spark.read.schema("a int").option(option, "true" if option == "multiLine" else ",")
    facts = reported(shim, reader.json(str(tmp_path / "t.json")), "text")
    assert (facts["rows"], facts["source"]) == (None, "size")


def test_one_endless_line(spark: SparkSession, shim: Shim, tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("x" * 1_000_000)
    facts = reported(shim, spark.read.text(str(tmp_path / "t.txt")), "text")
    assert (facts["rows"], facts["source"], facts["bytes"]) == (None, "size", 1_000_000)


# -- what may be wrong -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["parquet", "orc"])
@pytest.mark.parametrize("damage", ["cut short", "no footer", "endless footer", "gone"])
def test_one_broken_footer_of_three(
    spark: SparkSession, shim: Shim, tmp_path: Path, format: str, damage: str
) -> None:
    path = tmp_path / "t"
    spark.range(3000).repartition(3).write.format(format).save(str(path))
    df = spark.read.format(format).load(str(path))
    df.schema  # noqa: B018  (listed now, damaged later)
    victim = parts(path, format)[1]
    whole = victim.read_bytes()
    if damage == "gone":
        victim.unlink()
    elif damage == "cut short":
        victim.write_bytes(whole[: len(whole) // 2])
    elif damage == "no footer":
        victim.write_bytes(b"x" * len(whole))
    else:
        victim.write_bytes(whole[:-8] + (0x7FFFFFF0).to_bytes(4, "little") + whole[-4:])
    facts = reported(shim, df, "footers")
    assert facts["source"] == "footers" and not facts["exact"]
    assert facts["rows"] == pytest.approx(3000, rel=0.2)
    assert facts["note"].startswith("1 of 3 footers cannot be read") and victim.name in facts["note"]


def test_a_file_that_may_not_be_read(spark: SparkSession, shim: Shim, tmp_path: Path) -> None:
    """Not even root reads a link that leads in a circle."""
    path = tmp_path / "t"
    spark.range(2000).repartition(2).write.parquet(str(path))
    df = spark.read.parquet(str(path))
    df.schema  # noqa: B018
    victim = parts(path)[0]
    victim.unlink()
    victim.symlink_to(victim)
    facts = reported(shim, df, "footers")
    assert facts["rows"] == pytest.approx(2000, rel=0.2) and "1 of 2 footers" in facts["note"]


def test_an_all_null_column(spark: SparkSession, shim: Shim, tmp_path: Path) -> None:
    spark.range(50).selectExpr("id", "cast(null as int) as n").write.parquet(str(tmp_path / "t"))
    facts = reported(shim, spark.read.parquet(str(tmp_path / "t")), "footers")
    assert facts["columns"]["n"] == {"nulls": 50} and facts["rows"] == 50


def test_no_files_at_all(spark: SparkSession, shim: Shim, tmp_path: Path) -> None:
    for format, source in (("parquet", "footers"), ("csv", "text")):
        (tmp_path / format).mkdir()
        facts = reported(shim, spark.read.schema("a int").format(format).load(str(tmp_path / format)), source)
        assert (facts["rows"], facts["exact"], facts["files"]["count"]) == (0, True, 0)


def test_partition_columns_are_in_the_paths(spark: SparkSession, shim: Shim, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    rows = spark.range(100).selectExpr("id", "id % 4 as p", "if(id % 3 = 0, null, concat('v', id % 3)) as s")
    rows.write.partitionBy("p", "s").parquet(path)
    columns = reported(shim, spark.read.parquet(path), "footers")["columns"]
    assert columns["p"] == {"ndv": 4, "min": 0, "max": 3, "nulls": 0}
    assert columns["s"] == {"ndv": 2}


def test_a_wide_table(spark: SparkSession, shim: Shim, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    spark.range(10).selectExpr("id", *[f"id + {i} as c{i}" for i in range(1999)]).coalesce(1).write.parquet(path)
    df = spark.read.parquet(path)
    export = shim.export(df)
    number = leaf(export)
    names = [row[2] for row in export["attributes"]]
    wanted = [names.index("id"), names.index("c1998")]
    started = time.monotonic()
    facts = reported(shim, df, "footers", columns={str(number): wanted})
    assert {name: column["max"] for name, column in facts["columns"].items()} == {"id": 9, "c1998": 2007}
    assert time.monotonic() - started < 5


def test_a_table_of_many_files(spark: SparkSession, shim: Shim, tmp_path: Path) -> None:
    path = tmp_path / "t"
    spark.range(1000).coalesce(1).write.parquet(str(path))
    one = parts(path)[0]
    for i in range(3000):
        os.link(one, path / f"part-x{i}.parquet")
    df = spark.read.parquet(str(path))
    df.schema  # noqa: B018
    started = time.monotonic()
    facts = reported(shim, df, "footers")
    assert time.monotonic() - started < 4
    assert facts["files"]["count"] == 3001 and not facts["exact"]
    assert facts["rows"] == pytest.approx(3_001_000, rel=0.01)
    assert facts["read"] <= 64 * one.stat().st_size


def test_bounds_on_bytes_and_time(spark: SparkSession, shim: Shim, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    spark.range(1000).repartition(32).write.parquet(path)
    facts = reported(shim, spark.read.parquet(path), "footers", maxBytes=2000)
    assert facts["source"] == "footers" and "came too late" in facts["note"]
    assert facts["rows"] == pytest.approx(1000, rel=0.3)
    for request in ({"deadlineMs": 0}, {"totalMs": 0}):
        path = str(tmp_path / next(iter(request)))
        spark.range(1000).repartition(2).write.parquet(path)
        facts = reported(shim, spark.read.parquet(path), "footers", **request)
        assert (facts["rows"], facts["source"]) == (None, "size") and facts["bytes"] > 0
