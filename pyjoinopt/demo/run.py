"""The command `python -m pyjoinopt demo`: five queries on generated data, as written and optimised."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyjoinopt._version import __version__
from pyjoinopt.bridge.install import java
from pyjoinopt.bridge.trial_session import local_session
from pyjoinopt.demo import shop, show
from pyjoinopt.demo.measure import measure
from pyjoinopt.demo.queries import QUERIES
from pyjoinopt.errors import PyJoinOptError


def run(lines: int = shop.LINES, rounds: int = 2, keep: Path | None = None) -> int:
    """Generate the data, run the queries, print the comparison, and return the exit code: 0 if all rows are the same.

    Args:
        lines: rows of the largest table.
        rounds: timed runs of each side.
        keep: a folder for the data, which is kept; by default a temporary one, which is removed.

    Raises:
        PyJoinOptError: an argument out of range, a folder that is not empty, or no Spark or Java.
    """
    if lines < shop.FEWEST_LINES:
        raise PyJoinOptError(f"--rows is {lines:,}, but must be at least {shop.FEWEST_LINES:,}")
    if rounds < 1:
        raise PyJoinOptError(f"--rounds is {rounds}, but must be at least 1")
    with data_folder(keep) as data, tempfile.TemporaryDirectory(prefix="pyjoinopt-demo-") as scratch:
        if java.installed_spark_version() is None:
            raise PyJoinOptError(java.why_no_spark())
        java.ensure_java()
        spark = _session(Path(scratch))
        try:
            return _compared(spark, data, lines, rounds, kept=keep is not None)
        finally:
            spark.stop()


def _compared(spark: Any, data: Path, lines: int, rounds: int, kept: bool) -> int:
    threads = spark.sparkContext.defaultParallelism
    print(f"pyjoinopt {__version__} on Spark {spark.version}, {threads} threads", flush=True)
    rows = shop.generate(spark, data, lines)
    tables = ", ".join(f"{table} {count:,}" for table, count in rows.items())
    size = sum(file.stat().st_size for file in data.rglob("*.parquet")) / 1e6
    where = str(data) if kept else "a temporary folder"
    show.paragraph(f"Generated {size:.0f} MB of Parquet in {where}. Rows: {tables}.")
    show.paragraph("Spark runs with its defaults (adaptive execution, broadcasts below 10 MB). No ANALYZE was run.")
    show.method(rounds)
    measured = []
    for number, query in enumerate(QUERIES, 1):
        show.announcement(number, query)
        measured.append(measure(spark, query, rounds))
        show.result(measured[-1])
    print(f"\n{show.summary(measured)}\n")
    for sentence in show.conclusion(measured):
        show.paragraph(sentence)
    return 0 if all(one.same and not one.report.error for one in measured) else 1


def _session(scratch: Path) -> Any:
    """A session with Spark's defaults on all cores. Statistics are stored, but not with the user's own."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    settings = {
        "spark.driver.memory": "2g",
        "spark.local.dir": str(scratch / "local"),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.pyjoinopt.store": str(scratch / "statistics.sqlite"),
    }
    return local_session("pyjoinopt demo", settings, "local[*]", scratch / "spark.log")


@contextmanager
def data_folder(keep: Path | None) -> Iterator[Path]:
    """A temporary folder, which is removed at the end, or an empty folder that is kept.

    Raises:
        PyJoinOptError: the folder is not empty, or cannot be made.
    """
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="pyjoinopt-demo-") as folder:
            yield Path(folder)
        return
    try:
        keep.mkdir(parents=True, exist_ok=True)
        full = any(keep.iterdir())
    except OSError as error:
        raise PyJoinOptError(f"--keep needs a folder that can be written to: {error}") from None
    if full:
        raise PyJoinOptError(f"--keep needs an empty folder, but {keep} has files in it")
    yield keep.resolve()
