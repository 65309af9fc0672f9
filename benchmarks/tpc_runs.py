"""Runs TPC queries by several variants of Spark: one session each, one JVM, the same files.

All variants share one JVM, because JVMs differ: the code that a JVM compiles for Spark's own classes differs by chance
for as long as it runs. A query without joins, which all variants plan alike, took 1.38 times as long in one JVM as in
another, by the best of three runs. But every run compiles its generated code again (`generated_code`), like a query
that is new to its driver. Otherwise variants with the same plan would find the code of the other one compiled, and a
variant with another plan would not.

A time includes `spark.sql(text)`, `optimize_joins()` where it is called, planning and running, until the rows are in
Python, as wall time and as processor time of Spark's JVM and this process.
"""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from platformdirs import user_cache_dir
from tqdm import tqdm

import pyjoinopt
from benchmarks.common import time_limit
from benchmarks.generated_code import GeneratedCode
from benchmarks.true_rows import TrueRows
from pyjoinopt.util.same_rows import same_rows
from tests.support import tpc

PLAIN, AGAIN, CBO, OURS, TRUE = "as it comes", "the same again", "ANALYZE + CBO", "pyjoinopt", "with true rows"
#: Plain Spark with its run-time Bloom filters wherever they apply, instead of over scans of ten gigabytes only.
BLOOM = "Bloom filters"
_CBO_SETTINGS = ("cbo.enabled", "cbo.joinReorder.enabled", "cbo.planStats.enabled")
_BLOOM_SETTINGS = {"enabled": "true", "applicationSideScanSizeThreshold": "0"}

Run = tuple[float, float]  # seconds that passed, and seconds of processors
Runs = dict[str, dict[str, list[Run]]]  # query -> variant -> its runs
Rows = list[tuple[Any, ...]]
Runner = Callable[[str], tuple[Run, Rows | None]]  # no rows of a run that was cancelled


def runners_for(
    spark: Any,
    benchmark: str,
    scale: float,
    reports: list[pyjoinopt.JoinReport],
    limit: float | None = None,
    again: bool = False,
    truths: bool = False,
    analyze: bool = True,
) -> dict[str, Runner]:
    """Variant -> a function that runs a query and returns its seconds and rows; one session each, over the same files.

    Args:
        spark: a session of the JVM.
        benchmark: "tpch" or "tpcds".
        scale: of its data.
        reports: filled with pyjoinopt's.
        limit: seconds after which a query is cancelled; there are no sessions with CBO and Bloom filters then.
        again: whether plain Spark gets a second session, as a measure of noise.
        truths: whether to plan with true row counts, too.
        analyze: whether there is a session with CBO, for which all columns are analysed first.
    """

    over_files = partial(runner_over_files, spark, benchmark, scale, limit=limit)

    def optimized(df: Any) -> Any:
        fast = pyjoinopt.optimize_joins(df)
        reports.append(fast._pyjoinopt_report)
        return fast

    runners = {PLAIN: over_files(lambda df: df), OURS: over_files(optimized)}
    if again:
        runners[AGAIN] = over_files(lambda df: df)
    if limit is None and analyze:
        cbo = spark.newSession()
        for setting in _CBO_SETTINGS:
            cbo.conf.set(f"spark.sql.{setting}", "true")
        started = perf_counter()
        _analyse(cbo, benchmark, scale)
        print(f"{benchmark}: ANALYZE of all columns took {perf_counter() - started:.1f} s, which no figure below holds")
        runners[CBO] = _runner(cbo, lambda df: df)
    if limit is None:
        settings = {f"spark.sql.optimizer.runtime.bloomFilter.{key}": value for key, value in _BLOOM_SETTINGS.items()}
        runners[BLOOM] = over_files(lambda df: df, settings=settings)
    if truths:
        counts = Path(user_cache_dir("pyjoinopt")) / "truths" / f"{benchmark}-sf{scale:g}-spark{spark.version}.json"
        reported = TrueRows(spark, tpc.parquet_folder(benchmark, scale), counts)
        runners[TRUE] = over_files(reported.optimized, learn=True)
    return runners


def runner_over_files(
    spark: Any,
    benchmark: str,
    scale: float,
    prepare: Callable[[Any], Any],
    *,
    learn: bool = False,
    settings: Mapping[str, str] | None = None,
    limit: float | None = None,
) -> Runner:
    """A function that runs a query in a session of its own, over the files of a benchmark.

    Args:
        spark: a session of the JVM.
        benchmark: "tpch" or "tpcds".
        scale: of its data.
        prepare: what is done to the DataFrame before it runs.
        learn: whether `prepare` must run once per query before its time is taken.
        settings: of the session.
        limit: seconds after which a query is cancelled.
    """
    own = spark.newSession()
    for key, value in (settings or {}).items():
        own.conf.set(key, value)
    tpc.register(own, benchmark, scale)
    return _runner(own, prepare, learn, limit)


def _analyse(cbo: Any, benchmark: str, scale: float) -> None:
    cbo.sql(f"CREATE DATABASE {benchmark}")
    cbo.sql(f"USE {benchmark}")
    for file in tqdm(sorted(tpc.parquet_folder(benchmark, scale).glob("*.parquet")), "analyze", leave=False):
        cbo.sql(f"CREATE TABLE {file.stem} USING parquet LOCATION '{file.as_posix()}'")
        cbo.sql(f"ANALYZE TABLE {file.stem} COMPUTE STATISTICS FOR ALL COLUMNS")


def _runner(
    spark: Any, prepare: Callable[[Any], Any], learn: bool = False, limit: float | None = None
) -> Runner:
    """`learn`: whether `prepare` must run once per query before its time is taken."""
    jvm = int(spark._jvm.java.lang.ProcessHandle.current().pid())
    code = GeneratedCode(spark)
    seen: set[str] = set()

    def run(text: str) -> tuple[Run, Rows | None]:
        if learn and text not in seen:
            seen.add(text)
            prepare(spark.sql(text))
        code.forget()
        started, spent = perf_counter(), processors(jvm)
        with time_limit(limit or math.inf, spark.sparkContext.cancelAllJobs) as late:
            try:
                rows = [tuple(row) for row in prepare(spark.sql(text)).collect()]
            except Exception:
                if not late.is_set():
                    raise
                rows = None
        return (perf_counter() - started, processors(jvm) - spent), rows

    return run


def processors(jvm: int) -> float:
    """Processor seconds of this process and the JVM so far; without /proc, of this process only."""
    here = sum(os.times()[:2])
    try:
        fields = Path(f"/proc/{jvm}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return here
    return here + (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def check(name: str, variant: str, expected: Sequence[Any], rows: Sequence[Any]) -> None:
    # Sums of doubles in another order differ in more digits than one addition does.
    if not same_rows(expected, rows, tolerance=(1e-6, 1e-6)):
        raise SystemExit(f"{name}: {variant} gives other rows")


def spread(runs: Sequence[Run], which: int) -> float:
    return max(run[which] for run in runs) / max(0.01, min(run[which] for run in runs))


def geo_mean(values: Sequence[float]) -> float:
    return math.exp(statistics.fmean(math.log(max(0.01, value)) for value in values))
