"""TPC-H and TPC-DS run by Spark as it comes, by Spark with its CBO after ANALYZE, and by pyjoinopt without ANALYZE.

    python -m benchmarks.tpc [tpch tpcds] [--scale 1] [--runs 2] [--queries 5,17] [--shuffle K] [--out FILE]

The three take turns at each query, in changing order, in a session each of one JVM, over the same Parquet files. A time
is that of `spark.sql(text)`, of `optimize_joins()` where it is called, of planning and of running, until the rows are
here. Every DataFrame is new, so nothing is left over from the turn before. All three results are compared. A query's
time is its best of the runs: on a machine that does other things too, that is the one with the least of them in it.

With `--shuffle K`, each query runs in K random orders of its FROM lists instead, as it comes and with pyjoinopt: what
matters then is the worst order's time over the best one's.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from tqdm import tqdm

import pyjoinopt
from benchmarks.common import machine, session
from benchmarks.shuffled import shuffled
from demo.measure import equal_rows
from tests.support import tpc

PLAIN, CBO, OURS = "as it comes", "ANALYZE + CBO", "pyjoinopt"
_CBO_SETTINGS = ("cbo.enabled", "cbo.joinReorder.enabled", "cbo.planStats.enabled")
#: A query that is slower than this by its best runs is shown by name.
SLOWER = 1.2

Times = dict[str, dict[str, list[float]]]  # query -> variant -> seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("benchmarks", nargs="*", default=["tpch", "tpcds"], metavar="tpch|tpcds")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--queries", type=lambda text: [int(n) for n in text.split(",")], help="only these numbers")
    parser.add_argument("--shuffle", type=int, metavar="K", help="run K random orders of the FROM lists")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="write all times as JSON")
    chosen = parser.parse_args()
    if unknown := set(chosen.benchmarks) - set(tpc.GENERATORS):
        parser.error(f"no such benchmark: {', '.join(unknown)}; there are tpch and tpcds")
    spark = session(**{"spark.driver.memory": "8g"})
    print(f"{machine()}, Spark {spark.version}, scale {chosen.scale:g}")
    times: Times = {}
    for benchmark in chosen.benchmarks:
        queries = {n: q for n, q in tpc.spark_queries(benchmark).items() if not chosen.queries or n in chosen.queries}
        runners = _runners(spark, benchmark, chosen.scale, analysed=not chosen.shuffle)
        if chosen.shuffle:
            found = _shuffled(runners, benchmark, queries, chosen.shuffle, chosen.seed)
            _show_shuffled(benchmark, found)
        else:
            found = _in_turns(runners, benchmark, queries, chosen.runs)
            _show(benchmark, found)
        times.update(found)
    if chosen.out:
        chosen.out.write_text(json.dumps(times, indent=1))
    spark.stop()


Runner = Callable[[str], tuple[float, list[tuple[Any, ...]]]]


def _runners(spark: Any, benchmark: str, scale: float, analysed: bool) -> dict[str, Runner]:
    """Variant -> what runs a query and gives its seconds and rows; a session each, over the same files."""
    plain, ours = spark.newSession(), spark.newSession()
    for one in (plain, ours):
        tpc.register(one, benchmark, scale)
    runners = {PLAIN: _runner(plain, lambda df: df), OURS: _runner(ours, pyjoinopt.optimize_joins)}
    if analysed:
        cbo = spark.newSession()
        for setting in _CBO_SETTINGS:
            cbo.conf.set(f"spark.sql.{setting}", "true")
        started = perf_counter()
        _analyse(cbo, benchmark, scale)
        print(f"{benchmark}: ANALYZE of all columns took {perf_counter() - started:.1f} s, which no figure below holds")
        runners[CBO] = _runner(cbo, lambda df: df)
    return runners


def _analyse(cbo: Any, benchmark: str, scale: float) -> None:
    cbo.sql(f"CREATE DATABASE {benchmark}")
    cbo.sql(f"USE {benchmark}")
    for file in tqdm(sorted(tpc.parquet_folder(benchmark, scale).glob("*.parquet")), "analyze", leave=False):
        cbo.sql(f"CREATE TABLE {file.stem} USING parquet LOCATION '{file.as_posix()}'")
        cbo.sql(f"ANALYZE TABLE {file.stem} COMPUTE STATISTICS FOR ALL COLUMNS")


def _runner(spark: Any, prepare: Callable[[Any], Any]) -> Runner:
    def run(text: str) -> tuple[float, list[tuple[Any, ...]]]:
        started = perf_counter()
        rows = prepare(spark.sql(text)).collect()
        return perf_counter() - started, [tuple(row) for row in rows]

    return run


def _in_turns(runners: dict[str, Runner], benchmark: str, queries: dict[int, str], runs: int) -> Times:
    for text in list(queries.values())[:3]:  # the JVM compiles itself warm
        for run in runners.values():
            run(text)
    times: Times = {}
    order = list(runners)
    for number, text in tqdm(queries.items(), benchmark, leave=False):
        name = f"{benchmark} {number}"
        times[name] = {variant: [] for variant in runners}
        expected: list[tuple[Any, ...]] | None = None
        for _ in range(runs):
            for variant in order:
                seconds, rows = runners[variant](text)
                times[name][variant].append(seconds)
                expected = rows if expected is None else expected
                _check(name, variant, expected, rows)
            order.append(order.pop(0))
    return times


def _check(name: str, variant: str, expected: Sequence[Any], rows: Sequence[Any]) -> None:
    # Sums of doubles in another order differ in more digits than one addition does.
    if not equal_rows(list(expected), list(rows), tolerance=1e-6):
        raise SystemExit(f"{name}: {variant} gives other rows")


def _show(benchmark: str, times: Times) -> None:
    best = {name: {variant: min(runs) for variant, runs in each.items()} for name, each in times.items()}
    print(f"\n{'query':<12}" + "".join(f"{variant:>16}" for variant in (PLAIN, CBO, OURS)) + f"{'ratio':>9}{'CBO':>7}")
    for name, each in best.items():
        print(
            f"{name:<12}" + "".join(f"{each[variant]:>16.2f}" for variant in (PLAIN, CBO, OURS))
            + f"{each[OURS] / each[PLAIN]:>9.2f}{each[CBO] / each[PLAIN]:>7.2f}"
        )  # fmt: skip
    print(f"\n{benchmark}: {len(best)} queries, all results equal; seconds are the best run's, planning included")
    print(f"{'':<16}{'total s':>9}{'of plain':>10}{'geo-mean':>10}{'worst':>8}  slower than {SLOWER}")
    for variant in (PLAIN, CBO, OURS):
        ratios = {name: each[variant] / each[PLAIN] for name, each in best.items()}
        total, plain = (sum(each[v] for each in best.values()) for v in (variant, PLAIN))
        slower = [f"{name.split()[1]} ({ratio:.2f})" for name, ratio in ratios.items() if ratio > SLOWER]
        print(
            f"{variant:<16}{total:>9.1f}{total / plain:>10.3f}{_geo_mean(list(ratios.values())):>10.3f}"
            f"{max(ratios.values()):>8.2f}  {', '.join(slower)}"
        )
    noise = [max(runs[PLAIN]) / min(runs[PLAIN]) for runs in times.values()]
    print(f"noise: a query's slowest run over its fastest, as it comes: median {statistics.median(noise):.2f}")


def _shuffled(runners: dict[str, Runner], benchmark: str, queries: dict[int, str], orders: int, seed: int) -> Times:
    times: Times = {}
    for number, text in tqdm(queries.items(), benchmark, leave=False):
        spellings = [shuffled(text, random.Random(f"{seed} {number} {k}")) for k in range(orders)]
        if len(set(spellings)) < 2:
            continue
        name = f"{benchmark} {number}"
        times[name] = {variant: [] for variant in runners}
        expected: list[tuple[Any, ...]] | None = None
        for spelling in spellings:
            for variant, run in runners.items():
                seconds, rows = run(spelling)
                times[name][variant].append(seconds)
                expected = rows if expected is None else expected
                _check(name, variant, expected, rows)
    return times


def _show_shuffled(benchmark: str, times: Times) -> None:
    spread = {name: {v: max(runs) / min(runs) for v, runs in each.items()} for name, each in times.items()}
    print(f"\n{'query':<12}{PLAIN:>16}{OURS:>16}   (worst order's time over the best one's)")
    for name, each in spread.items():
        print(f"{name:<12}{each[PLAIN]:>16.2f}{each[OURS]:>16.2f}")
    for variant in (PLAIN, OURS):
        ratios = sorted(each[variant] for each in spread.values())
        total = sum(sum(each[variant]) for each in times.values())
        print(
            f"{benchmark} {variant:<14} geo-mean {_geo_mean(ratios):.2f}, median {statistics.median(ratios):.2f}, "
            f"worst {ratios[-1]:.2f}; all orders together {total:.1f} s"
        )


def _geo_mean(values: Sequence[float]) -> float:
    return math.exp(statistics.fmean(map(math.log, values)))


if __name__ == "__main__":
    main()
