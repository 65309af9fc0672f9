"""Tables with values on which predicates fail, and values that are equal but not identical.

Every column comes twice. In **dirty** tables it holds what some expression fails on: a zero to divide by, text that is
no number, an array too short, a number at the end of its type. In **clean** tables, where its name ends in `c`, it
does not. So a predicate that may fail, written over a clean column, runs as written, and fails as soon as a rule of
Spark's or a new order evaluates it on the rows of a dirty table.

Equal but not identical: 0.0 and -0.0 in DOUBLE, FLOAT, arrays and structs; `a` and `A` in a collated column; CHAR of
two widths; decimals of two scales; dates beside timestamps; INT beside BIGINT and DOUBLE. NaN is equal to itself here.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING

import duckdb

from tests.support.operators import ELEMENTS, SQL_TYPES, Dialect, sql_constant
from tests.support.querytree import Table, Type
from tests.support.sampledata import oracle_database

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAN = float("nan")
COLUMNS: tuple[tuple[str, Type], ...] = (
    ("id", "int"), ("k", "int"), ("j", "int"), ("w", "big"), ("s", "str"), ("z", "dbl"), ("f", "flt"),
    ("m", "dec"), ("n", "amt"), ("h", "chr"), ("g", "chw"), ("l", "lcs"), ("d", "date"), ("u", "ts"),
    ("a", "arr"), ("y", "adbl"), ("q", "rec"),
)  # fmt: skip
DIRTY = {"da": 26, "db": 18, "dd": 9, "de": 2}
CLEAN = {"ca": 24, "cb": 14, "cd": 6, "ce": 1}
#: Views of literals: Spark evaluates expressions over them during planning.
STORED_AS_LITERALS = ("dd",)
DATABASE = "hazards"
FIRST_DAY = date(2020, 1, 1)


def is_clean(name: str) -> bool:
    """Whether a column with this name belongs to a clean table."""
    return name.rpartition("_")[2].endswith("c")


def columns_of_table(name: str) -> tuple[tuple[str, Type], ...]:
    """Names and types of one table's columns."""
    return tuple((column + "c" * (name in CLEAN), kind) for column, kind in COLUMNS)


@dataclass(frozen=True)
class HazardTable:
    """One table and its rows."""

    name: str
    rows: tuple[tuple[object, ...], ...]

    @property
    def columns(self) -> tuple[tuple[str, Type], ...]:
        return columns_of_table(self.name)

    def values(self, dialect: Dialect = "spark") -> str:
        """The rows as literals."""
        kinds = [kind for _, kind in self.columns]
        rows = (", ".join(sql_constant(v, kind, dialect) for v, kind in zip(row, kinds)) for row in self.rows)
        return "VALUES " + ", ".join(f"({row})" for row in rows)

    def statements(self, collations: bool) -> list[str]:
        """The Spark expression that creates it."""
        if self.name in STORED_AS_LITERALS:
            casts = ", ".join(f"CAST({n} AS {_view_type(kind, collations)}) AS {n}" for n, kind in self.columns)
            names = ", ".join(name for name, _ in self.columns)
            return [f"CREATE OR REPLACE VIEW {self.name} AS SELECT {casts} FROM {self.values()} AS v({names})"]
        columns = ", ".join(f"{name} {spark_type(kind, collations)}" for name, kind in self.columns)
        return [
            f"CREATE TABLE {self.name} ({columns}) USING parquet",
            f"INSERT INTO {self.name} {self.values()}",
        ]


def spark_type(kind: Type, collations: bool) -> str:
    """The name of a type in Spark's DDL."""
    if kind in ELEMENTS:
        name = SQL_TYPES[ELEMENTS[kind]]
        return f"STRUCT<g: {name}>" if kind == "rec" else f"ARRAY<{name}>"
    special = {"chr": "CHAR(4)", "chw": "CHAR(6)", "lcs": "STRING COLLATE UTF8_LCASE" if collations else "STRING"}
    return special.get(kind, SQL_TYPES.get(kind, ""))


def _view_type(kind: Type, collations: bool) -> str:
    return "STRING" if kind in ("chr", "chw") else spark_type(kind, collations)


def hazard_tables(seed: int) -> tuple[HazardTable, ...]:
    """The tables of one seed."""
    rng = random.Random(f"hazards {seed}")
    counts = {**DIRTY, **CLEAN}
    return tuple(HazardTable(name, tuple(_row(rng, n, name in CLEAN) for n in range(count)))
                 for name, count in counts.items())  # fmt: skip


def _row(rng: random.Random, number: int, clean: bool) -> tuple[object, ...]:
    def some(values: list[object], dirty: list[object], nulls: float = 0.1) -> object:
        if rng.random() < nulls:
            return None
        return rng.choice(dirty) if not clean and rng.random() < 0.35 else rng.choice(values)

    ones: list[object] = [1.0, 1.0, 2.0, 2.5, 4.0]
    zeros: list[object] = [0.0, -0.0, -0.0, NAN]
    small: list[object] = [*range(1, 7)]
    day = FIRST_DAY + timedelta(days=rng.randrange(4))
    noon = datetime(day.year, day.month, day.day, rng.choice((0, 0, 12)))
    lengths: list[object] = [*range(3)]
    length = some([4, 5], lengths)
    dyadic = rng.choice([0.0, -0.0, NAN, 1.0])
    return (
        number + clean,
        some(small, [0, 0, 40]),
        some(small[:4], [0]),
        some(small, [0, 1 << 62, -(1 << 62)]),
        some([str(n) for n in small], ["none", "", "1x"]),
        some(ones, zeros),
        some(ones, zeros),
        some(["1.0", "2.0", "2.5", "4.0"], ["0.0"]),
        some(["1.00", "2.00", "2.50", "2.25"], ["0.00"]),
        rng.choice(("a", "ab", "b", None)),
        rng.choice(("a", "ab", "b", None)),
        rng.choice(("a", "A", "ab", "AB", "b", None)),
        some([day], [day]),
        noon,
        [rng.randrange(5) for _ in range(length)] if isinstance(length, int) else None,
        rng.choice((None, [dyadic], [dyadic, 1.0])),
        rng.choice((None, [dyadic], [dyadic])),
    )


def duckdb_hazards(tables: tuple[HazardTable, ...]) -> duckdb.DuckDBPyConnection:
    """The tables in DuckDB, whose text has neither padding nor collations here."""
    connection = oracle_database()
    for table in tables:
        names = ", ".join(name for name, _ in table.columns)
        connection.execute(f"CREATE TABLE {table.name} AS SELECT * FROM ({table.values('duckdb')}) AS v({names})")
    return connection


def create_hazards(spark: SparkSession, tables: tuple[HazardTable, ...], folder: str) -> None:
    """The tables in a separate database, for every session of the application that runs `USE hazards`."""
    spark.sql(f"DROP DATABASE IF EXISTS {DATABASE} CASCADE")
    spark.sql(f"CREATE DATABASE {DATABASE} LOCATION '{folder}'")
    spark.sql(f"USE {DATABASE}")
    for table in tables:
        for statement in table.statements(spark.version >= "4"):
            spark.sql(statement)


def tables_of_world() -> tuple[Table, ...]:
    """The tables as leaves of a query, without their rows."""
    return tuple(Table(name, "", columns_of_table(name)) for name in (*DIRTY, *CLEAN))
