"""Which share of a TPC query's time the planning of its joins is: for `overhead.py`."""

from __future__ import annotations

from statistics import median, quantiles
from typing import Any

from tqdm import tqdm

import pyjoinopt
from benchmarks.tpc_runs import OURS, runners_for
from tests.support import tpc

#: Seconds after which a query is cancelled, and queries that are run before any is timed.
_LIMIT, _WARM = 600.0, 10
#: How often a query is planned after it ran.
_AGAIN = 4


def print_shares(spark: Any, scale: float, runs: int) -> None:
    """Print for each query the time to plan it over files of which nothing is known, to plan it again, and its share.

    Args:
        spark: a session.
        scale: of the data.
        runs: of each query; the one that takes the least time counts for the time of the query.
    """
    columns = f"{'first, ms':>11}{'planning, ms':>14}{'planning and run, ms':>22}{'share of the query’s time':>28}"
    print(f"\n{'query':<12}{columns}")
    for benchmark in ("tpch", "tpcds"):
        reports: list[pyjoinopt.JoinReport] = []
        run = runners_for(spark, benchmark, scale, reports, _LIMIT)[OURS]
        queries, own_session = tpc.spark_queries(benchmark), spark.newSession()
        tpc.register(own_session, benchmark, scale)
        for text in list(queries.values())[:_WARM]:
            run(text)
        first, planning, shares = [], [], []
        for number, text in tqdm(queries.items(), benchmark, leave=False):
            pyjoinopt.statistics.forget()
            timed = [(run(text)[0][0], reports[-1].seconds) for _ in range(runs)]
            seconds, own = min(timed)[0], _planned_again(own_session, text)
            first.append(timed[0][1] * 1000)
            planning.append(own * 1000)
            shares.append(own / seconds)
            times = f"{first[-1]:>11.1f}{planning[-1]:>14.1f}{seconds * 1000:>22.0f}{shares[-1]:>28.1%}"
            tqdm.write(f"{f'{benchmark} {number}':<12}{times}")
        print(
            f"{benchmark}: first planning, median {median(first):.1f} ms, 90 % {_high(first):.1f} ms; "
            f"planning, median {median(planning):.1f} ms, 90 % {_high(planning):.1f} ms; "
            f"share of the query’s time, median {median(shares):.1%}, 90 % {_high(shares):.1%}, "
            f"of all {_of_all(planning, shares):.1%}"
        )


def _planned_again(spark: Any, text: str) -> float:
    """Seconds to plan a query of which all is known: the fastest of a few times, without running it."""
    reports = [pyjoinopt.optimize_joins(spark.sql(text)).join_report() for _ in range(_AGAIN)]
    return min(report.seconds for report in reports)


def _high(values: list[float]) -> float:
    """The value that nine in ten do not exceed."""
    return quantiles(values, n=10)[-1]


def _of_all(planning: list[float], shares: list[float]) -> float:
    """The planning of all queries as a share of the time of all queries."""
    return sum(planning) / sum(own / share for own, share in zip(planning, shares, strict=True))
