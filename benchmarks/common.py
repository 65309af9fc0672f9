"""Helpers of the benchmarks: a session, timing, and a description of the machine."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from collections.abc import Callable
from time import perf_counter
from typing import Any


def session(**conf: str) -> Any:
    """A small local Spark session with errors only in its log."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyjoinopt.bridge.install.java import ensure_java

    ensure_java()
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.warehouse.dir", tempfile.mkdtemp())
        .config("spark.driver.memory", "4g")
    )
    for key, value in conf.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def measure(run: Callable[[], object], repeat: int, warm: int = 5) -> list[float]:
    """The sorted milliseconds of all repetitions, without the warm-up runs."""
    for _ in range(warm):
        run()
    times = []
    for _ in range(repeat):
        started = perf_counter()
        run()
        times.append((perf_counter() - started) * 1000)
    return sorted(times)


def spread(times: list[float]) -> str:
    """Median with quartiles."""
    quarter, median = len(times) // 4, (times[(len(times) - 1) // 2] + times[len(times) // 2]) / 2
    return f"{median:8.1f} ms   ({times[quarter]:.1f} .. {times[-1 - quarter]:.1f})"


def machine() -> str:
    """One line that describes the machine."""
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
