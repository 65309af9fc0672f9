"""Workloads to grade estimates on: tables in Parquet files, and queries over them.

A table is a file `name.parquet`, or a folder `name` or `name.parquet` of part files, which may be partitioned
(`name/year=2013/...`). A query is a file `name.sql` with one SELECT statement in Spark's SQL.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks import flights
from tests.support import tpc


class WorkloadError(ValueError):
    """A workload that cannot be graded; the message says what to change."""


@dataclass(frozen=True)
class Table:
    """One table of Parquet files.

    Attributes:
        path: the file or the folder.
        files: all data files.
        partitioned: whether the names of folders contain the values of columns.
    """

    path: Path
    files: tuple[Path, ...]
    partitioned: bool = False


@dataclass(frozen=True)
class Workload:
    """Tables and queries.

    Attributes:
        name: short; part of file and database names.
        tables: by name in lower case.
        queries: texts by name.
        places: where the tables and the queries are, for messages.
    """

    name: str
    tables: Mapping[str, Table]
    queries: Mapping[str, str]
    places: tuple[str, str]

    def only(self, names: Iterable[str]) -> Workload:
        """The same tables with some of the queries.

        Raises:
            WorkloadError: there is no query of such a name.
        """
        wanted = list(names)
        unknown = [name for name in wanted if name not in self.queries]
        if unknown:
            raise WorkloadError(f"{self.places[1]} has no query {_listed(unknown)}; it has {_listed(self.queries)}")
        return replace(self, queries={name: text for name, text in self.queries.items() if name in wanted})

    def files(self) -> dict[str, tuple[Path, ...]]:
        """The data files of tables that consist of nothing else."""
        return {name: table.files for name, table in self.tables.items() if not table.partitioned}

    def fingerprint(self) -> str:
        """A hash of the names, sizes and times of the data files."""
        found = hashlib.blake2b(digest_size=8)
        for name, table in sorted(self.tables.items()):
            for file in table.files:
                about = file.stat()
                found.update(f"{name} {file.as_posix()} {about.st_size} {about.st_mtime_ns}\n".encode())
        return found.hexdigest()

    def register(self, spark: Any, database: str) -> None:
        """Create a database with the tables."""
        spark.sql(f"CREATE DATABASE {database}")
        # Otherwise the partitions of a table have to be added to the catalog.
        spark.conf.set("spark.sql.hive.manageFilesourcePartitions", "false")
        for name, table in self.tables.items():
            location = table.path.as_posix().replace("'", "\\'")
            spark.sql(f"CREATE TABLE {database}.`{name}` USING parquet LOCATION '{location}'")

    def check_queries(self, spark: Any) -> None:
        """Parse and analyse every query in the current database.

        Raises:
            WorkloadError: a query is no single SELECT statement, or reads an unknown table or column.
        """
        from pyspark.errors import AnalysisException, ParseException

        parser = spark._jsparkSession.sessionState().sqlParser()
        for name, text in self.queries.items():
            try:
                parser.parseQuery(text)
                spark.sql(text)
            except ParseException as error:
                raise WorkloadError(
                    f"query {name} of {self.places[1]} does not parse: {_first_lines(error)}; "
                    "a file has to contain one SELECT statement in Spark's SQL"
                ) from None
            except AnalysisException as error:
                raise WorkloadError(self._invalid(name, error)) from None

    def _invalid(self, query: str, error: Any) -> str:
        if error.getCondition() == "TABLE_OR_VIEW_NOT_FOUND":
            table = (error.getMessageParameters() or {}).get("relationName", "?").replace("`", "")
            return (
                f"query {query} reads the table {table}, which is not in {self.places[0]}; tables there are "
                f"{_listed(self.tables)}. Add {table}.parquet, or a folder {table} of Parquet files"
            )
        return f"query {query} of {self.places[1]} is not valid: {_first_lines(error)}"


def _first_lines(error: Any) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[:2])


def _listed(names: Iterable[str]) -> str:
    found = list(names)
    return ", ".join(found[:30]) + (f", and {len(found) - 30} more" if len(found) > 30 else "")


def of_folders(tables: Path, queries: Path, name: str = "folder") -> Workload:
    """The workload of a folder of tables and a folder of queries.

    Raises:
        WorkloadError: a folder does not exist or has nothing to grade, or two tables have one name.
    """
    found, texts = tables_of(tables), {}
    for file in sorted(_folder(queries, "queries").glob("*.sql")):
        text = file.read_text(encoding="utf-8").strip().rstrip(";").rstrip()
        if not text:
            raise WorkloadError(f"{file} is empty; write a SELECT statement into it, or remove it")
        texts[file.stem] = text
    if not texts:
        raise WorkloadError(f"{queries} has no queries; it needs files NAME.sql with one SELECT statement each")
    return Workload(name, found, texts, (str(tables), str(queries)))


def _folder(path: Path, what: str) -> Path:
    if not path.is_dir():
        found = "is a file" if path.exists() else "does not exist"
        raise WorkloadError(f"{path} {found}; give the folder of the {what}")
    return path


def tables_of(folder: Path) -> dict[str, Table]:
    """The tables of a folder, by name in lower case.

    Raises:
        WorkloadError: it does not exist, has no tables, has a table without files, or two with one name.
    """
    found: dict[str, Table] = {}
    for path in sorted(_folder(folder, "tables").iterdir()):
        if _is_hidden(path) or not (path.is_dir() or path.suffix == ".parquet"):
            continue
        table = Table(path, (path,)) if path.is_file() else _of_parts(path)
        name = path.name.removesuffix(".parquet").lower()
        if name in found:
            raise WorkloadError(f"{found[name].path} and {path} are both named {name}; rename or remove one of them")
        found[name] = table
    if not found:
        raise WorkloadError(
            f"{folder} has no tables; it needs files NAME.parquet, or folders NAME that contain Parquet files"
        )
    return found


def _of_parts(folder: Path) -> Table:
    files = tuple(sorted(file for file in folder.rglob("*") if file.is_file() and not _is_hidden(file)))
    if not files:
        raise WorkloadError(f"{folder} has no Parquet files; add them, or remove the folder")
    return Table(folder, files, any(file.parent != folder for file in files))


def _is_hidden(path: Path) -> bool:
    """Whether Spark does not read it."""
    return path.name.startswith(("_", "."))


def of_benchmark(benchmark: str, scale: float) -> Workload:
    """TPC-H or TPC-DS.

    Raises:
        WorkloadError: there is no such benchmark.
    """
    if benchmark not in tpc.GENERATORS:
        raise WorkloadError(f"{benchmark!r} is not a benchmark; use {' or '.join(tpc.GENERATORS)}")
    folder = tpc.parquet_folder(benchmark, scale)
    queries = {str(number): text for number, text in sorted(tpc.spark_queries(benchmark).items())}
    return Workload(benchmark, tables_of(folder), queries, (str(folder), benchmark))


def of_flights() -> Workload:
    """The flights of 2013 from New York; see `benchmarks.flights`.

    Raises:
        ModuleNotFoundError: the package with the data is not installed.
    """
    return of_folders(flights.parquet_folder(), flights.QUERIES, flights.PACKAGE)
