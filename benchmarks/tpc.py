"""TPC-H and TPC-DS run by Spark as it comes, by Spark with its CBO after ANALYZE, and by pyjoinopt without ANALYZE.

    python -m benchmarks.tpc [tpch tpcds] [--scale 1] [--runs 2] [--queries 5,17] [--truths] [--shuffle K] [--out FILE]

The three take turns at each query, in an order drawn by lot and then the other way round, so that none always comes
after the same one and bears what that leaves behind. Each has a session of one JVM, over the same Parquet files. A time
is that of `spark.sql(text)`, of `optimize_joins()` where it is called, of planning and of running, until the rows are
here. Every DataFrame is new, so nothing is left over from the turn before. All three results are compared. A query's
time is its best of the runs: on a machine that does other things too, that is the one with the least of them in it.

Each time is given as it passed and as what Spark's JVM and this process took of the processors for it: the latter does
not depend on who else is using the machine, but holds what several threads did at once.

`--truths` adds the plan that true row counts would give: every connected set of relations of every join group is
counted before (the first time that takes long; counts are remembered in the user's cache folder).

With `--shuffle K`, each query runs in K random orders of its FROM lists instead, as it comes and with pyjoinopt: what
matters then is the worst order's time over the best one's, and how many plans pyjoinopt made of them. What takes longer
than `--limit` seconds is cancelled, and counts as so long.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event, Timer
from time import perf_counter
from typing import Any

from platformdirs import user_cache_dir
from tqdm import tqdm

import pyjoinopt
from benchmarks.common import machine, session
from benchmarks.shuffled import shuffled
from benchmarks.true_rows import TrueRows
from demo.measure import equal_rows
from tests.support import tpc

PLAIN, CBO, OURS, TRUE = "as it comes", "ANALYZE + CBO", "pyjoinopt", "with true rows"
_CBO_SETTINGS = ("cbo.enabled", "cbo.joinReorder.enabled", "cbo.planStats.enabled")
#: A query that is slower than this by its best runs is shown by name.
SLOWER = 1.2

Run = tuple[float, float]  # seconds that passed, and seconds of processors
Runs = dict[str, dict[str, list[Run]]]  # query -> variant -> its runs
Rows = list[tuple[Any, ...]]
Runner = Callable[[str], tuple[Run, Rows | None]]  # no rows of a run that was cancelled


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("benchmarks", nargs="*", default=["tpch", "tpcds"], metavar="tpch|tpcds")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--queries", type=lambda text: [int(n) for n in text.split(",")], help="only these numbers")
    parser.add_argument("--truths", action="store_true", help="also the plan that true row counts would give")
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
        queries = {n: q for n, q in tpc.spark_queries(benchmark).items() if not chosen.queries or n in chosen.queries}
        reports: list[pyjoinopt.JoinReport] = []
        limit = chosen.limit if chosen.shuffle else None
        runners = _runners(spark, benchmark, chosen.scale, limit, chosen.truths, reports)
        if chosen.shuffle:
            found = _shuffled(runners, benchmark, queries, chosen.shuffle, chosen.runs, chosen.seed, reports)
            _show_shuffled(benchmark, found)
        else:
            found = _in_turns(runners, benchmark, queries, chosen.runs)
            _show(benchmark, list(runners), found)
        everything.update(found)
    if chosen.out:
        chosen.out.write_text(json.dumps(everything, indent=1))
    spark.stop()


def _runners(
    spark: Any, benchmark: str, scale: float, limit: float | None, truths: bool, reports: list[pyjoinopt.JoinReport]
) -> dict[str, Runner]:
    """Variant -> what runs a query and gives its seconds and rows; a session each, over the same files.

    With a limit in seconds there is no session with CBO. `reports` is filled with pyjoinopt's.
    """

    def over_files(prepare: Callable[[Any], Any], learn: bool = False) -> Runner:
        one = spark.newSession()
        tpc.register(one, benchmark, scale)
        return _runner(one, prepare, learn, limit)

    def optimized(df: Any) -> Any:
        fast = pyjoinopt.optimize_joins(df)
        reports.append(fast._pyjoinopt_report)
        return fast

    runners = {PLAIN: over_files(lambda df: df), OURS: over_files(optimized)}
    if limit is None:
        cbo = spark.newSession()
        for setting in _CBO_SETTINGS:
            cbo.conf.set(f"spark.sql.{setting}", "true")
        started = perf_counter()
        _analyse(cbo, benchmark, scale)
        print(f"{benchmark}: ANALYZE of all columns took {perf_counter() - started:.1f} s, which no figure below holds")
        runners[CBO] = _runner(cbo, lambda df: df)
    if truths:
        counts = Path(user_cache_dir("pyjoinopt")) / "truths" / f"{benchmark}-sf{scale:g}-spark{spark.version}.json"
        told = TrueRows(spark, tpc.parquet_folder(benchmark, scale), counts)
        runners[TRUE] = over_files(told.optimized, learn=True)
    return runners


def _analyse(cbo: Any, benchmark: str, scale: float) -> None:
    cbo.sql(f"CREATE DATABASE {benchmark}")
    cbo.sql(f"USE {benchmark}")
    for file in tqdm(sorted(tpc.parquet_folder(benchmark, scale).glob("*.parquet")), "analyze", leave=False):
        cbo.sql(f"CREATE TABLE {file.stem} USING parquet LOCATION '{file.as_posix()}'")
        cbo.sql(f"ANALYZE TABLE {file.stem} COMPUTE STATISTICS FOR ALL COLUMNS")


def _runner(
    spark: Any, prepare: Callable[[Any], Any], learn: bool = False, limit: float | None = None
) -> Runner:
    """`learn`: whether `prepare` has to learn something, once a query, before its time is taken."""
    jvm = int(spark._jvm.java.lang.ProcessHandle.current().pid())
    seen: set[str] = set()

    def run(text: str) -> tuple[Run, Rows | None]:
        if learn and text not in seen:
            seen.add(text)
            prepare(spark.sql(text))
        late = Event()

        def cancel() -> None:
            late.set()
            spark.sparkContext.cancelAllJobs()

        timer = Timer(limit or 0.0, cancel)
        started, spent = perf_counter(), _processors(jvm)
        if limit is not None:
            timer.start()
        try:
            rows = [tuple(row) for row in prepare(spark.sql(text)).collect()]
        except Exception:
            if not late.is_set():
                raise
            rows = None
        finally:
            timer.cancel()
        return (perf_counter() - started, _processors(jvm) - spent), rows

    return run


def _processors(jvm: int) -> float:
    """Seconds of processors that this process and the JVM have taken so far; where /proc is not known, of this one."""
    here = sum(os.times()[:2])
    try:
        fields = Path(f"/proc/{jvm}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return here
    return here + (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _in_turns(runners: dict[str, Runner], benchmark: str, queries: dict[int, str], runs: int) -> Runs:
    for text in list(queries.values())[:3]:  # the JVM compiles itself warm
        for run in runners.values():
            run(text)
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
                _check(name, variant, expected, rows)
        best = _best(found[name], 0)
        ratios = "".join(f"{best[variant] / best[PLAIN]:>8.2f}" for variant in runners if variant != PLAIN)
        tqdm.write(f"{name:<12}" + "".join(f"{best[variant]:>16.2f}" for variant in runners) + "  " + ratios)
    return found


def _best(runs: dict[str, list[Run]], which: int) -> dict[str, float]:
    """Variant -> its best run, by the clock (0) or by the processors' (1)."""
    return {variant: min(run[which] for run in each) for variant, each in runs.items()}


