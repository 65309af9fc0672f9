"""TPC-H and TPC-DS for tests: data as Parquet, queries in Spark's SQL.

DuckDB's two extensions contain the generators and the query texts. They are ordinary Python packages, so nothing is
downloaded here: the extension file is loaded by its path inside the package. Large TPC-H tables come from tpchgen-cli,
which writes them in pieces. The data is written once to a cache folder; a lock keeps two test runs from writing at the
same time, and a marker file shows that a folder is complete.

The queries come out in DuckDB's dialect. `REPLACEMENTS` lists every place where Spark reads them differently.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sysconfig
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
from filelock import FileLock
from platformdirs import user_cache_dir

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCALE = 0.01
GENERATORS = {"tpch": "dbgen", "tpcds": "dsdgen"}
#: DuckDB's generator of TPC-H builds the tables in memory, 1.7 GB for each scale factor.
LARGEST_IN_MEMORY = 3
#: Larger tables of TPC-DS, 1.5 GB for each scale factor, are built in a file instead, with as much memory beside it.
MEMORY_BESIDE_FILE = "5GB"
#: TPC-H queries in which some join group is reordered at that scale, on every version of Spark.
REORDERED = frozenset({2, 5, 7, 9, 10, 11, 21})


@dataclass(frozen=True)
class Replacement:
    """A pattern in DuckDB's query texts, what Spark reads instead, and why."""

    pattern: str
    new: str
    reason: str


REPLACEMENTS = (
    Replacement(r'"([^"]+)"', r"`\1`", "Spark takes double quotes for a string; names with blanks go in backticks"),
)


def cache_folder() -> Path:
    """Where generated data lives: `PYJOINOPT_TEST_DATA`, or the user's cache folder."""
    chosen = os.environ.get("PYJOINOPT_TEST_DATA")
    return Path(chosen) if chosen else Path(user_cache_dir("pyjoinopt")) / "test-data"


def duckdb_with(benchmark: str, file: Path | None = None) -> duckdb.DuckDBPyConnection:
    """A DuckDB in memory, or in a file, with the generator and the queries of one benchmark loaded."""
    package = import_module(f"duckdb_extension_{benchmark}")
    extension = next(Path(str(package.__file__)).parent.rglob("*.duckdb_extension"))
    limit = {"memory_limit": MEMORY_BESIDE_FILE} if file is not None else {}
    connection = duckdb.connect(str(file or ":memory:"), config=limit)
    connection.execute(f"LOAD '{extension.as_posix()}'")
    return connection


def parquet_folder(benchmark: str, scale: float = SCALE) -> Path:
    """The folder with a Parquet file, or a folder of such files, per table; generated on the first call."""
    folder = cache_folder() / f"{benchmark}-sf{scale:g}-duckdb{duckdb.__version__}"
    marker = folder / "_COMPLETE"
    if marker.exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not marker.exists():
            shutil.rmtree(folder, ignore_errors=True)
            _generate(benchmark, scale, folder)
            marker.touch()
    return folder


def _generate(benchmark: str, scale: float, folder: Path) -> None:
    folder.mkdir()
    if benchmark == "tpch" and scale > LARGEST_IN_MEMORY:
        _generate_in_pieces(scale, folder)
        return
    file = folder / "generating.duckdb" if scale > LARGEST_IN_MEMORY else None
    with duckdb_with(benchmark, file) as connection:
        connection.execute(f"CALL {GENERATORS[benchmark]}(sf={scale:g})")
        for (table,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall():
            connection.execute(f"COPY {table} TO '{(folder / table).as_posix()}.parquet' (FORMAT parquet)")
    if file is not None:
        file.unlink()


def _generate_in_pieces(scale: float, folder: Path) -> None:
    """Large tables of several files, like those of Spark, each in a folder that is named like a file."""
    generator = [Path(sysconfig.get_path("scripts")) / "tpchgen-cli", "parquet", "-s", f"{scale:g}", "-o", folder]
    subprocess.run([*generator, "--tables", "nation,region"], check=True, capture_output=True)
    for table in ("part", "supplier", "partsupp", "customer", "orders", "lineitem"):
        pieces = ["--tables", table, "--parts", f"{round(scale)}"]
        subprocess.run([*generator, *pieces], check=True, capture_output=True)
        (folder / table).rename(folder / f"{table}.parquet")


def register(spark: SparkSession, benchmark: str, scale: float = SCALE) -> None:
    """Register every table of a benchmark as a temporary view over its Parquet file."""
    for file in sorted(parquet_folder(benchmark, scale).glob("*.parquet")):
        spark.read.parquet(str(file)).createOrReplaceTempView(file.stem)


@cache
def duckdb_queries(benchmark: str) -> dict[int, str]:
    """The query texts as DuckDB's extension has them, by number."""
    with duckdb_with(benchmark) as connection:
        rows = connection.execute(f"SELECT query_nr, query FROM {benchmark}_queries()").fetchall()
    return {number: text.strip().rstrip(";") for number, text in rows}


def spark_queries(benchmark: str) -> dict[int, str]:
    """The query texts as Spark reads them, by number."""
    queries = duckdb_queries(benchmark)
    for change in REPLACEMENTS:
        queries = {number: re.sub(change.pattern, change.new, text) for number, text in queries.items()}
    return queries


def duckdb_tables(benchmark: str, scale: float = SCALE) -> duckdb.DuckDBPyConnection:
    """An in-memory DuckDB with views over the same Parquet files that Spark reads."""
    connection = duckdb.connect()
    for file in sorted(parquet_folder(benchmark, scale).glob("*.parquet")):
        connection.execute(f"CREATE VIEW {file.stem} AS FROM read_parquet('{file.as_posix()}')")
    return connection
