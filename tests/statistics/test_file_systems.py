"""Files on a custom file system, and on storage that does not respond."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pyjoinopt

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytest.importorskip("pyspark")
SCHEMA = "id BIGINT, name STRING"


def three_times(df: DataFrame) -> DataFrame:
    """A query with a filter that needs a sample, over one table under three names."""
    df.createOrReplaceTempView("far")
    joined = "far a JOIN far b ON a.id = b.id JOIN far c ON b.id = c.id"
    return df.sparkSession.sql(f"SELECT a.id FROM {joined} WHERE a.name LIKE '%3'")


@pytest.mark.parametrize("format", ["parquet", "orc", "csv"])
def test_a_file_system_that_only_the_options_of_the_reader_describe(
    spark: SparkSession, tmp_path: Path, format: str
) -> None:
    """Passes options like the keys of an object store: without them the file system is not found."""
    rows = spark.range(300).selectExpr("id", "'n' || (id % 10) AS name")
    rows.coalesce(1).write.format(format).save(str(tmp_path / "t"))
    link = {"fs.viewfs.mounttable.shop.link./data": tmp_path.as_uri(), "fs.viewfs.impl.disable.cache": "true"}
    reader = spark.newSession().read.schema(SCHEMA).format(format)
    with pytest.raises(Exception, match="viewfs|mount"):
        reader.load("viewfs://shop/data/t").count()
    query = three_times(reader.options(**link).load("viewfs://shop/data/t"))
    assert query.count() == 30
    (group,) = pyjoinopt.join_report(query, statistics="full", store="off", strict=True).groups
    a = next(relation for relation in group.relations if relation.name == "a")
    assert a.source == ("size / row width, sample" if format == "csv" else "footers, sample")
    assert a.rows == pytest.approx(30, rel=0.1)
    if format != "csv":
        assert group.estimated_rows[-1].bound == 30, "the key was read and proved"


@contextmanager
def silent(files: list[Path]) -> Iterator[None]:
    """Opening one of these files blocks, as on an unreachable server."""
    for file in files:
        file.unlink()
        os.mkfifo(file)
    try:
        yield
    finally:
        for _ in range(40):
            for file in files:
                try:
                    os.close(os.open(file, os.O_WRONLY | os.O_NONBLOCK))  # releases the blocked readers
                except OSError:
                    continue
            time.sleep(0.01)


@pytest.mark.parametrize("format", ["parquet", "orc"])
def test_footers_are_read_side_by_side(spark: SparkSession, tmp_path: Path, format: str) -> None:
    """Of six files that keep their readers waiting, each has one: read in turn, the first would be the only one."""
    spark.range(300).selectExpr("id", "'n' || id AS name").repartition(6).write.format(format).save(str(tmp_path / "t"))
    df = spark.newSession().read.schema(SCHEMA).format(format).load(str(tmp_path / "t"))
    query = three_times(df)
    files = sorted((tmp_path / "t").glob("part-*"))
    assert len(files) == 6
    options = {"statistics": "footers", "statistics_ms": 20_000, "store": "off", "strict": True}
    planning = threading.Thread(target=pyjoinopt.join_report, args=(query,), kwargs=options)
    held: dict[Path, int] = {}
    with silent(files):
        planning.start()
        until = time.monotonic() + 15
        while len(held) < len(files) and time.monotonic() < until:
            for file in set(files) - set(held):
                try:
                    held[file] = os.open(file, os.O_WRONLY | os.O_NONBLOCK)  # only if somebody reads
                except OSError:
                    continue
            time.sleep(0.01)
        for descriptor in held.values():
            os.close(descriptor)
    planning.join(20)
    assert len(held) == len(files)


@pytest.mark.parametrize("format", ["parquet", "orc", "csv"])
def test_storage_that_does_not_answer(spark: SparkSession, tmp_path: Path, format: str) -> None:
    spark.range(300).selectExpr("id", "'n' || id AS name").repartition(2).write.format(format).save(str(tmp_path / "t"))
    df = spark.newSession().read.schema(SCHEMA).format(format).load(str(tmp_path / "t"))
    query = three_times(df)  # the files are listed by now
    with silent(sorted((tmp_path / "t").glob("part-*"))):
        (group,) = pyjoinopt.join_report(query, statistics_ms=100, store="off", strict=True).groups
    assert {relation.source for relation in group.relations} == {"size"}
    assert all(relation.rows > 1 and relation.bound is None for relation in group.relations)