def _check(name: str, variant: str, expected: Sequence[Any], rows: Sequence[Any]) -> None:
    # Sums of doubles in another order differ in more digits than one addition does.
    if not equal_rows(list(expected), list(rows), tolerance=1e-6):
        raise SystemExit(f"{name}: {variant} gives other rows")


def _show(benchmark: str, variants: Sequence[str], found: Runs) -> None:
    print(f"\n{benchmark}: {len(found)} queries, all results equal; best run of each, planning included")
    for which, what in enumerate(("seconds", "processor time")):
        best = {name: _best(each, which) for name, each in found.items()}
        print(f"{what:<16}{'total s':>9}{'of plain':>10}{'geo-mean':>10}{'worst':>8}  slower than {SLOWER}")
        for variant in variants:
            ratios = {name: each[variant] / max(0.01, each[PLAIN]) for name, each in best.items()}
            total, plain = (sum(each[v] for each in best.values()) for v in (variant, PLAIN))
            slower = [f"{name.split()[1]} ({ratio:.2f})" for name, ratio in ratios.items() if ratio > SLOWER]
            print(
                f"{variant:<16}{total:>9.1f}{total / plain:>10.3f}{_geo_mean(list(ratios.values())):>10.3f}"
                f"{max(ratios.values()):>8.2f}  {', '.join(slower)}"
            )
        noise = statistics.median(_spread(each[PLAIN], which) for each in found.values())
        print(f"noise: a query's slowest run over its fastest, as it comes: median {noise:.2f}\n")


