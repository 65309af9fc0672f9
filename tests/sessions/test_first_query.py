"""The first query of a program, whose worker starts with the session."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pyjoinopt
from pyjoinopt.bridge.shim import bridge_of
from tests.sessions import doors
from tests.sessions.conftest import BAD_ORDER, BETTER, TABLES, orders, planned, pythons, rows, swollen
from tests.sessions.fakes import children, counting, fake, give, gone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = BAD_ORDER.format(hint="")
GIB = 1 << 30
#: The real worker.
WORKER = "import sys\nfrom pyjoinopt.worker.serve import main\n"
pytestmark = [
    pytest.mark.ci,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc"),
]


def gated(gate: Path) -> str:
    """The real worker, which has loaded everything and greets once a file is there."""
    return f"{WORKER}import os, time\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.02)\nsys.exit(main())"


@pytest.fixture
def prestart(session: SparkSession, tmp_path: Path) -> Callable[..., Path]:
    """Starts a program in the place of the worker as if the extension were being loaded; the file has an x a start."""

    def start(program: str, **settings: str) -> Path:
        starts = tmp_path / "starts"
        starts.touch()
        give(session, python=fake(tmp_path, counting(starts, program)))
        for key, value in settings.items():
            if key in ("workers", "startTimeout", "prestart"):
                give(session, **{key: value})
            else:
                session.conf.set(f"spark.pyjoinopt.{key}", value)
        bridge_of(session).enable(session._jsparkSession, *pythons())
        return starts

    return start


def eventually(condition: Callable[[], object], seconds: float = 30) -> bool:
    until = time.monotonic() + seconds
    while not (met := bool(condition())) and time.monotonic() < until:
        time.sleep(0.02)
    return met


def test_a_worker_starts_before_any_query_and_once(
    session: SparkSession, prestart: Callable[..., Path], warnings: Callable[[], list[str]]
) -> None:
    starts = prestart(f"{WORKER}sys.exit(main())", workers="1")  # a query may not start a second
    assert eventually(starts.read_text)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: pyjoinopt.enable(session), range(16)))
    assert orders(planned(session, lambda: rows(session.sql(SQL)))[1]) == [BETTER]
    assert starts.read_text() == "x"
    assert [line for line in warnings() if line.startswith("WARN")] == []


def test_off_starts_none_before_a_query(session: SparkSession, prestart: Callable[..., Path]) -> None:
    starts = prestart(f"{WORKER}sys.exit(main())", prestart="off")
    time.sleep(1.5)
    assert starts.read_text() == ""
    assert orders(planned(session, lambda: rows(session.sql(SQL)))[1]) == [BETTER]
    assert starts.read_text() == "x"


def test_a_worker_that_no_query_needs_ends(
    session: SparkSession, prestart: Callable[..., Path], tmp_path: Path
) -> None:
    starts = prestart(f"{WORKER}sys.exit(main())", prestart="1s")
    assert eventually(starts.read_text) and eventually(lambda: not children(str(tmp_path)))
    assert orders(planned(session, lambda: rows(session.sql(SQL)))[1]) == [BETTER]
    assert starts.read_text() == "xx"
    time.sleep(1.5)
    assert len(children(str(tmp_path))) == 1  # it was needed, and is kept


def test_a_query_waits_for_a_worker_that_is_starting_already(
    session: SparkSession, prestart: Callable[..., Path], warnings: Callable[[], list[str]], tmp_path: Path
) -> None:
    """The start may take long; only the time that a query has waited for it counts."""
    starts = prestart(gated(tmp_path / "gate"), timeout="6s", workers="1")
    assert eventually(starts.read_text)
    time.sleep(6.3)
    with ThreadPoolExecutor(1) as pool:
        query = pool.submit(planned, session, lambda: rows(session.sql(SQL)))
        time.sleep(0.5)
        assert not query.done()
        (tmp_path / "gate").touch()
        assert orders(query.result(30)[1]) == [BETTER]
    assert starts.read_text() == "x"
    assert [line for line in warnings() if line.startswith("WARN")] == []


def test_a_query_need_not_wait_for_one_at_low_priority(
    session: SparkSession, prestart: Callable[..., Path], tmp_path: Path
) -> None:
    """The first start hangs; the second is there for the query, and the first is needed no longer."""
    first = f"import time\nif len(open({str(tmp_path / 'starts')!r}).read()) < 2: time.sleep(60)\n"
    starts = prestart(f"{first}{WORKER}sys.exit(main())", timeout="30s", workers="2")
    assert eventually(starts.read_text)
    assert orders(planned(session, lambda: rows(session.sql(SQL)))[1]) == [BETTER]
    assert starts.read_text() == "xx"
    assert eventually(lambda: len(children(str(tmp_path))) == 1, seconds=10)


@pytest.mark.parametrize(
    ("program", "said"),
    [
        pytest.param("import time; time.sleep(60)", "a plan within 2000 ms", marks=pytest.mark.ci, id="never greets"),
        pytest.param("raise SystemExit(3)", "ended with code 3", id="dies at once"),
    ],
)
@pytest.mark.parametrize("workers", [pytest.param("1", marks=pytest.mark.slow), "2"])
def test_one_that_never_comes_up_costs_one_query_its_bound_and_one_warning(
    session: SparkSession, prestart: Callable[..., Path], warnings: Callable[[], list[str]], tmp_path: Path,
    program: str, said: str, workers: str,
) -> None:  # fmt: skip
    expected = rows(session.sql(SQL))
    warnings()
    starts = prestart(program, timeout="auto", workers=workers, startTimeout="10s")
    assert eventually(starts.read_text)
    time.sleep(1)
    assert warnings() == []
    query = session.sql(SQL)._jdf.queryExecution()
    query.analyzed()
    started = time.monotonic()
    _, reports = planned(session, query.optimizedPlan)
    assert time.monotonic() - started < 4 and reports == []
    (warning,) = warnings()
    assert warning.startswith("WARN The joins of a query are not changed") and said in warning
    if "sleep" in program:
        assert rows(session.sql(SQL)) == expected and warnings() == []  # nobody waits for it again
        assert eventually(lambda: not children(str(tmp_path))) and warnings() == []
    assert gone(str(tmp_path))


def nice_of(task: Path) -> int:
    return int((task / "stat").read_text().rpartition(")")[2].split()[16])


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a priority is a whole process's")
def test_it_loads_at_low_priority_and_serves_at_the_normal_one(session: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys, threading\n"
        "class Look:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'pyjoinopt.optimizer.optimize':\n"
        f"            with open({str(tmp_path / 'nice')!r}, 'a') as out:\n"
        "                out.write(str(os.getpriority(os.PRIO_PROCESS, threading.get_native_id())) + ' ')\n"
        "sys.meta_path.insert(0, Look())\n"
    )
    python = tmp_path / "python"
    path = f'PYTHONPATH="{tmp_path}:$PYTHONPATH"'
    python.write_text(f'#!/bin/sh\nexport {path}\nexec "{sys.executable}" "$@" OF-THE-TEST\n')
    python.chmod(0o755)
    give(session, python=str(python))
    bridge_of(session).enable(session._jsparkSession, *pythons())
    assert eventually(lambda: children("OF-THE-TEST") and (tmp_path / "nice").exists())
    assert orders(planned(session, lambda: rows(session.sql(SQL)))[1]) == [BETTER]
    driver = nice_of(Path(f"/proc/{session._jvm.java.lang.ProcessHandle.current().pid()}"))
    loaded = (tmp_path / "nice").read_text().split()  # the second, if any, is of a query that came meanwhile
    assert int(loaded[0]) == min(19, driver + 10)
    for worker in children("OF-THE-TEST"):
        assert {nice_of(task) for task in Path(f"/proc/{worker}/task").iterdir()} == {driver}
    give(session, python="")
    rows(session.sql(SQL))
    assert gone("OF-THE-TEST")


@pytest.mark.ci
@pytest.mark.jvm
def test_the_extension_is_applied_where_there_is_no_context() -> None:
    """Nothing is started and nothing raised, and the session that comes later is a session like any other."""
    program = """
