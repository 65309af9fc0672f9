"""Small tables for random queries: many NULLs, many duplicates, a key that repeats and one that does not."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from tests.support.operators import SQL_TYPES, sql_constant
from tests.support.querytree import Type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The last one is empty: every join type treats this differently.
ROW_COUNTS = {"a": 30, "b": 24, "c": 18, "d": 12, "e": 9, "f": 5, "g": 20, "h": 0}
STORED_AS_LITERALS = ("d", "f", "h")
COLUMNS: tuple[tuple[str, Type], ...] = (
    ("id", "int"),
    ("k", "int"),
    ("j", "int"),
    ("v", "int"),
    ("s", "str"),
    ("x", "dbl"),
    ("t", "date"),
)
WORDS = ("", "a", "b", "ab", "ba", "abc", "B", "zz")
FIRST_DAY = date(2020, 1, 1)


@dataclass(frozen=True)
class SampleTable:
    """One table: `rows` hold a value for each of `COLUMNS`."""

    name: str
    rows: tuple[tuple[object, ...], ...]

    def values_sql(self) -> str:
        """The table as a SELECT over literals, for Spark and DuckDB."""
        names = ", ".join(name for name, _ in COLUMNS)
        if not self.rows:
            empty = ", ".join(f"CAST(NULL AS {SQL_TYPES[kind]}) AS {name}" for name, kind in COLUMNS)
            return f"SELECT {empty} WHERE FALSE"
        rows = (", ".join(sql_constant(value, kind) for value, (_, kind) in zip(row, COLUMNS)) for row in self.rows)
        return f"SELECT * FROM (VALUES {', '.join(f'({row})' for row in rows)}) AS {self.name}_rows({names})"


def sample_tables(seed: int) -> tuple[SampleTable, ...]:
    """The tables of one seed."""
    rng = random.Random(f"tables {seed}")
    return tuple(SampleTable(name, _rows(rng, count)) for name, count in ROW_COUNTS.items())


def _rows(rng: random.Random, count: int) -> tuple[tuple[object, ...], ...]:
    def maybe(value: object, nulls: float = 0.2) -> object:
        return None if rng.random() < nulls else value

    rows = [
        (
            number,
            maybe(rng.randrange(14)),
            maybe(rng.randrange(-2, 7), 0.3),
            maybe(rng.randrange(-9, 30)),
            maybe(rng.choice(WORDS), 0.15),
            maybe(rng.randrange(-8, 20) / 4),
            maybe(FIRST_DAY + timedelta(days=150 * rng.randrange(8))),
        )
        for number in range(count)
    ]
    # Whole rows that occur twice show a join that loses or adds copies.
    return tuple(rows[number - 1] if number % 7 == 5 else row for number, row in enumerate(rows))


def oracle_database() -> duckdb.DuckDBPyConnection:
    """An in-memory DuckDB that answers random queries.

    DuckDB 1.5 pushes the filter that a hash join derives from its build side below a LIMIT of its probe side with an
    ORDER BY. Then the LIMIT returns other rows, so that optimizer is off.
    """
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.execute("SET disabled_optimizers = 'join_filter_pushdown'")
    return connection


def duckdb_database(tables: tuple[SampleTable, ...]) -> duckdb.DuckDBPyConnection:
    """The tables in an in-memory DuckDB."""
    connection = oracle_database()
    for table in tables:
        connection.execute(f"CREATE TABLE {table.name} AS {table.values_sql()}")
    return connection


def write_parquet(tables: tuple[SampleTable, ...], folder: Path) -> None:
    """One Parquet file for each table that `register` does not keep as literals."""
    with duckdb_database(tables) as connection:
        for table in tables:
            if table.name not in STORED_AS_LITERALS:
                connection.execute(f"COPY {table.name} TO '{(folder / table.name).as_posix()}.parquet'")


def register(spark: SparkSession, tables: tuple[SampleTable, ...], folder: Path) -> None:
    """Temporary views over the Parquet files, and over literals for the rest."""
    for table in tables:
        if table.name in STORED_AS_LITERALS:
            spark.sql(table.values_sql()).createOrReplaceTempView(table.name)
        else:
            spark.read.parquet(str(folder / f"{table.name}.parquet")).createOrReplaceTempView(table.name)
