"""Runs TPC queries again and again in a session with feedback: does it get slower, and does a bad plan go away?

    python -m benchmarks.recurring [tpch|tpcds] [--scale 1] [--rounds 3] [--queries 3,5] [--misled]

First every query runs twice as written (`strategy = none`), so that its time is known. Then come the rounds: in each,
every query runs in a plain session and in the learning one, in random order, compiled anew. The table has the seconds
of each round, and whether the query ran as written then. The targets: in the last round no query takes over 1.1 times
the time as written outside the noise, and the geometric mean is not above that of the first round.

`--misled` makes the plans bad on purpose: after the runs as written, the numbers of rows in the store are inverted (a
table of a million rows has one row, and one of ten has 100,000), and samples and proofs, which would correct them, are
switched off. So are hints: broadcast hints would be based on the falsified numbers, and would fill the memory of the
driver, which runs the tasks here. A query that became slower should be back at its written time in the third round.
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import pyjoinopt
from benchmarks.common import machine, session
from benchmarks.generated_code import GeneratedCode
from benchmarks.tpc_runs import check
from pyjoinopt.estimation.store.store import Store
from pyjoinopt.feedback.query_rows import rows_of_plans
from pyjoinopt.feedback.query_store import QueryStore
from tests.support import tpc

#: Runs as written before the first round.
BASELINE = 2
#: A ratio above it is listed.
SLOWER = 1.1
#: Rows of a table and of what `--misled` makes of it, multiplied.
INVERTED = 1e6
#: Sources that would correct the inverted numbers.
CORRECTING = "samples,keys,bounds,feedback"


class Learning:
    """A session with feedback and a store of its own."""

    def __init__(self, spark: Any, benchmark: str, scale: float, misled: bool) -> None:
        self.path = Path(tempfile.mkdtemp()) / "statistics.sqlite"
        Store(self.path).state()  # creates the tables
        self.session = spark.newSession()
        tpc.register(self.session, benchmark, scale)
        without: dict[str, Any] = {"statistics_without": CORRECTING, "hints": False} if misled else {}
        pyjoinopt.enable(self.session, feedback=True, store=str(self.path), **without)
        self.session.conf.set("spark.pyjoinopt.timeout", "60s")

    def recorded(self) -> int:
        """How many runs the store has, including those that it has dropped since: the number of the last one."""
        with sqlite3.connect(self.path) as store:
            return int(store.execute("SELECT coalesce(max(id), 0) FROM run").fetchone()[0])

    def wait_for_record(self, before: int) -> None:
        """Wait until a run is in the store; a query without joins to order has none."""
        self.session.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        until = time.monotonic() + 1.0
        while self.recorded() == before and time.monotonic() < until:
            time.sleep(0.01)

    def invert(self) -> None:
        """Make large tables small and small ones large, in the statistics that were stored."""
        Store(self.path).close()
        with sqlite3.connect(self.path) as store:
            store.execute(f"UPDATE relation SET rows = max(1, {INVERTED} / max(1, rows))")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("benchmark", nargs="?", default="tpch", choices=sorted(tpc.GENERATORS))
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--queries", type=lambda text: [int(n) for n in text.split(",")], help="only these numbers")
    parser.add_argument("--misled", action="store_true", help="with inverted numbers of rows")
    chosen = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    spark = session(**{"spark.driver.memory": "8g", "spark.sql.shuffle.partitions": "200"})
    print(f"{machine()}, Spark {spark.version}, {chosen.benchmark} at scale {chosen.scale:g}, {chosen.rounds} rounds")
    plain = spark.newSession()
    tpc.register(plain, chosen.benchmark, chosen.scale)
    learning = Learning(spark, chosen.benchmark, chosen.scale, chosen.misled)
    only = chosen.queries
    queries = {n: q for n, q in tpc.spark_queries(chosen.benchmark).items() if only is None or n in only}
    code = GeneratedCode(spark)

    def run(where: Any, text: str) -> tuple[float, list[Any]]:
        code.forget()
        before = learning.recorded() if where is learning.session else 0
        started = time.perf_counter()
        rows = [tuple(row) for row in where.sql(text).collect()]
        passed = time.perf_counter() - started
        if where is learning.session:
            learning.wait_for_record(before)
        return passed, rows

    learning.session.conf.set("spark.pyjoinopt.strategy", "none")
    expected = {n: run(learning.session, text)[1] for _ in range(BASELINE) for n, text in queries.items()}
    learning.session.conf.set("spark.pyjoinopt.strategy", "auto")
    if chosen.misled:
        learning.invert()
    written: dict[int, list[float]] = defaultdict(list)
    ours: dict[int, list[tuple[float, bool]]] = defaultdict(list)
    for number in range(chosen.rounds):
        for n, text in queries.items():
            for where in random.Random(f"{number} {n}").sample([plain, learning.session], 2):
                passed, rows = run(where, text)
                check(str(n), "a session with feedback", expected[n], rows)
                if where is plain:
                    written[n].append(passed)
                else:
                    changed = any(report.changed for report in pyjoinopt.last_reports(where)[-1:])
                    ours[n].append((passed, changed))
    _print(written, ours, chosen.rounds)
    plans = rows_of_plans(QueryStore(Store(learning.path)).queries())
    print(f"revoked plans: {sum(plan['state'].startswith('revoked') for plan in plans)}")
    spark.stop()


def _print(written: dict[int, list[float]], ours: dict[int, list[tuple[float, bool]]], rounds: int) -> None:
    print(f"\nquery    as written   slowest  {''.join(f'   round {r + 1}      ' for r in range(rounds))}")
    print("         (best, s)                " + "    s  ratio  plan " * rounds)
    ratios: list[list[float]] = [[] for _ in range(rounds)]
    for n, times in written.items():
        best = min(times)
        cells = []
        for r, (passed, changed) in enumerate(ours[n]):
            ratios[r].append(passed / best)
            cells.append(f"{passed:6.2f} {passed / best:5.2f}  {'ours' if changed else 'same'}")
        print(f"{n:<8} {best:10.2f} {max(times):9.2f}   " + "  ".join(cells))
    means = ", ".join(f"{geometric_mean(each):.3f}" for each in ratios)
    paired = [geometric_mean([ours[n][r][0] / times[r] for n, times in written.items()]) for r in range(rounds)]
    print(f"\ngeometric means by round, of the best time as written: {means}")
    print(f"of the time as written in the same round: {', '.join(f'{mean:.3f}' for mean in paired)}")
    print(f"plain Spark's slowest run over its best, geometric mean: {_noise(written):.3f}")
    slower = [f"{n} ({ratio:.2f})" for n, ratio in zip(written, ratios[-1]) if ratio > SLOWER * _spread(written[n])]
    print(f"in the last round over {SLOWER} times plain Spark's slowest run: {', '.join(slower) or 'none'}")


def _spread(times: list[float]) -> float:
    return max(times) / min(times)


def _noise(written: dict[int, list[float]]) -> float:
    return geometric_mean([_spread(times) for times in written.values()])


if __name__ == "__main__":
    main()
