"""Grades the constants that were fitted to a benchmark, each on data that it was not fitted to.

    python -m benchmarks.held_out --data DIR            # DIR as for job.py
    python -m benchmarks.held_out --data DIR --only equality,pattern_letter

A default share or exponent of the estimator (`estimation/model/assumptions.py`) is halved and doubled, one at a time.
Three grades show what it is good for:

* Join Order Benchmark: geometric mean of the true C_out over the optimum, default model and search, column statistics
  without histograms (`job.py`);
* flights of 2013 from New York and TPC-H: q-errors of sub-plans in the median and at 90 %, by the footers of the files
  alone (`estimates.py`), for a sample replaces most of these constants.

A constant that was fitted to one of them should be near its best for the others, too. Three columns show how much the
grades rest on: of each workload the number of queries whose estimates depend on the constant, and the numbers of
results (of orders for JOB, of sub-plans for the others) that the changed value makes better and worse.

Spark resolves every query once, and reads the statistics of its tables. All else is Python and is repeated for each
value. Of the first estimates of a query it is known which constants they read; a query is estimated and searched again
only for these. True counts are stored as for `estimates.py`: the first run takes some minutes for them.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks import job
from benchmarks.common import machine, session
from benchmarks.grading import percentile, summary
from benchmarks.injection import create_table
from benchmarks.workload_grader import WorkloadGrader
from benchmarks.workloads import of_benchmark, of_flights
from pyjoinopt.cost import SparkCost
from pyjoinopt.estimation.model.assumptions import ASSUMPTIONS, Assumptions

#: The fitted constants, and what each was fitted to.
FITTED = {
    "equality": "JOB",
    "popular_text": "JOB",
    "pattern_prefix": "JOB",
    "pattern_contains": "JOB",
    "pattern_letter": "JOB",
    "popular_reference": "JOB",
    "filled_range": "TPC-DS",
    "rows_per_composite_value": "TPC-DS",
}
FACTORS = (0.5, 2.0)
JOB, FLIGHTS, TPCH = WORKLOADS = ("JOB", "flights", "TPC-H")
#: Results that are nearer to each other are equal.
_ROUNDING = 1e-6
GRADES = ("JOB", "flights, median", "flights, 90 %", "TPC-H, median", "TPC-H, 90 %")


@contextmanager
def read_through(name: str, read: Callable[[], float]) -> Iterator[None]:
    """Let all modules get a constant from a function; they share one instance of the constants."""
    slot = Assumptions.__dict__[name]
    setattr(Assumptions, name, property(lambda _: read()))
    try:
        yield
    finally:
        setattr(Assumptions, name, slot)


@contextmanager
def reads() -> Iterator[set[str]]:
    """The names of the fitted constants that are read inside."""
    seen: set[str] = set()

    def read(name: str, value: float) -> float:
        seen.add(name)
        return value

    with ExitStack() as stack:
        for name in FITTED:
            stack.enter_context(read_through(name, partial(read, name, getattr(ASSUMPTIONS, name))))
        yield seen


@dataclass(frozen=True)
class Graded:
    """A query, its results with the constants as they are, and the constants that these depend on."""

    grade: Callable[[], list[float]]
    results: list[float]
    depends_on: frozenset[str]

    def again(self, name: str) -> list[float]:
        """The results after a constant has changed."""
        return self.grade() if name in self.depends_on else self.results


def graded(grade: Callable[[], list[float]]) -> Graded:
    """Grade a query, and take note of the constants."""
    with reads() as seen:
        results = grade()
    return Graded(grade, results, frozenset(seen))


def read_workloads(data: Path) -> dict[str, list[Graded]]:
    """The queries of all workloads. Needs Spark; what they return does not."""
    spark = session(**{"spark.sql.cbo.enabled": "true", "spark.sql.session.timeZone": "UTC"})
    for name, known in json.loads((data / "imdb_statistics.json").read_text(encoding="utf-8")).items():
        create_table(spark, name, known, histograms=False)
    resolved = [job.resolve(spark, requested) for requested in job.read_queries(data)]
    print(f"{machine()}, Spark {spark.version}", flush=True)
    found = {JOB: [graded(partial(_worse_than_best, query)) for query in resolved]}
    for name, workload in ((FLIGHTS, of_flights()), (TPCH, of_benchmark("tpch", 0.1))):
        found[name] = [graded(query.errors) for query in WorkloadGrader(spark, workload).by_footers()]
    spark.stop()
    return found


def _worse_than_best(query: job.Resolved) -> list[float]:
    found = query.planned()
    return [job.grade_by_default(found, SparkCost(), found.statistics)]


def grades(results: dict[str, list[list[float]]]) -> list[float]:
    """The grades of the results of all queries, in the order of `GRADES`."""
    figures = [summary(factor for query in results[JOB] for factor in query).mean]
    for name in (FLIGHTS, TPCH):
        errors = sorted(error for query in results[name] for error in query)
        figures += [percentile(errors, 0.5), percentile(errors, 0.9)]
    return figures


def differences(before: dict[str, list[list[float]]], after: dict[str, list[list[float]]]) -> tuple[str, str]:
    """How many results of each workload are better, and how many are worse, as texts such as `3/0/1`."""
    better, worse = [], []
    for old, new in ((before[name], after[name]) for name in WORKLOADS):
        ratios = [b / a for one, other in zip(old, new) for a, b in zip(one, other)]
        better.append(sum(ratio < 1 - _ROUNDING for ratio in ratios))
        worse.append(sum(ratio > 1 + _ROUNDING for ratio in ratios))
    return "/".join(map(str, better)), "/".join(map(str, worse))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with job.jsonl.gz and imdb_statistics.json")
    parser.add_argument("--only", metavar="NAMES", default=",".join(FITTED), help="constants, separated by commas")
    parser.add_argument("--factors", metavar="NUMBERS", default=",".join(map(str, FACTORS)), help="(default: 0.5,2)")
    options = parser.parse_args()
    names, factors = options.only.split(","), [float(factor) for factor in options.factors.split(",")]
    if unknown := set(names) - FITTED.keys():
        parser.error(f"{', '.join(sorted(unknown))}: not among the fitted constants, which are {', '.join(FITTED)}")
    started = time.perf_counter()
    workloads = read_workloads(options.data)
    for workload, queries in workloads.items():
        print(f"{workload}: {len(queries)} queries, {sum(len(q.results) for q in queries)} results")
    print(f"resolved and graded in {time.perf_counter() - started:.0f} s\n")
    started = time.perf_counter()
    _show("", "value", "fitted to", ("queries", "better", "worse"), GRADES)
    before = {workload: [query.results for query in queries] for workload, queries in workloads.items()}
    _show("as they are", "", "", ("", "", ""), map(_figure, grades(before)))
    for name in names:
        depend = "/".join(str(sum(name in query.depends_on for query in queries)) for queries in workloads.values())
        for factor in factors:
            value = factor * getattr(ASSUMPTIONS, name)
            with read_through(name, partial(float, value)):
                after = {workload: [query.again(name) for query in queries] for workload, queries in workloads.items()}
            counts = (depend, *differences(before, after))
            _show(name, f"{value:g}", FITTED[name], counts, map(_figure, grades(after)))
    print(f"\n{len(names) * len(factors)} changed values in {time.perf_counter() - started:.0f} s")


def _figure(x: float) -> str:
    return f"{x:,.2f}"


def _show(name: str, value: str, fitted: str, counts: Iterable[str], figures: Iterable[str]) -> None:
    listed = "".join(f"{x:>12}" for x in counts) + "".join(f"{x:>17}" for x in figures)
    print(f"{name:<26}{value:>9}  {fitted:<10}{listed}", flush=True)


if __name__ == "__main__":
    main()
