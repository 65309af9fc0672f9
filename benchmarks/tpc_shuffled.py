"""Runs TPC queries in random orders of their FROM lists.

The result is the worst order's time divided by the best one's, and the number of plans that pyjoinopt makes of them. An
order counts with its best run. The orders take turns in rounds, each in a random order and the next one in reverse, so
that other load affects all of them alike, and none is always the first to read its files. If all orders have one plan,
the rest is noise, which decreases with more rounds.
"""

from __future__ import annotations

import random
import statistics
from typing import NamedTuple

from tqdm import tqdm

import pyjoinopt
from benchmarks.shuffled import shuffled
from benchmarks.tpc_runs import OURS, PLAIN, Rows, Run, Runner, check, geo_mean, spread
from pyjoinopt.plan.relation_names import plain_name

#: A query whose worst order takes longer than this many times the best one's is run again.
APART = 1.3

Orders = list[list[Run]]  # the runs of each order


#: Per join of a plan, the names that it joins.
Plan = tuple[tuple[str, ...], ...]


class Shuffled(NamedTuple):
    """A query in several orders of its FROM lists, and the time of each."""

    spellings: list[str]
    times: dict[str, Orders]  # variant -> runs
    cancelled: set[tuple[str, int]]  # (variant, order) that took too long
    plans: set[Plan]  # pyjoinopt's

    def best(self, variant: str) -> list[Run]:
        """The best run of each order, by wall time and by processor time."""
        return [(min(c for c, _ in runs), min(s for _, s in runs)) for runs in self.times[variant]]

    def apart(self, variant: str, which: int) -> float:
        """The worst order's time divided by the best one's."""
        return spread(self.best(variant), which)


def run_shuffled(
    runners: dict[str, Runner], benchmark: str, queries: dict[int, str], orders: int, runs: int, seed: int,
    reports: list[pyjoinopt.JoinReport], recheck: int,
) -> dict[str, dict[str, list[Run]]]:  # fmt: skip
    """Run and print the orders, and return the best run of each, per query and variant.

    Args:
        runners: what runs a query, per variant.
        benchmark: "tpch" or "tpcds".
        queries: their texts by number; those without a FROM list of two are left out.
        orders: how many to draw of each query.
        runs: rounds over all of them.
        seed: of the random orders.
        reports: filled by pyjoinopt's runner.
        recheck: additional rounds for queries whose orders differ by more than `APART`.
    """
    print(f"\n{'query':<12}{PLAIN:>16}{OURS:>16}{'its plans':>11}   (worst order's time over the best one's)")
    found: dict[str, Shuffled] = {}
    for number, text in tqdm(queries.items(), benchmark, leave=False):
        spellings = [shuffled(text, random.Random(f"{seed} {number} {k}")) for k in range(orders)]
        if len(set(spellings)) < 2:
            continue
        name = f"{benchmark} {number}"
        found[name] = Shuffled(spellings, {variant: [[] for _ in spellings] for variant in runners}, set(), set())
        _rounds(runners, name, found[name], runs, reports)
    _show(benchmark, found)
    again = {name: each for name, each in found.items() if each.apart(OURS, 0) > APART}
    if again and recheck:
        print(f"\n{benchmark}: the {len(again)} over {APART} in {recheck} rounds more, the best of all runs")
        for name, each in tqdm(again.items(), benchmark, leave=False):
            _rounds(runners, name, each, recheck, reports)
        print()
        _show(benchmark, found)
    return {name: {variant: each.best(variant) for variant in runners} for name, each in found.items()}


def _rounds(
    runners: dict[str, Runner], name: str, query: Shuffled, rounds: int, reports: list[pyjoinopt.JoinReport]
) -> None:
    turns = [(variant, order) for variant in runners for order in range(len(query.spellings))]
    expected: Rows | None = None
    lots = random.Random(f"{name} {len(query.times[OURS][0])}")
    for number in range(rounds):
        turns = turns[::-1] if number % 2 else lots.sample(turns, len(turns))
        for variant, order in turns:
            if (variant, order) in query.cancelled:
                continue
            reports.clear()
            passed, rows = runners[variant](query.spellings[order])
            query.times[variant][order].append(passed)
            query.plans.update(map(_joined, reports))
            if rows is None:
                query.cancelled.add((variant, order))
                continue
            expected = rows if expected is None else expected
            check(name, variant, expected, rows)
    late = {variant for variant, _ in query.cancelled}
    apart = "".join(f"{'> ' * (v in late)}{query.apart(v, 0):.2f}".rjust(16) for v in runners)
    tqdm.write(f"{name:<12}{apart}{len(query.plans):>11}")


def _joined(report: pyjoinopt.JoinReport) -> Plan:
    """The sets of relations that the joins of a plan combine, independently of their sides."""
    joins = (join for group in report.groups for join in group.estimated_rows)
    return tuple(sorted(tuple(sorted(map(plain_name, join.relations))) for join in joins))


def _show(benchmark: str, found: dict[str, Shuffled]) -> None:
    for which, what in enumerate(("seconds", "processor time")):
        for variant in (PLAIN, OURS):
            apart = {name: each.apart(variant, which) for name, each in found.items()}
            total = sum(run[which] for each in found.values() for run in each.best(variant))
            over = [f"{name.split()[1]} ({ratio:.2f})" for name, ratio in apart.items() if ratio > APART]
            listed = f": {', '.join(over)}" if over and variant == OURS else ""
            mean = geo_mean(list(apart.values()))
            print(
                f"{benchmark} {variant:<12} worst ÷ best order by {what}: geo-mean {mean:.2f}, "
                f"median {statistics.median(apart.values()):.2f}, worst {max(apart.values()):.2f}, "
                f"{len(over)} of {len(apart)} over {APART}{listed}; all orders together {total:.1f} s"
            )
