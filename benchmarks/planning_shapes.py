"""Queries of known shapes, and how long it takes to plan them: for `overhead.py`.

All tables are tiny, stored and ANALYZEd: chain tables t0 … tn (a unique key k, a foreign key f to the next table, a
value v) and a fact table with a column for each of thirty dimensions, which are t0 … t29.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter, thread_time
from typing import Any

import pyjoinopt
from benchmarks.common import measure
from benchmarks.search import measure as search_seconds
from pyjoinopt.cost import cost_model
from pyjoinopt.joins.search.choose_order import BUDGET

DIMENSIONS, RELATIONS = 30, 51


def tables(spark: Any, count: int) -> None:
    """Chain tables t0 … tn, stored and ANALYZEd."""
    from pyspark.sql import functions as F

    for i in range(count):
        rows = 200 + 37 * ((i * 7) % 11)
        frame = spark.range(rows).select(
            F.col("id").alias(f"k{i}"), (F.col("id") % (rows // 2)).alias(f"f{i}"), (F.col("id") % 13).alias(f"v{i}")
        )
        _store(spark, frame, f"t{i}")


def fact_table(spark: Any) -> None:
    """The fact table of the stars: d0 … d29, each a foreign key of the chain table of that number."""
    from pyspark.sql import functions as F

    keys = [(F.col("id") % (20 + i)).alias(f"d{i}") for i in range(DIMENSIONS)]
    _store(spark, spark.range(5000).select("id", *keys), "fact")


def _store(spark: Any, frame: Any, name: str) -> None:
    frame.coalesce(1).write.mode("overwrite").saveAsTable(name)
    spark.sql(f"ANALYZE TABLE {name} COMPUTE STATISTICS FOR ALL COLUMNS")


def chain(joins: int, other: int = 0) -> str:
    """`joins` joins in a FROM list that zigzags through the chain; each `other` makes a new query."""
    order = [i for pair in zip(range(joins + 1), range(joins, -1, -1)) for i in pair][: joins + 1]
    predicates = [f"t{i}.f{i} = t{i + 1}.k{i + 1}" for i in range(joins)]
    filters = [f"t{i}.v{i} < 5" for i in range(0, joins + 1, 3)]
    names = ", ".join(f"t{i}" for i in dict.fromkeys([*order, *range(joins + 1)]))
    return f"SELECT count(*) AS n, sum(v0 + {other}) AS s FROM {names} WHERE {' AND '.join(predicates + filters)}"


def star(dimensions: int) -> str:
    """Inner joins of the fact table with its dimensions, every second one filtered."""
    keys = [f"fact.d{i} = t{i}.k{i}" for i in range(dimensions)]
    filters = [f"t{i}.v{i} < {3 + i % 5}" for i in range(0, dimensions, 2)]
    names = ", ".join(f"t{i}" for i in range(dimensions))
    return f"SELECT count(*) FROM fact, {names} WHERE {' AND '.join(keys + filters)}"


def left_star(dimensions: int, unique: bool = True) -> str:
    """Left joins of the fact table with its dimensions, by their unique keys or by columns that are not unique."""
    joins = " ".join(f"LEFT JOIN t{i} ON fact.d{i} = t{i}.{'k' if unique else 'f'}{i}" for i in range(dimensions))
    return f"SELECT fact.id, {', '.join(f'v{i}' for i in range(dimensions))} FROM fact {joins}"


@dataclass(frozen=True)
class Shape:
    """A query, and the target for a warm call on a quiet machine, in milliseconds."""

    name: str
    query: str
    target: float | None


SHAPES = (
    Shape("5 joins", chain(5), 8.0),
    Shape("10 joins", chain(10), 12.0),
    Shape("30 joins", chain(30), None),
    Shape("star, 30 left joins, unique", left_star(30), 40.0),
    Shape("star, 10 left joins, unique", left_star(10), None),
    Shape("star, 10 left joins, not unique", left_star(10, unique=False), None),
    Shape("star, 12 dimensions", star(12), 12.0),
    Shape("chain, 50 relations", chain(49), 25.0),
)
#: Shapes and relations of which only the search is timed, and the targets in seconds: Spark itself takes minutes.
SEARCHES = (("chain", 1000, 2.5), ("star", 1000, 2.5), ("random", 1000, 2.5))


def print_shapes(spark: Any, repeat: int) -> None:
    """Print the times of a call for each shape.

    Processor time is that of the thread here and of the JVM's thread that serves it, without other load on the machine.
    """
    fact_table(spark)
    head = f"{'shape':<38}{'target':>7}{'first':>8}{'median':>8}{'fastest':>9}{'processor':>11}{'search':>8}"
    print(f"\n{head}{'pairs':>8}  strategy")
    for shape in SHAPES:
        frame = spark.sql(shape.query)

        def call(frame: Any = frame) -> Any:
            return pyjoinopt.optimize_joins(frame)

        first = _milliseconds(call)
        times = measure(call, repeat, warm=20)
        spent = [_processor_milliseconds(spark, call) for _ in range(repeat)]
        group = min((call().join_report().groups[0] for _ in range(5)), key=lambda group: group.seconds)
        target = "-" if shape.target is None else f"{shape.target:.0f}"
        print(
            f"{shape.name:<38}{target:>7}{first:>8.1f}{median(times):>8.1f}{times[0]:>9.1f}{median(spent):>11.1f}"
            f"{group.seconds * 1000:>8.1f}{group.pairs:>8}  {group.strategy}",
            flush=True,
        )
    for name, relations, target in SEARCHES:
        seconds, found = search_seconds(name, relations, cost_model("spark", {}), BUDGET, 3)
        print(
            f"{f'{name}, {relations:,} relations, search only':<38}{target * 1000:>7.0f}{'':>36}"
            f"{seconds * 1000:>8.0f}{found.pairs:>8}  {found.strategy}",
            flush=True,
        )


def _milliseconds(run: Callable[[], object]) -> float:
    started = perf_counter()
    run()
    return (perf_counter() - started) * 1000


def _processor_milliseconds(spark: Any, run: Callable[[], object]) -> float:
    threads = spark._jvm.java.lang.management.ManagementFactory.getThreadMXBean()
    started, there = thread_time(), threads.getCurrentThreadCpuTime()
    run()
    return (thread_time() - started) * 1000 + (threads.getCurrentThreadCpuTime() - there) / 1e6
