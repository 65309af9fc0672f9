"""Runs TPC-H and TPC-DS in plain Spark, with its CBO after ANALYZE, with its Bloom filters, and with pyjoinopt.

    python -m benchmarks.tpc [tpch tpcds] [--scale 1] [--runs 2] [--queries 5,17] [--heavy] [--again] [--recheck 3]
                             [--truths] [--no-analyze] [--shuffle K] [--out FILE]
    python -m benchmarks.tpc --scale 10 --heavy --runs 1      # TPC-H, and twenty queries of TPC-DS

The variants are plain Spark ("as it comes"), pyjoinopt without ANALYZE, Spark's CBO after ANALYZE of all columns, and
plain Spark with run-time Bloom filters over scans of any size (a threshold of 0 bytes instead of 10 GB). They take
turns at each query, in a random order and then in reverse, so that no variant always runs after the same other one.
Each has a session of one JVM, over the same Parquet files. A time includes `spark.sql(text)`, `optimize_joins()` where
it is called, planning and running, until the rows are in Python. Every DataFrame is new, and all generated code is
compiled again, so nothing is reused between turns (`tpc_runs`). All results are compared. The time of a query is its
best run, which has the least disturbance by other load.

Each time is given as wall time and as processor time of Spark's JVM and this process. Processor time does not depend on
other load, but adds up the time of parallel threads.

`--again` gives plain Spark a second session, which takes turns with the others: its ratio to the first session is
noise. `--recheck N` runs the queries slower than 1.2 times plain Spark's time N more times, with plain Spark twice each
time, and lists those that are slower by all their runs.

`--truths` adds the plan from true row counts: every connected set of relations of every join group is counted before
(the first time takes long; counts are stored in the user's cache folder).

`--no-analyze` leaves Spark's CBO out, and the ANALYZE that it needs.

With `--shuffle K`, each query runs in K random orders of its FROM lists instead, in plain Spark and with pyjoinopt. The
result is the worst order's time divided by the best one's, and the number of plans that pyjoinopt made of them
(`tpc_shuffled`). A run of more than `--limit` seconds is cancelled, and counts with that time. `--recheck N` runs
queries whose orders differ by more than 1.3 in N more rounds.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from tqdm import tqdm

import pyjoinopt
from benchmarks.common import machine, session
from benchmarks.tpc_runs import AGAIN, OURS, PLAIN, Rows, Runner, Runs, check, geo_mean, runners_for, spread
from benchmarks.tpc_shuffled import run_shuffled
from tests.support import tpc

#: A query that is slower than this by its best runs is shown by name.
SLOWER = 1.2
#: The number of queries that each variant runs before any is timed, to warm up the JVM's compiler.
WARM = 10
#: The queries of TPC-DS that take plain Spark the longest at scale 1.
HEAVY = (4, 11, 14, 17, 22, 23, 25, 28, 29, 31, 47, 51, 64, 67, 72, 74, 75, 78, 88, 95)
#: From this scale on, fewer queries do: each takes many seconds itself.
LARGE, WARM_LARGE = 10, 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("benchmarks", nargs="*", default=["tpch", "tpcds"], metavar="tpch|tpcds")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--queries", type=lambda text: [int(n) for n in text.split(",")], help="only these numbers")
    parser.add_argument("--heavy", action="store_true", help="of TPC-DS only the twenty queries that take longest")
    parser.add_argument("--again", action="store_true", help="plain Spark a second time, as a measure of noise")
    parser.add_argument("--recheck", type=int, default=0, metavar="N", help="run slower queries N times more")
    parser.add_argument("--truths", action="store_true", help="also the plan that true row counts would give")
    parser.add_argument("--no-analyze", action="store_true", help="without Spark's CBO")
    parser.add_argument("--shuffle", type=int, metavar="K", help="run K random orders of the FROM lists")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds that a shuffled query may take (120)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--partitions", type=int, default=200, help="of shuffles (default 200, as Spark comes)")
    parser.add_argument("--out", type=Path, help="write all times as JSON")
    chosen = parser.parse_args()
    if unknown := set(chosen.benchmarks) - set(tpc.GENERATORS):
        parser.error(f"no such benchmark: {', '.join(unknown)}; there are tpch and tpcds")
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # each query is told of when it is done
    partitions = str(chosen.partitions)
    spark = session(**{"spark.driver.memory": "8g", "spark.sql.shuffle.partitions": partitions})
    print(f"{machine()}, Spark {spark.version}, scale {chosen.scale:g}, {partitions} shuffle partitions")
    everything: Runs = {}
    for benchmark in chosen.benchmarks:
        only = chosen.queries or (HEAVY if chosen.heavy and benchmark == "tpcds" else None)
        queries = {n: q for n, q in tpc.spark_queries(benchmark).items() if only is None or n in only}
        reports: list[pyjoinopt.JoinReport] = []
        limit = chosen.limit if chosen.shuffle else None
        again = chosen.again or (chosen.recheck > 0 and not chosen.shuffle)
        runners = runners_for(
            spark, benchmark, chosen.scale, reports, limit, again, chosen.truths, not chosen.no_analyze
        )
        warm = WARM if chosen.scale < LARGE else WARM_LARGE
        for text in list(tpc.spark_queries(benchmark).values())[:warm]:
            for run in runners.values():
                run(text)
        if chosen.shuffle:
            found = run_shuffled(
                runners, benchmark, queries, chosen.shuffle, chosen.runs, chosen.seed, reports, chosen.recheck
            )
        else:
            first = {v: run for v, run in runners.items() if v != AGAIN or chosen.again}
            found = _in_turns(first, benchmark, queries, chosen.runs)
            _show(benchmark, found)
            if chosen.recheck:
                _recheck(runners, benchmark, queries, chosen.recheck, found)
        everything.update(found)
    if chosen.out:
        chosen.out.write_text(json.dumps(everything, indent=1))
    spark.stop()


def _in_turns(runners: dict[str, Runner], benchmark: str, queries: dict[int, str], runs: int) -> Runs:
    print(f"\n{'seconds':<12}" + "".join(f"{variant:>16}" for variant in runners) + "     of plain Spark's time")
    found: Runs = {}
    for number, text in tqdm(queries.items(), benchmark, leave=False):
        name = f"{benchmark} {number}"
        order, lots = list(runners), random.Random(name)
        found[name] = {variant: [] for variant in runners}
        expected: Rows | None = None
        for turn in range(runs):
            order = order[::-1] if turn % 2 else lots.sample(order, len(order))
            for variant in order:
                passed, rows = runners[variant](text)
                found[name][variant].append(passed)
                assert rows is not None
                expected = rows if expected is None else expected
                check(name, variant, expected, rows)
        best = _best(found, name, 0)
        ratios = "".join(f"{best[variant] / best[PLAIN]:>8.2f}" for variant in runners if variant != PLAIN)
        tqdm.write(f"{name:<12}" + "".join(f"{best[variant]:>16.2f}" for variant in runners) + "  " + ratios)
    return found


def _recheck(runners: dict[str, Runner], benchmark: str, queries: dict[int, str], runs: int, found: Runs) -> None:
    """Run slower queries again, and list those that are slower by all their runs.

    The sums are not recomputed, since queries that only seemed fast because of noise are not run again.
    """
    slower = {name for name, ratio in _ratios(found, OURS, 0).items() if ratio > SLOWER}
    if not slower:
        return
    print(f"{benchmark}: the {len(slower)} slower than {SLOWER} run {runs} times more, plain Spark twice")
    again = _in_turns(runners, benchmark, {n: q for n, q in queries.items() if f"{benchmark} {n}" in slower}, runs)
    chance = _ratios(again, AGAIN, 0)
    for name, each in again.items():
        for variant, passed in each.items():
            found[name].setdefault(variant, []).extend(passed)
    ratios = _ratios({name: found[name] for name in again}, OURS, 0)
    still = {name: ratio for name, ratio in ratios.items() if ratio > SLOWER}
    listed = ", ".join(f"{name.split()[1]} ({ratio:.2f})" for name, ratio in still.items()) or "none"
    print(f"\nby the best of all runs, still slower than {SLOWER}: {listed}")
    print(f"the new runs, plain Spark against itself: {min(chance.values()):.2f} to {max(chance.values()):.2f}\n")


def _best(found: Runs, name: str, which: int) -> dict[str, float]:
    """Variant -> its best run of a query, by wall time (0) or by processor time (1)."""
    return {variant: min(run[which] for run in runs) for variant, runs in found[name].items()}


def _ratios(found: Runs, variant: str, which: int) -> dict[str, float]:
    """Query -> a variant's best run divided by plain Spark's."""
    best = {name: _best(found, name, which) for name in found}
    return {name: each[variant] / max(0.01, each[PLAIN]) for name, each in best.items()}


def _show(benchmark: str, found: Runs) -> None:
    """Print the sums of the variants that ran every query."""
    variants = [v for v in next(iter(found.values())) if all(v in each for each in found.values())]
    print(f"\n{benchmark}: {len(found)} queries, all results equal; best run of each, planning included")
    for which, what in enumerate(("seconds", "processor time")):
        print(f"{what:<16}{'total s':>9}{'of plain':>10}{'geo-mean':>10}{'worst':>8}  slower than {SLOWER}")
        for variant in variants:
            total, plain = (sum(_best(found, name, which)[v] for name in found) for v in (variant, PLAIN))
            print(f"{variant:<16}{total:>9.1f}{total / plain:>10.3f}{_line(_ratios(found, variant, which))}")
        noise = statistics.median(spread(each[PLAIN], which) for each in found.values())
        print(f"noise: a query's slowest run over its fastest, as it comes: median {noise:.2f}\n")


def _line(ratios: dict[str, float]) -> str:
    slower: Sequence[str] = [f"{name.split()[1]} ({ratio:.2f})" for name, ratio in ratios.items() if ratio > SLOWER]
    values = list(ratios.values())
    return f"{geo_mean(values):>10.3f}{max(values):>8.2f}  {', '.join(slower)}"


if __name__ == "__main__":
    main()
