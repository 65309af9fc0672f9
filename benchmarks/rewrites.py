"""Runs the queries that a rewrite changes with all rewrites, and with all but that one.

    python -m benchmarks.rewrites [--only prefilter_joins,fuse_aggregates] [--benchmarks tpch,tpcds] [--scale 1]
                                  [--runs 2]

The queries are those of TPC-H and TPC-DS, and of `further_queries.py` over the same tables. One is changed by a rewrite
if its optimised plan is another one when the rewrite is switched off by name (`rewrites_without`). Each is planned a
few times before, so that samples and proofs that arrive later do not make the difference. Then both variants and plain
Spark take turns, in a random order and then in reverse, with all generated code compiled again and all results
compared, as in `tpc.py`. The best of the runs counts, by wall time and by processor time of Spark's JVM and this
process.

The table of a rewrite ends with geometric means: what the rewrite does to the queries that it changes. At a geometric
mean of 1 or more it does not pay.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tqdm import tqdm

import pyjoinopt
from benchmarks.common import machine, session
from benchmarks.further_queries import FURTHER
from benchmarks.tpc_runs import PLAIN, Rows, Run, Runner, check, geo_mean, runner_over_files
from pyjoinopt.config import REWRITES
from tests.support import tpc

WITH, WITHOUT = "with it", "without it"
#: How often a query is planned before its plans are compared: samples and proofs of the first time serve the next.
_PLANNED = 3
#: Queries that each variant runs before any is timed.
_WARM = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=rewrite_names, default=REWRITES, help="only these rewrites, separated by commas")
    parser.add_argument("--benchmarks", type=lambda text: text.split(","), default=["tpch", "tpcds"])
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=2)
    chosen = parser.parse_args()
    if unknown := set(chosen.benchmarks) - set(tpc.GENERATORS):
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}; there are tpch and tpcds")
    if chosen.runs < 1:
        parser.error(f"--runs is {chosen.runs}, but must be at least 1")
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    spark = session(**{"spark.driver.memory": "8g", "spark.sql.shuffle.partitions": "200"})
    print(f"{machine()}, Spark {spark.version}, scale {chosen.scale:g}, the best of {chosen.runs} runs")
    changed = {
        benchmark: _changed_queries(spark, benchmark, chosen.scale, chosen.only) for benchmark in chosen.benchmarks
    }
    for name in chosen.only:
        numbers = [(benchmark, n) for benchmark, of in changed.items() for n in of[name]]
        _print_times(spark, name, numbers, chosen.scale, chosen.runs)
    spark.stop()


def rewrite_names(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    if unknown := set(names) - set(REWRITES):
        raise argparse.ArgumentTypeError(
            f"no such rewrite: {', '.join(sorted(unknown))}; there are {', '.join(REWRITES)}"
        )
    return names


def _queries(benchmark: str) -> dict[str, str]:
    """The texts of a benchmark's queries, and of further ones over its tables, by number or name."""
    return {**{str(number): text for number, text in tpc.spark_queries(benchmark).items()}, **FURTHER[benchmark]}


def _changed_queries(spark: Any, benchmark: str, scale: float, names: Sequence[str]) -> dict[str, list[str]]:
    """Rewrite -> the queries whose plan is another one without it."""
    own = spark.newSession()
    tpc.register(own, benchmark, scale)
    found: dict[str, list[str]] = {name: [] for name in names}
    for number, text in tqdm(_queries(benchmark).items(), f"{benchmark}: plans", leave=False):
        for _ in range(_PLANNED):
            whole = _plan(own.sql(text))
        for name in names:
            if _plan(own.sql(text), rewrites_without=name) != whole:
                whole = _plan(own.sql(text))  # samples may have come in between
                if _plan(own.sql(text), rewrites_without=name) != whole:
                    found[name].append(number)
    return found


def _plan(df: Any, **options: Any) -> str:
    """The optimised plan without the ids of its columns."""
    plan = pyjoinopt.optimize_joins(df, **options)._jdf.queryExecution().optimizedPlan().canonicalized()
    return re.sub(r"#\d+L?", "#", str(plan.toString()))


def _print_times(spark: Any, name: str, queries: Sequence[tuple[str, str]], scale: float, runs: int) -> None:
    """Print what a rewrite does to the time of the queries that it changes."""
    print(f"\n{name}: changes {len(queries)} queries")
    if not queries:
        return
    heads = "".join(f"{head:>14}" for head in (PLAIN, WITHOUT, WITH, "with/without", "processors"))
    print(f"{'seconds':<26}{heads}")
    texts = {benchmark: _queries(benchmark) for benchmark, _ in queries}
    runners = {benchmark: _runners(spark, benchmark, scale, name) for benchmark in texts}
    for benchmark, of in runners.items():
        for text in list(texts[benchmark].values())[:_WARM]:
            for run in of.values():
                run(text)
    ratios: list[Run] = []
    for benchmark, number in tqdm(queries, name, leave=False):
        query = f"{benchmark} {number}"
        best = _best_times(runners[benchmark], query, texts[benchmark][number], runs)
        with_it, without = best[WITH], best[WITHOUT]
        ratios.append((with_it[0] / without[0], with_it[1] / max(0.01, without[1])))
        seconds = "".join(f"{best[variant][0]:>14.2f}" for variant in (PLAIN, WITHOUT, WITH))
        tqdm.write(f"{query:<26}{seconds}{ratios[-1][0]:>14.2f}{ratios[-1][1]:>14.2f}")
    means = [geo_mean([ratio[which] for ratio in ratios]) for which in (0, 1)]
    print(f"{'geo-mean':<26}{'':>42}{means[0]:>14.3f}{means[1]:>14.3f}")


def _runners(spark: Any, benchmark: str, scale: float, name: str) -> dict[str, Runner]:
    variants: dict[str, Callable[[Any], Any]] = {
        PLAIN: lambda df: df,
        WITHOUT: partial(pyjoinopt.optimize_joins, rewrites_without=name),
        WITH: pyjoinopt.optimize_joins,
    }
    return {variant: runner_over_files(spark, benchmark, scale, prepare) for variant, prepare in variants.items()}


def _best_times(runners: dict[str, Runner], query: str, text: str, runs: int) -> dict[str, Run]:
    """Variant -> its best seconds, and its best processor seconds."""
    order, lots = list(runners), random.Random(query)
    found: dict[str, list[Run]] = {variant: [] for variant in runners}
    expected: Rows | None = None
    for turn in range(runs):
        order = order[::-1] if turn % 2 else lots.sample(order, len(order))
        for variant in order:
            passed, rows = runners[variant](text)
            assert rows is not None
            expected = rows if expected is None else expected
            check(query, variant, expected, rows)
            found[variant].append(passed)
    return {variant: (min(r[0] for r in each), min(r[1] for r in each)) for variant, each in found.items()}


if __name__ == "__main__":
    main()
