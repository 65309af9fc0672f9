"""A session over some small tables in files, and a store of its own for each test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def session_over(spark: SparkSession, folder: Path, tables: Mapping[str, str]) -> SparkSession:
    """A session of the same application with the results of queries as Parquet files and temporary views."""
    session = spark.newSession()
    for name, text in tables.items():
        session.sql(text).coalesce(1).write.parquet(str(folder / name))
        session.read.parquet(str(folder / name)).createOrReplaceTempView(name)
    return session


def own_store_of(session: SparkSession, folder: Path) -> Iterator[str]:
    """The path of a store that this session uses, for the body of a fixture."""
    path = str(folder / "store.sqlite")
    session.conf.set("spark.pyjoinopt.store", path)
    yield path
    session.conf.unset("spark.pyjoinopt.store")
