"""Small tables full of NULLs and repetitions, and the checks that both rules are tested with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from tests.support import shop
from tests.support.compare import assert_can_be_combined, assert_same_rows, assert_same_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

_ROWS = """SELECT CASE WHEN i % 5 <> 0 THEN (i % 7)::INT END AS k, CASE WHEN i % 9 <> 0 THEN (i % 4)::INT END AS x,
    ((i * 3) % 11 - 2)::INT AS y, ['a', 'a!', 'a%', 'ab', 'a!b', 'b%', NULL, '10'][i % 8 + 1] AS s,
    [1.5, -0.0, 0.0, 'NaN'::DOUBLE, NULL, 2.25][i % 6 + 1]::DOUBLE AS f FROM range({}) r(i)"""
#: `t`, `u` and `empty` have one schema, and are different tables.
TABLES = {
    "t": _ROWS.format(60),
    "u": _ROWS.format(30),
    "empty": _ROWS.format(0),
    "d": """SELECT * FROM (VALUES (0, 'n0', 0), (1, 'n1', 1), (2, 'n2', 0), (3, 'n0', 1), (4, 'n1', 0), (5, 'n2', 1),
        (NULL, 'n9', 1), (2, 'n2', 0)) v(k, n, z)""",
}


def write(folder: Path) -> None:
    """One Parquet file a table."""
    with duckdb.connect() as connection:
        for name, text in TABLES.items():
            connection.execute(f"COPY ({text}) TO '{(folder / name).as_posix()}.parquet'")


def register(session: SparkSession, folder: Path) -> None:
    """One temporary view a table."""
    for name in TABLES:
        session.read.parquet(str(folder / f"{name}.parquet")).createOrReplaceTempView(name)


def checked(df: DataFrame) -> tuple[DataFrame, list[str]]:
    """The optimised frame, its rows and schema compared with plain Spark's, and the avoided joins of its report."""
    fast, report = shop.optimised(df)
    assert_same_schema(df, fast)
    assert_same_rows(df, fast, label=("plain Spark", "optimised"))
    assert_can_be_combined(df, fast)
    return fast, report.spared_joins


def relations(df: DataFrame) -> int:
    """How many tables the optimised plan reads; one that is read twice counts twice."""
    return str(df._jdf.queryExecution().optimizedPlan().toString()).count("Relation [")


def semi_joins(df: DataFrame) -> int:
    """How many semi joins the optimised plan has, those included that are pinned in their order."""
    return sum("LeftSemi" in line or "ExistenceJoin" in line for line in shop.joined_tables(df))


def outcome(df: DataFrame) -> list[Row] | str:
    """The rows in some fixed order, or a mark that the query failed."""
    try:
        return sorted(df.collect(), key=repr)
    except Exception as error:
        assert "ZERO" in str(error) or "CAST_INVALID" in str(error), error
        return "failed"


@contextmanager
def setting(session: SparkSession, key: str, value: str) -> Iterator[None]:
    """Changes a setting temporarily."""
    before = session.conf.get(key)
    session.conf.set(key, value)
    try:
        yield
    finally:
        session.conf.set(key, before)
