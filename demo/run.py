"""The second half of ``make demo``: ten queries on TPC-H, as written and after ``optimize_joins()``, side by side."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from demo import show
from demo.queries import QUERIES
from pyjoinopt.bridge.install.java import ensure_java
from pyjoinopt.bridge.trial_session import local_session
from pyjoinopt.demo import tpch
from pyjoinopt.demo.measure import measure
from pyjoinopt.demo.show import announcement, conclusion, paragraph, result

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SPARK_BROADCAST_MB = 10
_DATA = Path(__file__).resolve().parent.parent / "data"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=0.1, help="TPC-H's scale factor (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="timed runs of each side (default: %(default)s)")
    parser.add_argument("--only", metavar="NAME", help="queries whose name contains this")
    chosen = parser.parse_args()
    queries = [query for query in QUERIES if not chosen.only or chosen.only in query.name]
    if chosen.rounds < 1 or not queries:
        parser.error("nothing to run" if not queries else "--rounds has to be 1 or more")

    folder = tpch.generate(chosen.scale, _DATA)
    spark = _session(chosen.scale, folder)
    try:
        counts = tpch.register(spark, folder)
        show.introduction(spark, chosen.scale, counts, chosen.rounds, _threshold(chosen.scale))
        measured = []
        for number, query in enumerate(queries, 1):
            announcement(number, query)
            measured.append(measure(spark, query, chosen.rounds))
            result(measured[-1])
        print(f"\n{show.table_of(measured)}\n")
        for sentence in conclusion(measured):
            paragraph(sentence)
    finally:
        spark.stop()
    return 0 if all(one.same for one in measured) else 1


def _session(scale: float, folder: Path) -> SparkSession:
    ensure_java()
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    settings = {
        "spark.driver.memory": "2g",
        "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 2)),
        # 10 MB, Spark's default, is meant for larger data; at a small scale it would broadcast nearly every table.
        "spark.sql.autoBroadcastJoinThreshold": str(int(_threshold(scale) * 1024 * 1024)),
    }
    session: SparkSession = local_session("pyjoinopt demo", settings, "local[*]", folder / "spark.log")
    return session


def _threshold(scale: float) -> float:
    return _SPARK_BROADCAST_MB * min(1.0, scale)


if __name__ == "__main__":
    sys.exit(main())
