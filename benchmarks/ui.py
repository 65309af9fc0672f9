"""Measures the tab "Join orders": pages of a History Server with many queries, and what the tab costs queries.

    python -m benchmarks.ui [--queries 1000] [--plans 60] [--turns 3]

The log has one query of a real application over eight relations, repeated. The first figure includes the reading of the
log by the History Server; the others are pages after that. Then applications without and with a UI plan new queries,
each with other constants, so that no plan comes from the cache: one right after another, and with pauses. Applications
take turns.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from benchmarks.common import machine, measure, session, spread
from tests.sessions import doors
from tests.support import history_logs

RELATIONS = 8
PAUSE = 0.1


def query(number: int) -> str:
    """A chain of relations in a bad written order: the filter is on the last one."""
    joins = " ".join(f"JOIN t{i} ON a{i - 1} = k{i}" for i in range(1, RELATIONS))
    return f"SELECT count(*) FROM t0 {joins} WHERE v{RELATIONS - 1} = {number % 7} AND v0 < {100 + number}"


def application(ui: bool, plans: int, logs: str | None) -> dict[str, Any]:
    """Milliseconds to plan new queries, and bytes of the event of one."""
    import pyjoinopt

    conf = {"spark.ui.enabled": str(ui).lower(), "spark.ui.port": str(doors.free_port())}
    if logs is not None:
        conf |= {
            "spark.eventLog.enabled": "true", "spark.eventLog.dir": logs, "spark.eventLog.compress": "false",
            "spark.eventLog.rolling.enabled": "false",
        }  # fmt: skip
    spark = session(**conf)
    pyjoinopt.enable(spark)
    spark.conf.set("spark.pyjoinopt.timeout", "30s")
    folder = tempfile.mkdtemp()
    for i in range(RELATIONS):
        columns = f"id k{i}", f"id % {1000 // (i + 1)} a{i}", f"id % 7 + {i} * 0 v{i}"
        spark.range(20_000 // (i + 1)).selectExpr(*columns).coalesce(1).write.parquet(f"{folder}/t{i}")
        spark.read.parquet(f"{folder}/t{i}").createOrReplaceTempView(f"t{i}")
    times: dict[str, list[float]] = {"at once": [], "with pauses": []}
    if logs is not None:
        spark.sql(query(0)).collect()
        time.sleep(2)
    for number in range(1, 10 + 2 * plans):
        kind = "at once" if number < 10 + plans else "with pauses"
        if kind == "with pauses":
            time.sleep(PAUSE)
        planned = spark.sql(query(number))._jdf.queryExecution()
        started = time.perf_counter()
        planned.optimizedPlan()
        if number >= 10:  # the first ones warm up the JVM and the worker
            times[kind].append((time.perf_counter() - started) * 1000)
    spark.stop()
    return times


def pages(queries: int) -> None:
    """Print the times of the pages of a History Server."""
    with tempfile.TemporaryDirectory() as scratch:
        folder, logs = Path(scratch), Path(scratch) / "logs"
        logs.mkdir()
        _started("on", 0, logs.as_uri())
        (log,) = logs.iterdir()
        planned = [event for event in history_logs.events(log) if event["Event"] == history_logs.PLANNED]
        event, packed = planned[0], len(planned[0]["pictures"])
        print(f"event of one query: {len(json.dumps(event)):,} characters, {packed:,} of them pictures\n")
        history_logs.repeated(log, queries, "many")
        size = (logs / "many").stat().st_size
        with doors.history_server(folder, logs, {"many"}) as address:

            def fetch(path: str) -> int:
                with urllib.request.urlopen(f"{address}{path}", timeout=600) as answer:
                    return len(answer.read())

            started = time.perf_counter()
            fetch("/history/many/joinorders/")
            first = time.perf_counter() - started
            print(f"{queries:,} queries, log of {size / 1e6:.0f} MB; read and first page: {first:.1f} s")
            for name, path in (
                ("first page", "/history/many/joinorders/"),
                ("last page", "/history/many/joinorders/?&joinorders.page=10"),
                ("sorted by cost", "/history/many/joinorders/?&joinorders.sort=Cost+before&joinorders.desc=true"),
                ("all on one page", f"/history/many/joinorders/?&joinorders.pageSize={queries}"),
                ("page of a query", "/history/many/joinorders/query/?id=7"),
                ("JSON of all", "/api/v1/applications/many/joinorders"),
                ("JSON of a query", "/api/v1/applications/many/joinorders/7"),
            ):
                times = measure(lambda path=path: fetch(path), 20, 1)  # type: ignore[misc]
                print(f"{name:<18}{spread(times)}   {fetch(path):>9,} bytes")


def cost(plans: int, turns: int) -> None:
    """Print how long new queries are planned without and with a UI."""
    found: dict[tuple[str, str], list[float]] = {}
    for _ in range(turns):
        for ui in ("off", "on"):
            for kind, times in _started(ui, plans, None).items():
                found.setdefault((kind, ui), []).extend(times)
    print(f"\nplanning of a new query with {RELATIONS} relations, {turns} applications each")
    for (kind, ui), times in sorted(found.items()):
        print(f"{kind:<12} UI {ui:<4}{spread(sorted(times))}")
    for kind in ("at once", "with pauses"):
        difference = statistics.median(found[kind, "on"]) - statistics.median(found[kind, "off"])
        print(f"{kind:<12} difference {difference:+.1f} ms")


def _started(ui: str, plans: int, logs: str | None) -> dict[str, list[float]]:
    """What an application of its own returns."""
    command = [sys.executable, "-m", "benchmarks.ui", "--application", ui, "--plans", str(plans)]
    if logs is not None:
        command += ["--logs", logs]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=1000, help="of the History Server's application")
    parser.add_argument("--plans", type=int, default=60, help="of each application, of each kind")
    parser.add_argument("--turns", type=int, default=3, help="applications without and with a UI")
    parser.add_argument("--application", choices=("on", "off"), help=argparse.SUPPRESS)
    parser.add_argument("--logs", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.application:
        print(json.dumps(application(chosen.application == "on", chosen.plans, chosen.logs)))
        return
    print(f"{machine()}\n")
    pages(chosen.queries)
    if chosen.turns:
        cost(chosen.plans, chosen.turns)


if __name__ == "__main__":
    main()