def _shuffled(
    runners: dict[str, Runner], benchmark: str, queries: dict[int, str], orders: int, runs: int, seed: int,
    reports: list[pyjoinopt.JoinReport],
) -> Runs:  # fmt: skip
    found: Runs = {}
    print(f"\n{'query':<12}{PLAIN:>16}{OURS:>16}{'its plans':>11}   (worst order's time over the best one's)")
    for number, text in tqdm(queries.items(), benchmark, leave=False):
        spellings = [shuffled(text, random.Random(f"{seed} {number} {k}")) for k in range(orders)]
        if len(set(spellings)) < 2:
            continue
        name = f"{benchmark} {number}"
        found[name] = {variant: [] for variant in runners}
        reports.clear()
        expected: Rows | None = None
        cancelled: dict[str, str] = {}
        for spelling in spellings:
            for variant, run in runners.items():
                times = []
                for _ in range(runs):
                    passed, rows = run(spelling)
                    times.append(passed)
                    if rows is None:
                        cancelled[variant] = ">"
                        break
                    expected = rows if expected is None else expected
                    _check(name, variant, expected, rows)
                found[name][variant].append((min(clock for clock, _ in times), min(spent for _, spent in times)))
        spreads = {v: f"{cancelled.get(v, '')} {_spread(each, 0):.2f}" for v, each in found[name].items()}
        plans = {_joined(report) for report in reports}
        tqdm.write(f"{name:<12}" + "".join(f"{spread:>16}" for spread in spreads.values()) + f"{len(plans):>11}")
    return found


def _joined(report: pyjoinopt.JoinReport) -> frozenset[frozenset[str]]:
    """The sets of relations that the joins of a plan make, whichever side is which."""
    return frozenset(frozenset(join.relations) for group in report.groups for join in group.estimated_rows)


def _spread(runs: Sequence[Run], which: int) -> float:
    return max(run[which] for run in runs) / max(0.01, min(run[which] for run in runs))


def _show_shuffled(benchmark: str, found: Runs) -> None:
    for which, what in enumerate(("seconds", "processor time")):
        for variant in (PLAIN, OURS):
            ratios = sorted(_spread(each[variant], which) for each in found.values())
            total = sum(run[which] for each in found.values() for run in each[variant])
            print(
                f"{benchmark} {variant:<12} worst ÷ best order by {what}: geo-mean {_geo_mean(ratios):.2f}, "
                f"median {statistics.median(ratios):.2f}, worst {ratios[-1]:.2f}, "
                f"{sum(ratio > 1.3 for ratio in ratios)} of {len(ratios)} over 1.3; all orders together {total:.1f} s"
            )


def _geo_mean(values: Sequence[float]) -> float:
    return math.exp(statistics.fmean(math.log(max(0.01, value)) for value in values))


if __name__ == "__main__":
    main()
