"""Tunes the heaviest queries of TPC-DS: how much faster is the plan that `pyjoinopt.tune` finds, and is it ever slower?

    python -m benchmarks.tune [tpcds|tpch] [--scale 1] [--runs 15] [--rounds 4] [--queries 72,64]

Each query is tuned by `tune(df, runs=15, pin=...)`. Afterwards its plans run in turns, in random order, compiled anew,
planning included:

- *default*: the plan of `optimize_joins` that has seen nothing of the tuning (its store is another file);
- *tuned*: the pinned plan;
- *learned*: the default plan with the row counts that the tuning has stored.

So the figures are not those by which the plan was chosen, which favour it. The ratio is the best time of the default
plan divided by that of the tuned one; above 1 the tuned plan is faster. Where the default plan was found to be the best
one, the tuned plan is the same plan, and its ratio is noise.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import pyjoinopt
from benchmarks.common import machine, session
from benchmarks.tpc import HEAVY
from benchmarks.tpc_runs import check, geo_mean, runner_over_files
from pyjoinopt.report.tuning import DEFAULT, Tuning
from tests.support import tpc

_DEFAULT, _TUNED, _LEARNED = "default", "tuned", "learned"
#: Differences below it, by the best of the runs, are not counted as slower.
SLOWER = 1.1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("benchmark", nargs="?", default="tpcds", choices=sorted(tpc.GENERATORS))
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=15, help="timed runs of the tuning of each query")
    parser.add_argument("--rounds", type=int, default=4, help="runs of each plan afterwards")
    parser.add_argument("--queries", type=lambda text: [int(n) for n in text.split(",")], help="only these numbers")
    chosen = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    spark = session(**{"spark.driver.memory": "8g", "spark.sql.shuffle.partitions": "200"})
    print(f"{machine()}, Spark {spark.version}, {chosen.benchmark} at scale {chosen.scale:g}, {chosen.runs} runs each")
    only = chosen.queries or (HEAVY if chosen.benchmark == "tpcds" else None)
    queries = {n: q for n, q in tpc.spark_queries(chosen.benchmark).items() if only is None or n in only}
    folder = Path(tempfile.mkdtemp())
    untouched, tuned = str(folder / "default.sqlite"), str(folder / "tuned.sqlite")
    own = spark.newSession()
    tpc.register(own, chosen.benchmark, chosen.scale)
    print("\nquery     plans  minutes    default      tuned    learned   default/tuned  best plan")
    ratios: dict[int, float] = {}
    pinned: set[int] = set()
    for number, text in queries.items():
        name = f"query-{number}"
        started = perf_counter()
        try:
            found: Tuning | None = pyjoinopt.tune(own.sql(text), chosen.runs, pin=name, store=tuned, progress=False)
        except ValueError as refused:
            print(f"{number:<9} {refused}")
            continue
        minutes = (perf_counter() - started) / 60
        assert found is not None
        if found.same is False:
            raise SystemExit(f"query {number}: the tuned plan gives other rows")
        prepared: dict[str, Callable[[Any], Any]] = {
            _DEFAULT: lambda df: df.optimize_joins(store=untouched),
            _TUNED: lambda df, name=name: df.optimize_joins(store=tuned, baseline=name),  # type: ignore[misc]
            _LEARNED: lambda df: df.optimize_joins(store=tuned),
        }
        seconds = _in_turns(spark, chosen, str(number), text, prepared)
        best = {plan: min(times) for plan, times in seconds.items()}
        ratios[number] = best[_DEFAULT] / best[_TUNED]
        if DEFAULT not in found.best.name.split(", "):
            pinned.add(number)
        cells = "".join(f"{best[plan]:>11.2f}" for plan in prepared)
        about = f"{len(found.plans):>5} {minutes:>8.1f}{cells} {ratios[number]:>15.2f}  {found.best.name[:60]}"
        print(f"{number:<9} {about}")
    _print(ratios, pinned)
    spark.stop()


def _in_turns(
    spark: Any, chosen: argparse.Namespace, name: str, text: str, prepared: dict[str, Callable[[Any], Any]]
) -> dict[str, list[float]]:
    runners = {
        plan: runner_over_files(spark, chosen.benchmark, chosen.scale, prepare) for plan, prepare in prepared.items()
    }
    seconds: dict[str, list[float]] = {plan: [] for plan in runners}
    expected = None
    for number in range(chosen.rounds + 1):
        for plan in random.Random(f"{name} {number}").sample(list(runners), len(runners)):
            (passed, _), rows = runners[plan](text)
            assert rows is not None
            expected = rows if expected is None else expected
            check(name, plan, expected, rows)
            if number:  # the first run of each reads statistics and samples
                seconds[plan].append(passed)
    return seconds


def _print(ratios: dict[int, float], pinned: set[int]) -> None:
    others = [ratio for number, ratio in ratios.items() if number in pinned]
    same = [ratio for number, ratio in ratios.items() if number not in pinned]
    print(f"\nall queries: geometric mean {geo_mean(list(ratios.values())):.3f}, median {median(ratios.values()):.3f}")
    if others:
        print(f"where another plan than the default one was found best: {len(others)}, {geo_mean(others):.3f}")
    if same:
        noise = f"{min(same):.2f} to {max(same):.2f}"
        print(f"where the default plan was found best (noise): {len(same)}, {geo_mean(same):.3f}, from {noise}")
    slower = [f"{n} ({1 / ratio:.2f} times as long)" for n, ratio in ratios.items() if ratio * SLOWER < 1]
    print(f"slower than the default plan by more than {SLOWER}: {', '.join(slower) or 'none'}")


if __name__ == "__main__":
    main()
