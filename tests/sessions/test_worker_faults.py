"""Workers that die, hang, write garbage, are late or missing: the query returns its rows, and no process remains."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pyjoinopt
from pyjoinopt.bridge.shim import bridge_of
from pyjoinopt.worker.serve import PROTOCOL
from tests.sessions.conftest import BAD_ORDER, BETTER, orders, planned, rows
from tests.sessions.fakes import GREETS, SLOW, children, fake, give, gone, workers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = BAD_ORDER.format(hint="")
pytestmark = [
    pytest.mark.ci,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc"),
]

FAULTS = {
    "dies": (GREETS + "sys.exit(3)", "ended with code 3"),
    "dies in the middle of a frame": (
        GREETS + "sys.stdout.buffer.write(b'PJO1' + bytes([0, 0, 1, 0]) + b'{'); sys.stdout.flush(); sys.exit(4)",
        "ended with code 4",
    ),
    "hangs": (GREETS + "time.sleep(60)", "did not answer in time"),
    "hangs before it has read all": (
        f"import struct, sys, time\nbody = b'{{\"protocol\": {PROTOCOL}}}'\n"
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
    "is of another version": (GREETS.replace(f'"protocol": {PROTOCOL}', '"protocol": 77'), "speaks protocol 77"),
    "prints a greeting of its own": ("print('Welcome to Python!', flush=True)\nimport time; time.sleep(60)", "cannot"),
    "lacks the package": ("import sys; sys.exit('No module named pyjoinopt')", "No module named pyjoinopt"),
    "never greets": ("import time; time.sleep(60)", "in time for a plan within 1500 ms"),
}
#: What to do about them; of all others, that another worker is coming.
ADVICE = {
    "hangs": "raise spark.pyjoinopt.timeout",
    "hangs before it has read all": "raise spark.pyjoinopt.timeout",
    "is of another version": "Use the jar and the package of one release",
    "prints a greeting of its own": "-m pip install pyjoinopt",
    "lacks the package": "-m pip install pyjoinopt",
    "never greets": "raise spark.pyjoinopt.timeout or name another spark.pyjoinopt.python",
}


def listeners(session: SparkSession) -> int:
    """The number of threads that read the standard error of workers."""
    threads = session._jvm.java.lang.Thread.getAllStackTraces().keySet()
    return sum(thread.getName() == "pyjoinopt-worker-errors" for thread in threads)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_worker_costs_one_warning(
    session: SparkSession, warnings: Callable[[], list[str]], tmp_path: Path, fault: str
) -> None:
    program, said = FAULTS[fault]
    expected = rows(session.sql(SQL))
    before, handles = listeners(session), bridge_of(session).openHandles()
    give(session, python=fake(tmp_path, program))
    session.conf.set("spark.pyjoinopt.timeout", "1500ms")
    give(session, start_timeout="2s" if fault == "never greets" else "10s")
    warnings()
    found, reports = planned(session, lambda: rows(session.sql(SQL)))
    assert (found, reports) == (expected, [])
    (warning,) = warnings()
    assert warning.startswith("WARN The joins of a query are not changed: ") and said in warning
    advice, _, without = warning.partition(". To do without: ")
    assert ADVICE.get(fault, "Another one is started") in advice and "spark.pyjoinopt.enabled=false" in without
    assert gone(str(tmp_path))
    until = time.monotonic() + 5
    while (after := listeners(session)) > before and time.monotonic() < until:
        time.sleep(0.02)
    assert after <= before
    assert bridge_of(session).openHandles() <= handles


ANSWERS = GREETS + "write({'id': request['id'], 'answer': {'edits': None, 'summary': '', 'problem': None}})\n"


def test_a_worker_that_dies_before_it_reports_costs_its_report_only(
    session: SparkSession, warnings: Callable[[], list[str]], tmp_path: Path
) -> None:
    expected = rows(session.sql(SQL))
    give(session, python=fake(tmp_path, ANSWERS))
    warnings()
    for _ in range(3):
        assert planned(session, lambda: rows(session.sql(SQL))) == (expected, [])
    assert warnings() == []
    assert gone(str(tmp_path))


@pytest.mark.parametrize("reported", ["write({'id': request['id'], 'answer': {}})", "time.sleep(60)"])
def test_a_worker_that_returns_nothing_clear_is_ended(
    session: SparkSession, warnings: Callable[[], list[str]], tmp_path: Path, reported: str
) -> None:
    """The next caller detects it: a reader of reports without a warning, a query with one."""
    expected = rows(session.sql(SQL))
    give(session, python=fake(tmp_path, ANSWERS + reported + "\ntime.sleep(60)"))
    session.conf.set("spark.pyjoinopt.timeout", "1500ms")
    warnings()
    assert planned(session, lambda: rows(session.sql(SQL))) == (expected, [])
    assert warnings() == [] and gone(str(tmp_path))
    for _ in range(2):
        assert rows(session.sql(SQL)) == expected
    (warning,) = warnings()
    assert "it sent no report" in warning or "did not send its report in time" in warning
    assert gone(str(tmp_path))


def test_an_absent_python(session: SparkSession, warnings: Callable[[], list[str]]) -> None:
    expected = rows(session.sql(SQL))
    give(session, python="/there/is/no/python3")
    warnings()
    assert planned(session, lambda: rows(session.sql(SQL))) == (expected, [])
    (warning,) = warnings()
    assert "/there/is/no/python3 cannot be started" in warning and "Set spark.pyjoinopt.python" in warning


def test_after_failures_the_next_start_waits_and_queries_do_not(
    session: SparkSession, warnings: Callable[[], list[str]], tmp_path: Path
) -> None:
    starts = tmp_path / "starts"
    program = f"open({str(starts)!r}, 'a').write('x')\nraise SystemExit(1)"
    give(session, python=fake(tmp_path, program))
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
    victims = workers()
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
        os.kill(victims[0], signal.SIGKILL) if len(victims) > 1 and victims[0] in workers() else None
    session.conf.set("spark.pyjoinopt.timeout", "5s")
    for _ in range(len(victims) + 1):
        again, reports = planned(session, lambda: rows(session.sql(SQL)))
        assert again == expected
        if reports:
            break
    assert orders(reports) == [BETTER]
    assert not set(workers()) & set(victims)


@pytest.mark.ci
def test_killed_in_the_middle_of_a_request(
    session: SparkSession, warnings: Callable[[], list[str]], tmp_path: Path
) -> None:
    """While sixteen threads plan, workers that take two seconds per plan are killed repeatedly."""
    expected = rows(session.sql(SQL))
    give(session, python=fake(tmp_path, SLOW))
    session.conf.set("spark.pyjoinopt.timeout", "20s")
    frames, handles = [session.sql(SQL) for _ in range(16)], bridge_of(session).openHandles()
    killed = set()
    warnings()
    with ThreadPoolExecutor(max_workers=16) as pool:
        results = [pool.submit(rows, df) for df in frames]
        until = time.monotonic() + 60
        while not all(result.done() for result in results) and time.monotonic() < until:
            time.sleep(0.5)
            for worker in children(str(tmp_path)):
                os.kill(worker, signal.SIGKILL)
                killed.add(worker)
        assert all(result.result() == expected for result in results)
    reported = [line for line in warnings() if line.startswith("WARN")]
    assert 1 <= len(reported) <= len(killed) and all("ended with code 137" in line for line in reported)
    assert gone(str(tmp_path)) and bridge_of(session).openHandles() <= handles
    reports: list[pyjoinopt.JoinReport] = []
    until = time.monotonic() + 60
    while not reports and time.monotonic() < until:  # the pause after the failures
        time.sleep(0.5)
        reports = planned(session, lambda: rows(session.sql(SQL)))[1]
    assert orders(reports) == [BETTER]


def test_a_worker_that_no_session_names_ends(
    session: SparkSession, new_session: Callable[[], SparkSession], tmp_path: Path
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    pythons = []
    for folder in (first, second):
        folder.mkdir()
        pythons.append(fake(folder, "import sys\nfrom pyjoinopt.worker.serve import main\nsys.exit(main())"))
    other = new_session()
    for one in (session, other):
        pyjoinopt.enable(one)
        one.conf.set("spark.pyjoinopt.timeout", "30s")
        give(one, python=pythons[0])
        assert orders(planned(one, lambda one=one: rows(one.sql(SQL)))[1]) == [BETTER]
    (worker,) = children(str(first))

    give(session, python=pythons[1])
    assert orders(planned(session, lambda: rows(session.sql(SQL)))[1]) == [BETTER]
    assert orders(planned(other, lambda: rows(other.sql(SQL)))[1]) == [BETTER]
    assert children(str(first)) == [worker] and len(children(str(second))) == 1

    give(other, python=pythons[1])
    assert orders(planned(other, lambda: rows(other.sql(SQL)))[1]) == [BETTER]
    assert gone(str(first))
    assert len(children(str(second))) == 1


def test_a_worker_that_no_session_names_finishes_what_it_does(session: SparkSession, tmp_path: Path) -> None:
    session.conf.set("spark.pyjoinopt.timeout", "30s")
    give(session, python=fake(tmp_path, SLOW))
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(planned, session, lambda: rows(session.sql(SQL)))
        until = time.monotonic() + 10
        while not children(str(tmp_path)) and time.monotonic() < until:
            time.sleep(0.02)
        time.sleep(0.5)  # the settings are read before the worker starts; it has greeted by now, or will
        give(session, python="")
        _, quick = planned(session, lambda: rows(session.sql(SQL)))
        assert orders(quick)[:1] == [BETTER] and children(str(tmp_path))
        assert BETTER in orders(slow.result(30)[1])
    assert gone(str(tmp_path))


@pytest.mark.jvm
@pytest.mark.slow
def test_no_worker_survives_the_driver(tmp_path: Path) -> None:
    """The JVM is killed while its worker is busy: neither closes the pipe in good order."""
    program = f"""
