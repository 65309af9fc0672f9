"""Fits the constants of the cost model to this machine or cluster.

    python -m benchmarks.calibrate [--rows 2000000] [--runs 3] [--out FILE] [--master local[2]]

Spark runs joins of Parquet tables in each of its operators, with inputs of several sizes and widths. Their times are
explained by the quantities of the model: rows passed on, rows and bytes shuffled, rows sorted, rows and bytes built
into a hash table. All factors are fitted at once by non-negative least squares of relative errors. The script prints
the result next to the constants in use, with the quality of the fit, and writes it as JSON. To use it, set
`spark.pyjoinopt.costConstants` to that file.

The tables are written first, to a folder that is removed at the end. They contain numbers in random order, prices and
short texts, so that rows are read and decoded like those of real queries.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from scipy.optimize import nnls
from tqdm import tqdm

from benchmarks.common import machine, session
from pyjoinopt.cost.constants import DEFAULT, Constants

#: The components of a time, in this order: the columns of the system of equations.
FACTORS = (
    "query", "row", "shuffle", "shuffled_row", "shuffled_byte", "sorted_row", "hashed_row",
    "broadcast", "broadcast_row", "broadcast_byte",
)  # fmt: skip

#: The columns of a table in addition to its key.
MOST_COLUMNS = 6


@dataclass(frozen=True)
class Experiment:
    """One join: an operator, rows and columns of both sides, and the share of left rows that have a match.

    Without an operator only the left side is read: this measures the cost of a query without data movement.
    """

    operator: str
    rows: tuple[int, int]
    columns: tuple[int, int]
    matched: float

    def bytes(self, side: int) -> int:
        """Bytes of a side as the estimator counts them: 8 per row and 8 per column."""
        return self.rows[side] * 8 * (1 + self.columns[side])

    def counts(self) -> list[float]:
        """The quantity of each of `FACTORS`. Reading a row counts like passing it on."""
        (probed, built), out = self.rows, self.rows[0] * self.matched
        total, moved = probed + built, self.bytes(0) + self.bytes(1)
        handed = 2 * total + out
        match self.operator:
            case "":
                return [1, 2 * probed, 0, 0, 0, 0, 0, 0, 0, 0]
            case "BROADCAST":
                return [1, handed, 0, 0, 0, 0, 0, 1, built, self.bytes(1)]
            case "SHUFFLE_HASH":
                return [1, handed, 2, total, moved, 0, built, 0, 0, 0]
            case _:
                return [1, handed, 2, total, moved, total, 0, 0, 0, 0]


def experiments(most: int) -> Iterator[Experiment]:
    """All experiments for a largest table of `most` rows."""
    for rows, columns in itertools.product((most, most // 4, most // 100), (1, 6)):
        yield Experiment("", (rows, 0), (columns, 0), 1.0)
    for built, columns, matched in itertools.product((most // 1000, most // 50, most // 8), (1, 6), (1.0, 0.1)):
        yield Experiment("BROADCAST", (most, built), (2, columns), matched)
    yield Experiment("BROADCAST", (most // 8, most // 1000), (2, 1), 1.0)
    for operator in ("SHUFFLE_HASH", "MERGE"):
        for probed, built, columns in itertools.product((most, most // 4), (most // 4, most // 40), (1, 6)):
            yield Experiment(operator, (probed, built), (columns, columns), 1.0)
        yield Experiment(operator, (most, most // 4), (1, 6), 0.1)
        yield Experiment(operator, (most // 100, most // 100), (1, 1), 1.0)


class Tables:
    """Parquet tables of any size, written when they are first needed.

    Args:
        spark: the session.
        folder: for the files.
    """

    def __init__(self, spark: Any, folder: Path) -> None:
        self._spark = spark
        self._folder = folder

    def __call__(self, rows: int) -> Any:
        """A table with a column `id` and `MOST_COLUMNS` others: numbers, prices and texts by turns."""
        path = self._folder / str(rows)
        if not path.exists():
            kinds = ("CAST({} % 100000 AS int)", "CAST({} % 100000 AS decimal(7, 2))", "CAST({} % 1000 AS string)")
            random = [f"abs(xxhash64(id, {i}))" for i in range(MOST_COLUMNS)]
            columns = [f"{kinds[i % 3].format(value)} AS c{i}" for i, value in enumerate(random)]
            partitions = 2 * self._spark.sparkContext.defaultParallelism
            self._spark.range(0, rows, 1, partitions).selectExpr("id", *columns).write.parquet(str(path))
        return self._spark.read.parquet(str(path))


def run(tables: Tables, experiment: Experiment) -> float:
    """Seconds that a join takes, from its plan to its last row; the rows are discarded."""
    from pyspark.sql import functions as F

    (probed, built), (of_left, of_right) = experiment.rows, experiment.columns
    keys = max(1, round(built / experiment.matched))
    # Keys in no order: a multiplication by a prime modulo the number of keys.
    key = F.col("id") * 7919 % keys
    result = tables(probed).select(key.alias("k"), *[F.col(f"c{i}").alias(f"a{i}") for i in range(of_left - 1)])
    if experiment.operator:
        columns = [F.col(f"c{i}").alias(f"b{i}") for i in range(of_right - 1)]
        result = result.join(tables(built).select(F.col("id").alias("k"), *columns).hint(experiment.operator), "k")
    started = perf_counter()
    result.write.format("noop").mode("overwrite").save()
    return perf_counter() - started


def fit(done: list[tuple[Experiment, float]]) -> tuple[dict[str, float], list[float]]:
    """The seconds of each factor, and the ratio of explained to measured time of each experiment."""
    counts = np.array([experiment.counts() for experiment, _ in done], dtype=float)
    seconds = np.array([time for _, time in done])
    found, _ = nnls(counts / seconds[:, None], np.ones(len(done)))
    return dict(zip(FACTORS, found.tolist(), strict=True)), (counts @ found / seconds).tolist()


def constants(seconds: dict[str, float]) -> Constants:
    """The constants in units of the model: 1 is a row passed through one operator."""
    unit = seconds["row"] or 1e-9
    return Constants(**{name: float(f"{seconds[name] / unit:.3g}") for name in asdict(DEFAULT)})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000, help="of the largest table (default 2,000,000)")
    parser.add_argument("--runs", type=int, default=3, help="of each join; the fastest counts (default 3)")
    parser.add_argument("--out", type=Path, default=Path("cost_constants.json"))
    parser.add_argument("--master", default="local[2]")
    chosen = parser.parse_args()
    if chosen.rows < 100_000 or chosen.runs < 1:
        parser.error("at least 100,000 rows and one run are needed to tell anything")
    spark = session(**{"spark.master": chosen.master, "spark.sql.adaptive.enabled": "false"})
    planned = list(experiments(chosen.rows))
    best = dict.fromkeys(planned, float("inf"))
    with tempfile.TemporaryDirectory() as folder:
        tables = Tables(spark, Path(folder))
        for _ in tqdm(range(chosen.runs + 1), "rounds"):  # the first one warms up; a slow one is never the fastest
            for experiment in tqdm(planned, "joins", leave=False):
                best[experiment] = min(best[experiment], run(tables, experiment))
    seconds, explained = fit(list(best.items()))
    found = constants(seconds)
    print(f"{machine()}, {chosen.master}, Spark {spark.version}, up to {chosen.rows:,} rows")
    print(f"a row through an operator: {seconds['row'] * 1e9:.1f} ns; a query of no rows: {seconds['query']:.3f} s\n")
    print(f"{'constant':<16}{'fitted':>12}{'default':>12}")
    for name, value in asdict(found).items():
        print(f"{name:<16}{value:>12,.3g}{getattr(DEFAULT, name):>12,.3g}")
    off = sorted(abs(ratio - 1) for ratio in explained)
    print(f"\nexplained ÷ measured time: off by {statistics.median(off):.0%} in the median, {off[-1]:.0%} at most")
    for (experiment, time), ratio in zip(best.items(), explained, strict=True):
        name, sizes = experiment.operator or "only read", f"{experiment.rows!s:<22}{experiment.columns!s:<9}"
        print(f"  {name:<13}{sizes}{time:>8.3f} s{ratio:>7.2f}")
    chosen.out.write_text(json.dumps(asdict(found), indent=1) + "\n")
    print(f"\nwritten; to use them: --conf spark.pyjoinopt.costConstants={chosen.out.resolve()}")
    spark.stop()


if __name__ == "__main__":
    main()
