"""Helpers of the benchmarks: a session, timing, limits of time, and a description of the machine."""

from __future__ import annotations

import math
import os
import platform
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


@contextmanager
def time_limit(seconds: float, cancel: Callable[[], object]) -> Iterator[threading.Event]:
    """Cancel what runs inside after so many seconds; the event is set then.

    It is cancelled again and again until the block is left: a cancellation has no effect on a query that is still
    being planned, which would run without a limit.
    """
    over, left = threading.Event(), threading.Event()

    def stop() -> None:
        if not left.wait(None if math.isinf(seconds) else seconds):
            over.set()
            cancel()
        while not left.wait(0.1):
            cancel()

    thread = threading.Thread(target=stop, name="time limit", daemon=True)
    thread.start()
    try:
        yield over
    finally:
        left.set()
        thread.join()


def machine() -> str:
    """One line that describes the machine."""
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
