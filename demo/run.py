"""``make demo``: ten queries on TPC-H, as written and after ``optimize_joins()``, side by side."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from demo import data, show
from demo.measure import measure
from demo.queries import QUERIES
from pyjoinopt.bridge.install.java import ensure_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SPARK_BROADCAST_MB = 10


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=0.1, help="TPC-H's scale factor (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="timed runs of each side (default: %(default)s)")
    parser.add_argument("--only", metavar="NAME", help="queries whose name contains this")
    chosen = parser.parse_args()
    queries = [query for query in QUERIES if not chosen.only or chosen.only in query.name]
    if chosen.rounds < 1 or not queries:
        parser.error("nothing to run" if not queries else "--rounds has to be 1 or more")

    folder = data.generate(chosen.scale)
    spark = _session(chosen.scale, folder)
    try:
        counts = data.register(spark, folder)
        show.introduction(spark, chosen.scale, counts, chosen.rounds, _threshold(chosen.scale))
        measured = []
        for number, query in enumerate(queries, 1):
            show.announcement(number, query)
            measured.append(measure(spark, query, chosen.rounds))
            show.result(measured[-1])
        show.table(measured)
        show.conclusion(measured)
    finally:
        spark.stop()
    return 0 if all(one.same for one in measured) else 1


def _session(scale: float, folder: Path) -> SparkSession:
    ensure_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 2)),
        # 10 MB, Spark's default, is meant for larger data; at a small scale it would broadcast nearly every table.
        "spark.sql.autoBroadcastJoinThreshold": str(int(_threshold(scale) * 1024 * 1024)),
    }
    builder = SparkSession.builder.master("local[*]").appName("pyjoinopt demo")
    for key, value in settings.items():
        builder = builder.config(key, value)
    with _stderr_to(folder / "spark.log"):
        return builder.getOrCreate()


@contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    """Redirect the stderr of a JVM that starts in this block to a file; print it if the block fails."""
    sys.stderr.flush()
    screen = os.dup(2)
    try:
        with log.open("w") as file:
            os.dup2(file.fileno(), 2)
        yield
    except BaseException:
        os.write(screen, log.read_bytes())
        raise
    finally:
        os.dup2(screen, 2)
        os.close(screen)


def _threshold(scale: float) -> float:
    return _SPARK_BROADCAST_MB * min(1.0, scale)


if __name__ == "__main__":
    sys.exit(main())
