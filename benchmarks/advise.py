"""Advice from event logs: memory and time for a long log, and whether its ranking is that of measured wins.

    python -m benchmarks.advise [--tasks N]
    python -m benchmarks.advise --ranking tpcds [--scale 1] [--logs DIR]

The first form writes a log with N events of tasks (a million by default), compressed with zstd, and reads it in a
process of its own (on Linux), as it reads one with a tenth of the events. The second one runs the queries of TPC-H or
TPC-DS as written with event logging, unless DIR has their logs already, and compares the task time that the advice
expects to win with the seconds that pyjoinopt won in the stored runs of `benchmarks.tpc`: rank correlation (Spearman),
and how many of the ten largest wins are among the first ten of the advice.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

from benchmarks.common import machine, session
from tests.support import tpc
from tests.support.made_up_logs import LogWriter, op, task_end

RESULTS = Path(__file__).resolve().parent / "results"
#: Tasks of one query of the written log.
TASKS_A_QUERY = 1000
_READ = """
import re, sys
from pathlib import Path
from time import perf_counter
import pyjoinopt.advice.read_logs

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

before = peak()
started = perf_counter()
advice = pyjoinopt.advise(sys.argv[1])
seconds = perf_counter() - started
after = peak()
print(advice.executions, seconds, before / 1024, after / 1024)
"""


def write_log(path: Path, tasks: int) -> int:
    """Write a log with so many events of tasks, and return its bytes without compression."""
    import zstandard

    template = task_end(0, 1234, read=1 << 20)
    template["Task Info"]["Accumulables"] = [
        {"ID": i, "Name": f"internal.metrics.{i}", "Update": i, "Value": i, "Internal": True} for i in range(25)
    ]
    line = json.dumps(template, separators=(",", ":")).encode() + b"\n"
    size = 0
    with path.open("wb") as file, zstandard.ZstdCompressor().stream_writer(file) as out:
        for number in range(tasks // TASKS_A_QUERY):
            log = LogWriter().execution(number, op("HashAggregate", "HashAggregate(keys=[a#1])", rows=10))
            if not number:
                log.events[:0] = LogWriter().start().events
            first = next(i for i, event in enumerate(log.events) if event["Event"] == "SparkListenerTaskEnd")
            before, after = (LogWriter(part).text(False) for part in (log.events[:first], log.events[first:]))
            own = line.replace(b'"Stage ID":0', b'"Stage ID":%d' % (100 * number))
            out.write(before)
            for _ in range(TASKS_A_QUERY):
                out.write(own)
            out.write(after)
            size += len(before) + len(after) + TASKS_A_QUERY * len(own)
    return size


def memory(tasks: int) -> None:
    """Print time and memory of reading logs of two lengths."""
    print(f"{machine()}\n\nevents of tasks      log   queries   seconds   MB/s   memory before, peak")
    for count in (tasks // 10, tasks):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "app-1.zstd"
            size = write_log(path, count)
            command = [sys.executable, "-c", _READ, str(path)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            queries, seconds, before, after = map(float, done.stdout.split())
            rate = size / seconds / 1e6
            figures = f"{count:>15,} {size / 1e6:>5.0f} MB {queries:>9,.0f} {seconds:>9.1f} {rate:>6.0f}"
            print(f"{figures}   {before:.0f} MB, {after:.0f} MB")


def run_queries(benchmark: str, scale: float, logs: Path) -> None:
    """Run the queries as written, once each after a warm-up, with event logging."""
    logs.mkdir(parents=True, exist_ok=True)
    spark = session(**{
        "spark.eventLog.enabled": "true", "spark.eventLog.dir": logs.as_uri(), "spark.sql.shuffle.partitions": "200",
    })  # fmt: skip
    tpc.register(spark, benchmark, scale)
    for number, text in tpc.spark_queries(benchmark).items():
        spark.sparkContext.setJobDescription(f"{benchmark} {number}")
        started = perf_counter()
        spark.sql(text).collect()
        print(f"{benchmark} {number:<3} {perf_counter() - started:6.2f} s", file=sys.stderr, flush=True)
    spark.stop()


def measured_wins(benchmark: str) -> dict[str, float]:
    """Query -> seconds that pyjoinopt won, by the stored runs."""
    text = (RESULTS / f"tpc_{benchmark}.txt").read_text(encoding="utf-8").split("processor time")[0]
    found = re.findall(rf"^({benchmark} \d+) +([\d.]+) +([\d.]+) ", text, re.MULTILINE)
    return {name: float(plain) - float(ours) for name, plain, ours in found}


def ranking(benchmark: str, scale: float, logs: Path) -> None:
    """Print how the ranking of the advice agrees with measured wins."""
    from scipy.stats import spearmanr

    import pyjoinopt

    if not logs.exists() or not any(logs.iterdir()):
        run_queries(benchmark, scale, logs)
    started = perf_counter()
    advice = pyjoinopt.advise(logs)
    print(f"{machine()}, scale {scale:g}: {advice.executions} runs read in {perf_counter() - started:.1f} s\n")
    wins = measured_wins(benchmark)
    orders = dict.fromkeys(wins, 0.0)
    everything = dict.fromkeys(wins, 0.0)
    for query in advice.queries:
        if query.description in wins:
            everything[query.description] = 3600 * query.hours
            orders[query.description] = 3600 * max(
                (f.hours for f in query.findings if f.kind == "better join order"), default=0.0
            )
    print(f"{'query':12} {'won, s':>8} {'expected by all findings':>26} {'by orders, task s':>20}")
    for name in _largest(wins, 10):
        print(f"{name:12} {wins[name]:>8.2f} {everything[name]:>26.2f} {orders[name]:>20.2f}")
    print()
    for title, expected in (("all findings", everything), ("orders", orders)):
        first = [name for name in _largest(expected, 10) if expected[name] > 0]
        hits = len(set(first) & set(_largest(wins, 10)))
        names = list(wins)
        correlation = spearmanr([wins[n] for n in names], [expected[n] for n in names]).statistic
        advised = sum(value > 0 for value in expected.values())
        with_advice = sum(wins[n] for n in names if expected[n] > 0)
        whole = sum(wins.values())
        by_advice, best = (sum(wins[n] for n in part) for part in (first, _largest(wins, 10)))
        print(
            f"{title:13} the first {len(first)} won {by_advice:.1f} s, the ten largest wins are {best:.1f} s; "
            f"rank correlation {correlation:.2f};\n{'':13} {hits} of the ten largest wins among the first "
            f"{len(first)}; {advised} queries with advice won {with_advice:.1f} s of {whole:.1f} s"
        )


def _largest(values: dict[str, float], count: int) -> list[str]:
    return sorted(values, key=lambda name: -values[name])[:count]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one of the two."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=1_000_000, help="events of tasks (default: a million)")
    parser.add_argument("--ranking", choices=("tpch", "tpcds"), help="compare the ranking with measured wins")
    parser.add_argument("--scale", type=float, default=1.0, help="of the data (default: 1)")
    parser.add_argument("--logs", type=Path, help="folder of the event logs, written if it is empty")
    chosen = parser.parse_args(arguments)
    if chosen.ranking:
        with tempfile.TemporaryDirectory() as folder:
            ranking(chosen.ranking, chosen.scale, chosen.logs or Path(folder) / "logs")
    else:
        memory(chosen.tasks)


if __name__ == "__main__":
    main()
