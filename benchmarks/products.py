"""Measures the benefit of a cross product of two tiny relations: one join by two keys instead of two joins by one key
each.

    python -m benchmarks.products [--rows 8000000] [--runs 8]

Spark packs the keys of a hash table into one long if they fit, and otherwise hashes their bytes
(`HashJoin.rewriteKeyExpr`). The first table joins a large relation with one of five and one of seven rows, or with the
thirty-five rows of their product, by ints and by bigints. The others run the TPC-DS queries that get such products,
whose keys are bigints: in plain Spark, with products, and without. All variants take turns.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
from collections.abc import Callable
from time import perf_counter
from typing import Any

from benchmarks.common import machine, session
from benchmarks.generated_code import GeneratedCode
from pyjoinopt.joins.search import pair_budget
from tests.support import tpc

QUERIES = (66, 99)
WARM = 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=8_000_000, help="of the large relation")
    parser.add_argument("--runs", type=int, default=8)
    chosen = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    spark = session(**{"spark.driver.memory": "8g", "spark.sql.shuffle.partitions": "200"})
    print(f"{machine()}, Spark {spark.version}; seconds, best and median of {chosen.runs} runs\n")
    _show(_lookups(spark, chosen.rows), chosen.runs)
    tpc.register(spark, "tpcds", 1.0)
    texts = tpc.spark_queries("tpcds")
    for number in [*list(texts)[:WARM], *QUERIES]:
        variants = _variants(spark, texts[number])
        if number in QUERIES:
            print(f"\ntpcds {number}")
            _show(variants, chosen.runs)
        else:
            for run in variants.values():
                run()
    spark.stop()


def _lookups(spark: Any, rows: int) -> dict[str, Callable[[], object]]:
    """Joins of a large relation with two tiny ones, separately and as a product."""
    with_keys = "id % 5 a", "id % 7 b", "id c", "cast(id % 5 as int) ia", "cast(id % 7 as int) ib"
    path = tempfile.mkdtemp()
    spark.range(rows).selectExpr(*with_keys).write.mode("overwrite").parquet(path)
    spark.read.parquet(path).createOrReplaceTempView("large")
    for name, count in (("five", 5), ("seven", 7), ("both", 35)):
        spark.range(count).selectExpr(*with_keys).write.mode("overwrite").parquet(f"{path}-{name}")
        spark.read.parquet(f"{path}-{name}").createOrReplaceTempView(name)
    texts = {"no lookup": "SELECT sum(a), sum(b), sum(c) FROM large"}
    for type, a, b in (("int", "ia", "ib"), ("bigint", "a", "b")):
        texts[f"two by one {type} each"] = (
            f"SELECT sum(large.c), sum(f.c + s.c) FROM large JOIN five f USING ({a}) JOIN seven s USING ({b})"
        )
        texts[f"one by two {type}s"] = f"SELECT sum(large.c), sum(p.c) FROM large JOIN both p USING ({a}, {b})"
    # A DataFrame that has run keeps its stages' results, so each run has one of its own.
    return {name: lambda text=text: spark.sql(text).collect() for name, text in texts.items()}  # type: ignore[misc]


def _variants(spark: Any, text: str) -> dict[str, Callable[[], object]]:
    code, own = GeneratedCode(spark), pair_budget.TINY

    def run(tiny: float) -> None:
        code.forget()
        pair_budget.TINY = tiny
        try:
            spark.sql(text).optimize_joins().collect()
        finally:
            pair_budget.TINY = own

    def plain() -> None:
        code.forget()
        spark.sql(text).collect()

    return {"as it comes": plain, "with products": lambda: run(own), "without": lambda: run(0.0)}


def _show(variants: dict[str, Callable[[], object]], runs: int) -> None:
    times: dict[str, list[float]] = {name: [] for name in variants}
    for turn in range(runs + 1):  # the first one is not counted
        for name in random.Random(turn).sample(list(variants), len(variants)):
            started = perf_counter()
            variants[name]()
            if turn:
                times[name].append(perf_counter() - started)
    for name, passed in times.items():
        print(f"{name:<24}{min(passed):>8.2f}{statistics.median(passed):>8.2f}")


if __name__ == "__main__":
    main()
