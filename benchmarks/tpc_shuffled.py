"""TPC queries in random orders of their FROM lists: how much does a query's time depend on who wrote it?

What matters is the worst order's time over the best one's, and how many plans pyjoinopt makes of them. `--shuffle` of
`benchmarks.tpc` runs this.
"""

from __future__ import annotations

import random
import statistics

from tqdm import tqdm

import pyjoinopt
from benchmarks.shuffled import shuffled
from benchmarks.tpc_runs import OURS, PLAIN, Rows, Runner, Runs, check, geo_mean, spread


def run_shuffled(
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
                    check(name, variant, expected, rows)
                found[name][variant].append((min(clock for clock, _ in times), min(spent for _, spent in times)))
        spreads = {v: f"{cancelled.get(v, '')} {spread(each, 0):.2f}" for v, each in found[name].items()}
        plans = {_joined(report) for report in reports}
        tqdm.write(f"{name:<12}" + "".join(f"{spread:>16}" for spread in spreads.values()) + f"{len(plans):>11}")
    return found


def _joined(report: pyjoinopt.JoinReport) -> frozenset[frozenset[str]]:
    """The sets of relations that the joins of a plan make, whichever side is which."""
    return frozenset(frozenset(join.relations) for group in report.groups for join in group.estimated_rows)


def show_shuffled(benchmark: str, found: Runs) -> None:
    for which, what in enumerate(("seconds", "processor time")):
        for variant in (PLAIN, OURS):
            ratios = sorted(spread(each[variant], which) for each in found.values())
            total = sum(run[which] for each in found.values() for run in each[variant])
            print(
                f"{benchmark} {variant:<12} worst ÷ best order by {what}: geo-mean {geo_mean(ratios):.2f}, "
                f"median {statistics.median(ratios):.2f}, worst {ratios[-1]:.2f}, "
                f"{sum(ratio > 1.3 for ratio in ratios)} of {len(ratios)} over 1.3; all orders together {total:.1f} s"
            )
