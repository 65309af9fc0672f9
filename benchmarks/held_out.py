"""Grades the constants that were fitted to a benchmark, each on data that it was not fitted to.

    python -m benchmarks.held_out --data DIR            # DIR as for job.py

A default share or exponent of the estimator (`estimation/model/assumptions.py`) is halved and doubled, one at a time,
each in a process of its own. Three grades show what it is good for:

* Join Order Benchmark: geometric mean of the true C_out over the optimum, default model and search, column statistics
  without histograms (`job.py`);
* flights of 2013 from New York and TPC-H: q-errors of sub-plans in the median and at 90 %, by the footers of the files
  alone (`estimates.py`), for a sample replaces most of these constants.

A constant that was fitted to one of them should be near its best for the others, too.
"""

from __future__ import annotations

import argparse
import importlib.abc
import importlib.machinery
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

# Replaces this folder, whose `statistics` would shadow Python's own.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

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
GRADES = ("JOB", "flights, median", "flights, 90 %", "TPC-H, median", "TPC-H, 90 %")
_MODULE = "pyjoinopt.estimation.model.assumptions"


class _Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads the module of the constants with another value of one; others bind them when they are imported."""

    def __init__(self, name: str, value: float) -> None:
        self._name, self._value = name, value
        self._loader: Any = None

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> Any:
        spec = importlib.machinery.PathFinder.find_spec(fullname, path) if fullname == _MODULE else None
        if spec is not None:
            self._loader, spec.loader = spec.loader, self
        return spec

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        changed: Any = module
        changed.ASSUMPTIONS = replace(changed.ASSUMPTIONS, **{self._name: self._value})


def grades(data: Path) -> list[float]:
    """The grades, in the order of `GRADES`."""
    from benchmarks import job
    from benchmarks.common import session
    from benchmarks.grading import percentile, summary
    from benchmarks.injection import create_table
    from benchmarks.workload_grader import WorkloadGrader
    from benchmarks.workloads import of_benchmark, of_flights
    from pyjoinopt.cost import SparkCost

    spark = session(**{"spark.sql.cbo.enabled": "true", "spark.sql.session.timeZone": "UTC"})
    statistics = json.loads((data / "imdb_statistics.json").read_text(encoding="utf-8"))
    for name, known in statistics.items():
        create_table(spark, name, known, histograms=False)
    queries = [job.plan(spark, requested) for requested in job.read_queries(data)]
    figures = [summary(job.grade_by_default(q, SparkCost(), q.statistics) for q in queries).mean]
    for workload in (of_flights(), of_benchmark("tpch", 0.1)):
        errors = sorted(p.error("footers") or 1.0 for p in WorkloadGrader(spark, workload).grades().plans)
        figures += [percentile(errors, 0.5), percentile(errors, 0.9)]
    spark.stop()
    return figures


def _in_process(data: Path, change: str | None) -> list[float]:
    command = [sys.executable, "-m", "benchmarks.held_out", "--data", str(data), "--with", change or ""]
    output = subprocess.run(command, check=True, capture_output=True, text=True, cwd=sys.path[0]).stdout
    found: list[float] = json.loads(output.splitlines()[-1])
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with job.jsonl.gz and imdb_statistics.json")
    parser.add_argument(
        "--with", dest="change", metavar="NAME=VALUE", help="print the grades with one constant changed"
    )
    options = parser.parse_args()
    if options.change is not None:
        if options.change:
            name, _, value = options.change.partition("=")
            sys.meta_path.insert(0, _Changed(name, float(value)))
        print(json.dumps(grades(options.data)))
        return
    print(f"{'':<26}{'value':>9}  {'fitted to':<10}{''.join(f'{name:>17}' for name in GRADES)}")
    _show("as they are", "", "", _in_process(options.data, None))
    from pyjoinopt.estimation.model.assumptions import ASSUMPTIONS

    for name, benchmark in FITTED.items():
        for factor in (0.5, 2.0):
            value = factor * getattr(ASSUMPTIONS, name)
            _show(name, f"{value:g}", benchmark, _in_process(options.data, f"{name}={value}"))


def _show(name: str, value: str, fitted: str, figures: Sequence[float]) -> None:
    print(f"{name:<26}{value:>9}  {fitted:<10}{''.join(f'{x:>17,.2f}' for x in figures)}", flush=True)


if __name__ == "__main__":
    main()
