"""Workers that die, hang, babble, are late or are not there: the query gets its rows, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import stat
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pyjoinopt
from pyjoinopt.bridge.shim import bridge_of
from tests.sessions.conftest import BAD_ORDER, BETTER, orders, planned, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = BAD_ORDER.format(hint="")
pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")

#: What a worker begins with: it greets, and reads one request.
GREETS = """
import json, struct, sys, time
def write(message):
    body = json.dumps(message).encode()
    sys.stdout.buffer.write(struct.pack(">4sI", b"PJO1", len(body)) + body)
    sys.stdout.buffer.flush()
def read():
    mark, length = struct.unpack(">4sI", sys.stdin.buffer.read(8))
    return json.loads(sys.stdin.buffer.read(length))
write({"protocol": 1, "version": "0"})
request = read()
"""
FAULTS = {
    "dies": (GREETS + "sys.exit(3)", "ended with code 3"),
    "dies in the middle of a frame": (
        GREETS + "sys.stdout.buffer.write(b'PJO1' + bytes([0, 0, 1, 0]) + b'{'); sys.stdout.flush(); sys.exit(4)",
        "ended with code 4",
    ),
    "hangs": (GREETS + "time.sleep(60)", "did not answer in time"),
    "hangs before it has read all": (
        "import struct, sys, time\nbody = b'{\"protocol\": 1}'\n"
        "sys.stdout.buffer.write(struct.pack('>4sI', b'PJO1', len(body)) + body); sys.stdout.flush(); time.sleep(60)",
        "did not answer in time",
    ),
    "babbles": (GREETS + "print('the answer is 42', flush=True); time.sleep(60)", "cannot be understood"),
    "announces too much": (
        GREETS + "sys.stdout.buffer.write(b'PJO1' + b'\\xff' * 4); sys.stdout.flush(); time.sleep(60)",
        "cannot be understood",
    ),
    "writes no JSON": (
        GREETS + "sys.stdout.buffer.write(b'PJO1' + bytes([0, 0, 0, 3]) + b'abc'); sys.stdout.flush(); time.sleep(60)",
        "cannot be understood",
    ),
    "answers somebody else": (GREETS + "write({'id': 99, 'answer': {}}); time.sleep(60)", "cannot be understood"),
    "has no answer": (GREETS + "write({'id': request['id']}); time.sleep(60)", "cannot be understood"),
    "is of another version": ("import time" + GREETS.replace('"protocol": 1', '"protocol": 7'), "speaks protocol 7"),
    "prints a greeting of its own": ("print('Welcome to Python!', flush=True)\nimport time; time.sleep(60)", "cannot"),
    "lacks the package": ("import sys; sys.exit('No module named pyjoinopt')", "No module named pyjoinopt"),
}


def fake(folder: Path, program: str) -> str:
    """An executable that runs a program instead of the worker, in a group of processes that can be found."""
    script = folder / "worker.py"
    script.write_text(program)
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}" PYJOINOPT-FAKE\n')
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    return str(python)


def children(mark: str) -> list[int]:
    """The running processes with this in their command line."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_text().split("\0")
            state = (process / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if any(mark in word for word in words) and state != "Z":
            found.append(int(process.name))
    return found


def gone(mark: str) -> bool:
    """Whether no such process is left, after a moment."""
    until = time.monotonic() + 5
    while children(mark) and time.monotonic() < until:
        time.sleep(0.02)
    return not children(mark)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_worker_costs_one_warning(
    session: SparkSession, warnings: Callable[[], list[str]], tmp_path: Path, fault: str
) -> None:
    program, said = FAULTS[fault]
    expected = rows(session.sql(SQL))
    session.conf.set("spark.pyjoinopt.python", fake(tmp_path, program))
    session.conf.set("spark.pyjoinopt.timeout", "300ms")
    session.conf.set("spark.pyjoinopt.startTimeout", "10s")
    warnings()
    found, reports = planned(session, lambda: rows(session.sql(SQL)))
    assert (found, reports) == (expected, [])
    (warning,) = warnings()
    assert warning.startswith("WARN The joins of a query stay as written: ") and said in warning
    assert "spark.pyjoinopt." in warning
    assert gone(str(tmp_path))
    assert bridge_of(session).openHandles() == 0


def test_an_absent_python(session: SparkSession, warnings: Callable[[], list[str]]) -> None:
    expected = rows(session.sql(SQL))
    session.conf.set("spark.pyjoinopt.python", "/there/is/no/python3")
    warnings()
    assert planned(session, lambda: rows(session.sql(SQL))) == (expected, [])
    (warning,) = warnings()
    assert "/there/is/no/python3 cannot be started" in warning and "Set spark.pyjoinopt.python" in warning


def test_after_failures_the_next_start_waits_and_queries_do_not(
    session: SparkSession, warnings: Callable[[], list[str]], tmp_path: Path
) -> None:
    starts = tmp_path / "starts"
    program = f"open({str(starts)!r}, 'a').write('x')\nraise SystemExit(1)"
    session.conf.set("spark.pyjoinopt.python", fake(tmp_path, program))
    explain = session.sql(SQL)._jdf.queryExecution().analyzed()
    warnings()
    for _ in range(20):
        session._jsparkSession.sessionState().optimizer().execute(explain)
    assert 2 <= len(starts.read_text()) <= 4
    assert len(warnings()) == len(starts.read_text())


@pytest.mark.parametrize("with_signal", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_the_real_worker_is_replaced(
    session: SparkSession, warnings: Callable[[], list[str]], with_signal: signal.Signals
) -> None:
    session.conf.set("spark.pyjoinopt.timeout", "3s")
    expected, reports = planned(session, lambda: rows(session.sql(SQL)))
    assert orders(reports) == [BETTER]
    victims = children("pyjoinopt.worker")
    assert victims
    for victim in victims:
        os.kill(victim, with_signal)
    if with_signal == signal.SIGSTOP:
        session.conf.set("spark.pyjoinopt.timeout", "300ms")
    warnings()
    first, reports = planned(session, lambda: rows(session.sql(SQL)))
    assert first == expected
    if with_signal == signal.SIGSTOP:
        assert reports == []
        assert [w for w in warnings() if w.startswith("WARN")][0].count("did not answer in time") == 1
        os.kill(victims[0], signal.SIGKILL) if len(victims) > 1 and victims[0] in children("pyjoinopt.worker") else None
    session.conf.set("spark.pyjoinopt.timeout", "5s")
    for _ in range(len(victims) + 1):
        again, reports = planned(session, lambda: rows(session.sql(SQL)))
        assert again == expected
        if reports:
            break
    assert orders(reports) == [BETTER]
    assert not set(children("pyjoinopt.worker")) & set(victims)


def test_killed_in_the_middle_of_a_request(session: SparkSession, tmp_path: Path) -> None:
    """While sixteen threads plan, whatever worker there is is killed again and again."""
    expected = rows(session.sql(SQL))
    session.conf.set("spark.pyjoinopt.timeout", "5s")
    frames = [session.sql(SQL) for _ in range(16)]
    done = []

    def run(df: object) -> list[str]:
        try:
            return rows(df)
        finally:
            done.append(True)

    with ThreadPoolExecutor(max_workers=16) as pool:
        results = [pool.submit(run, df) for df in frames]
        until = time.monotonic() + 30
        while len(done) < len(frames) and time.monotonic() < until:
            for worker in children("pyjoinopt.worker"):
                os.kill(worker, signal.SIGKILL)
            time.sleep(0.15)
        assert all(result.result() == expected for result in results)
    time.sleep(1.5)  # the pause after the failures
    until = time.monotonic() + 20
    reports: list[pyjoinopt.JoinReport] = []
    while not reports and time.monotonic() < until:
        reports = planned(session, lambda: rows(session.sql(SQL)))[1]
    assert orders(reports) == [BETTER]
    assert bridge_of(session).openHandles() == 0


def test_sixteen_threads_do_not_mix(session: SparkSession) -> None:
    session.conf.set("spark.pyjoinopt.timeout", "30s")
    texts = [f"{SQL} AND fact_k % {n} = 0" for n in range(2, 18)]
    expected, one_by_one = planned(session, lambda: [rows(session.sql(text)) for text in texts])
    with ThreadPoolExecutor(max_workers=16) as pool:
        found, reports = planned(session, lambda: list(pool.map(lambda text: rows(session.sql(text)), texts)))
    assert found == expected

    def told(given: list[pyjoinopt.JoinReport]) -> list[object]:
        return sorted((report.groups[0].order_after, report.cost_after, report.error) for report in given)

    assert told(reports) == told(one_by_one)
    assert len(children("pyjoinopt.worker")) <= 2


def test_one_line_of_information_a_changed_query(session: SparkSession, warnings: Callable[[], list[str]]) -> None:
    warnings()
    session.sql(SQL).collect()
    (line,) = warnings()
    assert line.startswith("INFO Joins reordered in ") and line.endswith(f": ((fact ⋈ mid) ⋈ dim) -> {BETTER}")