import pyjoinopt
from pyjoinopt.bridge.builder_conf import start_jvm
from pyjoinopt.bridge.install.jars import jar_for_version
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
builder = pyjoinopt.configure(builder.config("spark.driver.host", "127.0.0.1"))
jvm = start_jvm(builder, {"spark.jars": str(jar_for_version())})
from pyjoinopt.bridge.shim import add_jar
add_jar(jvm, jar_for_version())
jvm.org.apache.spark.sql.pyjoinopt.PyJoinOptExtensions().apply(jvm.org.apache.spark.sql.SparkSessionExtensions())
spark = builder.getOrCreate()
text = "SELECT count(*) FROM range(9) a JOIN range(8) b ON a.id = b.id JOIN range(7) c ON b.id = c.id"
print("rows", spark.sql(text).first()[0], len(pyjoinopt.last_reports(spark)))
"""
    variables = {**os.environ, "PYTHONPATH": str(doors.ROOT), "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=variables, timeout=180)
    assert "rows 7 1" in done.stdout, done.stderr[-3000:]


@pytest.mark.jvm
@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "starts"),
    [([], "x"), (["spark.pyjoinopt.prestart=off"], ""), (["spark.pyjoinopt.enabled=false"], "")],
    ids=["as it comes", "prestart off", "disabled"],
)
def test_spark_sql_starts_a_worker_without_a_query_of_joins(tmp_path: Path, settings: list[str], starts: str) -> None:
    (tmp_path / "starts").touch()
    python = fake(tmp_path, counting(tmp_path / "starts", f"{WORKER}sys.exit(main())"))
    more = [word for setting in settings for word in ("--conf", setting)]
    command = ["spark-sql", *doors.extended(), "--conf", f"spark.pyjoinopt.python={python}", *more]
    assert doors.run([*command, "-e", "SELECT count(*) FROM range(5)"], tmp_path).split()[:1] == ["5"]
    assert (tmp_path / "starts").read_text() == starts
    assert gone(str(tmp_path))


@contextmanager
def busy(seconds: int) -> Iterator[None]:
    """More processes that want the processors than there are, for so long at most."""
    program = f"import time\nend = time.monotonic() + {seconds}\nwhile time.monotonic() < end: pass"
    burners = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


@pytest.mark.slow
def test_the_one_query_of_a_job_is_optimised_on_a_busy_machine(session: SparkSession, tmp_path: Path) -> None:
    """As `spark-sql -f` runs it: a table of eight GiB, every setting at its default."""
    swollen(session, tmp_path, 8 * GIB)
    for name, _, _ in TABLES[1:]:
        session.table(name).write.parquet(str(tmp_path / name))
    views = [f"CREATE TEMPORARY VIEW {name} USING parquet OPTIONS (path '{tmp_path / name}')" for name, _, _ in TABLES]
    report = "SELECT order_after FROM joinopt_report()"
    (tmp_path / "job.sql").write_text(";\n".join([*views, SQL, report]))
    command = ["spark-sql", *doors.extended(), "--conf", "spark.pyjoinopt.timeout=auto", "-f", "job.sql"]
    with busy(seconds=240):
        said = doors.run(command, tmp_path)
    assert BETTER in said.splitlines()[-1]
    assert len(said.splitlines()) == 1 + session.sql(SQL).count()
