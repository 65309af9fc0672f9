"""What feedback costs: the same queries in sessions without it, with it, and with `feedback = auto`.

    python -m benchmarks.feedback [tpch|tpcds] [--scale 0.1] [--repeat 15] [--queries 3,5]

Each query runs in all sessions in turns, warm, so that its plan comes from the plan cache. `off again` is a second
session without feedback: it shows the noise. The table has the median time of a query, and the processor time of driver
and workers, which other load on the machine changes less; both until the run is recorded. The last columns are what the
sessions themselves have accounted for (`FeedbackBudget.scala`): the share of their queries' time that recording took,
and how many runs they recorded. The target: `auto` takes less than 1 %.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any

import pyjoinopt
from benchmarks.common import machine, session
from pyjoinopt.estimation.store.store import Store
from pyjoinopt.feedback.query_store import QueryStore
from tests.support import tpc

SETTINGS: dict[str, bool | str] = {"off": False, "on": True, "auto": "auto", "off again": False}
#: Runs of each query before any is timed: samples are drawn, keys proved, row counts learnt and code compiled.
WARM = 4
#: Seconds that a worker gets to record a run.
PAUSE = 0.1


class Measured:
    """A session with one setting of feedback, and a store of its own."""

    def __init__(self, spark: Any, benchmark: str, scale: float, feedback: bool | str) -> None:
        self.path = Path(tempfile.mkdtemp()) / "statistics.sqlite"
        self._spark, self.session = spark, spark.newSession()
        tpc.register(self.session, benchmark, scale)
        pyjoinopt.enable(self.session, feedback=feedback, store=str(self.path))
        self.session.conf.set("spark.pyjoinopt.timeout", "60s")
        self.seconds = 0.0

    def run(self, text: str) -> tuple[float, float]:
        """Seconds of a query, and milliseconds of processor time until it is recorded."""
        self._wait()
        before, started = processor_milliseconds(self._spark), time.perf_counter()
        self.session.sql(text).collect()
        seconds = time.perf_counter() - started
        self._wait()
        self.seconds += seconds
        return seconds, processor_milliseconds(self._spark) - before

    def accounted(self) -> float:
        """Nanoseconds that the session has spent on recording, by its own account."""
        loader = self._spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()
        budgets = loader.loadClass("org.apache.spark.sql.pyjoinopt.FeedbackBudget$").getField("MODULE$").get(None)
        budget = budgets.of(self.session._jsparkSession)
        field = budget.getClass().getDeclaredField("spent")
        field.setAccessible(True)
        return float(field.get(budget))

    def recorded(self) -> int:
        """How many runs its store has."""
        return sum(len(query.runs) for query in QueryStore(Store(self.path)).queries())

    def _wait(self) -> None:
        self._spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        time.sleep(PAUSE)


def processor_milliseconds(spark: Any) -> float:
    """Processor time of the driver and its workers so far."""
    driver, ticks = spark._jvm.java.lang.ProcessHandle.current().pid(), 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            fields = (process / "stat").read_text().rpartition(")")[2].split()
            is_worker = "pyjoinopt.worker" in (process / "cmdline").read_text().split("\0")
        except OSError:
            continue
        if int(process.name) == driver or is_worker and int(fields[1]) == driver:
            ticks += int(fields[11]) + int(fields[12])
    return ticks * 1000 / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("benchmark", nargs="?", default="tpch", choices=sorted(tpc.GENERATORS))
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--queries", type=lambda text: [int(n) for n in text.split(",")], help="only these numbers")
    chosen = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    spark = session(**{"spark.driver.memory": "6g"})
    data = f"{chosen.benchmark} at scale {chosen.scale:g}"
    print(f"{machine()}, Spark {spark.version}, {data}, {chosen.repeat} runs each")
    sessions = {name: Measured(spark, chosen.benchmark, chosen.scale, value) for name, value in SETTINGS.items()}
    only = chosen.queries
    queries = {n: q for n, q in tpc.spark_queries(chosen.benchmark).items() if only is None or n in only}
    for text in queries.values():
        for _ in range(WARM):
            for each in sessions.values():
                each.run(text)
    before = {name: (each.accounted(), each.seconds) for name, each in sessions.items()}
    times: dict[tuple[str, int], list[tuple[float, float]]] = defaultdict(list)
    for repetition in range(chosen.repeat):
        for number, text in queries.items():
            turns = list(sessions)[repetition % len(sessions) :] + list(sessions)[: repetition % len(sessions)]
            for name in turns:
                times[name, number].append(sessions[name].run(text))
    print(f"{'feedback':<12}{'seconds':>9}{'against off':>13}{'processor, s':>14}{'against off':>13}"
          f"{'accounted':>11}{'recorded':>10}")  # fmt: skip
    for name, each in sessions.items():
        (seconds, processor), (first, first_processor) = (
            [sum(median(run[part] for run in times[n, q]) for q in queries) for part in (0, 1)] for n in (name, "off")
        )
        accounted, ran = (now - then for now, then in zip((each.accounted(), each.seconds), before[name], strict=True))
        shares = seconds / first - 1, processor / first_processor - 1, accounted / 1e9 / ran
        print(f"{name:<12}{seconds:>9.2f}{shares[0]:>+13.1%}{processor / 1000:>14.2f}"
              f"{shares[1]:>+13.1%}{shares[2]:>11.2%}{each.recorded():>10}")  # fmt: skip
    spark.stop()


if __name__ == "__main__":
    main()