import os, signal, threading, time
import pyjoinopt
from pyspark.sql import SparkSession
from tests.sessions.fakes import children, give
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = pyjoinopt.configure(builder.config("spark.driver.host", "127.0.0.1")).getOrCreate()
give(spark, python={fake(tmp_path, SLOW.replace("time.sleep(2)", "while True: pass"))!r})
spark.conf.set("spark.pyjoinopt.timeout", "10min")
text = "EXPLAIN SELECT 1 FROM range(9) a JOIN range(8) b ON a.id = b.id JOIN range(7) c ON b.id = c.id"
threading.Thread(target=lambda: spark.sql(text), daemon=True).start()
while not (found := children({str(tmp_path)!r})):
    time.sleep(0.1)
time.sleep(1)
print("workers", len(found), flush=True)
os.kill(spark._jvm.java.lang.ProcessHandle.current().pid(), signal.SIGKILL)
os._exit(0)
"""
    variables = {**os.environ, "PYTHONPATH": str(Path(pyjoinopt.__file__).parent.parent), "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=variables, timeout=120)
    assert "workers 1" in done.stdout, done.stderr[-3000:]
    assert gone(str(tmp_path))


def test_one_line_of_information_a_changed_query(session: SparkSession, warnings: Callable[[], list[str]]) -> None:
    warnings()
    session.sql(SQL).collect()
    (line,) = warnings()
    assert line.startswith("INFO Joins reordered in ") and line.endswith(f": ((fact ⋈ mid) ⋈ dim) -> {BETTER}")
