"""Entrances without Python in the driver: spark-sql, and a Connect server with a client that has no JVM."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pyjoinopt
from pyjoinopt.bridge.extension import EXTENSION
from pyjoinopt.config import SESSION_KEYS
from pyjoinopt.estimation.store.store import Store
from pyjoinopt.feedback.baseline_store import BaselineStore
from tests.sessions import doors
from tests.sessions.fakes import GREETS, fake, gone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = """SELECT count(*) FROM range(1000000) f JOIN range(10000) m ON f.id % 10000 = m.id
JOIN range(10) d ON m.id = d.id"""
needs_connect = pytest.mark.skipif(not doors.has_jar("spark-connect_*.jar"), reason="this Spark comes without Connect")


@pytest.mark.jvm
@pytest.mark.slow
def test_spark_sql(tmp_path: Path) -> None:
    (tmp_path / "report.sql").write_text(
        f"{SQL};\nSELECT changed, strategy FROM joinopt_report();\nSET spark.pyjoinopt.enabled=false;\n"
        f"{SQL.replace('SELECT', 'SELECT /*+ OPTIMIZE_JOINS(heuristic) */', 1)};\n{SQL};\n"
        "SELECT changed, strategy FROM joinopt_report();\n"
    )
    said = doors.run(["spark-sql", *doors.extended(), "-f", "report.sql"], tmp_path)
    reported = [line for line in said.splitlines() if not line.startswith("spark.")]
    assert reported == ["1000", "true\texact", "1000", "1000", "true\texact", "false\theuristic"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a Connect server with the extension."""
    with doors.connect_server(tmp_path_factory.mktemp("server"), doors.extended()) as port:
        yield port


@pytest.fixture(scope="module")
def bare_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of one without."""
    with doors.connect_server(tmp_path_factory.mktemp("bare"), []) as port:
        yield port


@pytest.mark.jvm
@pytest.mark.slow
@needs_connect
def test_a_connect_client(server: int, tmp_path: Path) -> None:
    reported = doors.client(
        server,
        f"SQL = {SQL!r}"
        """
df = spark.sql(SQL)
assert pyjoinopt.is_enabled(spark)
assert df.collect() == df.optimize_joins().collect() == df.optimize_joins(strategy='heuristic').collect()
assert [r.strategy for r in pyjoinopt.last_reports(spark)] == ['auto', 'auto', 'heuristic']
assert df.optimize_joins().schema == df.schema
assert pyjoinopt.join_report(df).changed
assert pyjoinopt.join_report(df, strategy='none').strategy == 'none'
df.explain_joins()
df.explain_joins(mode='tree')
for group in pyjoinopt.last_reports(spark)[-1].groups:
    assert group.joins_before[0].sign == '⋈' and group.estimated_rows[0].bytes
f, m, d = spark.range(1000000), spark.range(10000).toDF('m'), spark.range(10).toDF('d')
x = f.join(m, f.id % 10000 == m.m).join(d, m.m == d.d)
y = x.optimize_joins()
assert y.columns == x.columns and sorted(y.select(f.id, 'm').collect()) == sorted(x.select(f.id, 'm').collect())
pyjoinopt.disable(spark)
count = len(pyjoinopt.last_reports(spark))
x.collect()
assert not pyjoinopt.is_enabled(spark) and len(pyjoinopt.last_reports(spark)) == count
assert pyjoinopt.join_report(x).groups[0].changed
pyjoinopt.enable(spark, hints=False)
assert pyjoinopt.is_enabled(spark) and spark.conf.get('spark.pyjoinopt.hints') == 'false'
try:
    df.optimize_joins(hints=False)
except ValueError as error:
    print(error)
""",
        tmp_path,
    )
    assert "Joins: 1 group of 3 relations reordered" in reported
    assert "a call takes only the options strategy and baseline" in reported


@pytest.mark.jvm
@pytest.mark.slow
@needs_connect
def test_a_client_hears_what_applies_to_it(server: int, tmp_path: Path) -> None:
    reported = doors.client(
        server,
        f"SQL = {SQL!r}"
        """
import io
from pyjoinopt.api.doctor import examine
fast = spark.sql(SQL).optimize_joins()
assert fast.join_report().changed and pyjoinopt.join_report(fast).groups
two = spark.range(3).optimize_joins().join_report()
assert not two.changed and 'did not optimise it' in two.refusals[0].reason
reads = [lambda: fast._pyjoinopt_report.changed, fast.join_report().observe, lambda: fast.explain_joins(analyze=True)]
for read in reads:
    try:
        read()
    except pyjoinopt.PyJoinOptError as error:
        print(type(error).__name__, error)
spark.stop()
configured = pyjoinopt.configure(SparkSession.builder.remote(@URL@), pair_budget=7)
again = configured.getOrCreate()
print('configured', again.conf.get('spark.pyjoinopt.pairBudget'), pyjoinopt.is_enabled(again))
late = pyjoinopt.configure(SparkSession.builder).remote(@URL@)
print('late', sorted(key for key in late._options if 'jar' in key or 'pyjoinopt' in key))
again.stop()
import os
os.environ['SPARK_REMOTE'] = @URL@
out = io.StringIO()
print('doctor', examine(out), out.getvalue())
""".replace("@URL@", repr(f"sc://127.0.0.1:{server}")),
        tmp_path,
    )
    assert "UnsupportedDataFrameError there is no 'changed' of this call: on Spark Connect" in reported
    assert "NotRunError" in reported and "is not available on Spark Connect" in reported
    assert "configured 7 True" in reported and "late []" in reported
    assert "doctor 0" in reported and "its joins" in reported and "rows are the same" in reported


@pytest.mark.jvm
@pytest.mark.slow
@needs_connect
def test_a_report_is_of_this_query_while_others_are_planned(server: int, tmp_path: Path) -> None:
    """Eight threads of one session fetch reports while others run queries: each gets the report of its own query."""
    reported = doors.client(
        server,
        """
import itertools, threading
from concurrent.futures import ThreadPoolExecutor
pyjoinopt.enable(spark)
spark.conf.set('spark.pyjoinopt.timeout', '60s')
done = threading.Event()
texts = [
    ''.join([
        f'SELECT count(*) FROM range({1000 + n}) t0 ',
        *(f'JOIN range({100 + n}) t{i} ON t{i - 1}.id = t{i}.id ' for i in range(1, 3 + n % 5)),
    ])
    for n in range(24)
]

def disturb():
    for n in itertools.count():
        if done.is_set():
            return n
        spark.sql(f'SELECT count(*) FROM range({n}) a JOIN range(50) b ON a.id = b.id JOIN range(9) c ON b.id = c.id '
            'JOIN range(8) d ON c.id = d.id').collect()

def relations(text):
    (group,) = pyjoinopt.join_report(spark.sql(text), strategy='none').groups
    return [round(relation.rows) for relation in group.relations]

expected = [[1000 + n] + [100 + n] * (2 + n % 5) for n in range(24)]
with ThreadPoolExecutor(8) as pool:
    disturbing = [pool.submit(disturb) for _ in range(3)]
    try:
        assert list(pool.map(relations, texts)) == expected
        assert [pyjoinopt.join_report(spark.range(n)).groups for n in range(5)] == [[]] * 5
    finally:
        done.set()
    print('disturbed', sum(one.result() for one in disturbing))
""",
        tmp_path,
    )
    assert int(reported.rpartition("disturbed")[2]) > 3


@pytest.mark.jvm
@pytest.mark.slow
@needs_connect
def test_a_client_interrupts_a_query_that_is_being_planned(tmp_path: Path) -> None:
    """The first worker sleeps for a minute; the client does not."""
    requested = tmp_path / "asked"
    works = "from pyjoinopt.worker.serve import main\n    raise SystemExit(main())"
    sleeps = f"{GREETS}\nopen({str(requested)!r}, 'w').close()\ntime.sleep(60)"
    python = fake(tmp_path, f"import os\nif os.path.exists({str(requested)!r}):\n    {works}\n{sleeps}")
    with doors.connect_server(tmp_path, [*doors.extended()[:-1], f"spark.pyjoinopt.python={python}"]) as port:
        _interrupted(port, requested, tmp_path)
    assert gone(str(tmp_path / "worker.py"))


def _interrupted(port: int, requested: Path, folder: Path) -> None:
    reported = doors.client(
        port,
        f"SQL, ASKED = {SQL!r}, {str(requested)!r}"
        """
import os, time
from concurrent.futures import ThreadPoolExecutor
spark.conf.set('spark.pyjoinopt.timeout', '60s')

def run():
    try:
        return spark.sql(SQL).collect()
    except Exception as error:
        return error

with ThreadPoolExecutor(1) as pool:
    running = pool.submit(run)
    until = time.monotonic() + 60
    while not os.path.exists(ASKED) and time.monotonic() < until:
        time.sleep(0.05)
    assert not running.done()
    started = time.monotonic()
    assert len(spark.interruptAll()) == 1
    error = running.result(timeout=20)
    assert time.monotonic() - started < 20
print('OPERATION_CANCELED' in str(error))
print(spark.sql(SQL).collect()[0][0], pyjoinopt.last_reports(spark)[-1].changed)
""",
        folder,
    )
    assert reported.splitlines() == ["True", "1000 True"]


@pytest.mark.jvm
@pytest.mark.slow
@needs_connect
def test_a_server_without_the_extension(bare_server: int, tmp_path: Path) -> None:
    reported = doors.client(
        bare_server,
        f"SQL = {SQL!r}"
        """
df = spark.sql(SQL)
print(len(df.collect()), pyjoinopt.is_enabled(spark))
for call in (df.optimize_joins, df.explain_joins, lambda: pyjoinopt.enable(spark)):
    try:
        call()
    except pyjoinopt.UnsupportedDataFrameError as error:
        print(error)
spark.stop()
for call in (df.optimize_joins, lambda: pyjoinopt.is_enabled(spark)):
    try:
        print(call())
    except Exception as error:
        print("lost", isinstance(error, pyjoinopt.PyJoinOptError))
""",
        tmp_path,
    )
    lines = reported.splitlines()
    assert lines[0] == "1 False"
    assert all(f"--conf spark.sql.extensions={EXTENSION}" in line for line in lines[1:4])
    assert lines[4:] == ["lost False", "lost False"]


def test_every_key_of_sessions_is_read_by_the_jvm_and_documented() -> None:
    page = (doors.ROOT / "docs" / "sessions.md").read_text()
    shim = doors.ROOT / "jvm_shim" / "src" / "common"
    files = ("worker/WorkerSettings", "session/OptimizeJoins", "session/ApplicationSettings", "session/StoreFunctions")
    read = "".join((shim / f"{file}.scala").read_text() for file in files)
    documented = set(re.findall(r"^\| `(spark\.pyjoinopt\.\w+)` \|", page, re.MULTILINE))
    assert documented == {key for key, _, _ in SESSION_KEYS}
    for key, default, _ in SESSION_KEYS:
        assert f'"{key.removeprefix("spark.pyjoinopt.")}"' in read or f'"{key}"' in read
        assert f"| `{key}` | `{default}`" in page or default in page
    coded = dict(re.findall(r'milliseconds\("(\w+)", (\d+)\)', read))
    assert 'text(Ours + "timeout").forall(_.equalsIgnoreCase("auto"))' in read
    assert coded.pop("timeout") == "0"  # no default: without the key it is auto
    coded["workers"] = re.findall(r'text\(Ours \+ "workers"\)\.fold\((\d+)\)', read)[0]
    reported = {key.removeprefix("spark.pyjoinopt."): default for key, default, _ in SESSION_KEYS}
    reported["prestart"] = reported["prestart"].replace("10min", "600s")
    assert coded == {name: reported[name].replace("s", "000") for name in ("prestart", "startTimeout", "workers")}
    assert reported["timeout"] == "auto"


@pytest.mark.jvm
@pytest.mark.ci
@needs_connect
def test_a_client_uses_a_baseline_of_the_server(spark: SparkSession, tmp_path: Path) -> None:
    """By the keyword of a call and by the hint; it was pinned elsewhere, over the same files."""
    store, session = tmp_path / "store.sqlite", spark.newSession()
    for name, rows in (("f", 3000), ("m", 300), ("d", 20)):
        session.sql(f"SELECT id AS {name}, id % 10 AS {name}_v FROM range({rows})").write.parquet(str(tmp_path / name))
        session.read.parquet(str(tmp_path / name)).createOrReplaceTempView(name)
    sql = "SELECT count(*) FROM f JOIN m ON f = m JOIN d ON m = d WHERE d_v < 3"
    pinned = pyjoinopt.baselines.pin(session.sql(sql), "daily", store=str(store))
    other = replace(pinned.groups[0], order=(("f", "m"), ("#1", "d")))
    assert other != pinned.groups[0], "the search has another order"
    pyjoinopt.baselines.drop("daily", store=str(store))
    assert BaselineStore(Store(store)).put(replace(pinned, groups=(other,), hints=()))
    with doors.connect_server(tmp_path, [*doors.extended(), "--conf", f"spark.pyjoinopt.store={store}"]) as port:
        reported = doors.client(
            port,
            f"""
for name in 'fmd':
    spark.read.parquet({str(tmp_path)!r} + '/' + name).createOrReplaceTempView(name)
df = spark.sql({sql!r})
hinted = spark.sql({sql.replace("SELECT", "SELECT /*+ OPTIMIZE_JOINS('baseline=daily') */")!r})
assert df.collect() == df.optimize_joins(baseline='daily').collect() == hinted.collect()
for report in pyjoinopt.last_reports(spark):
    print('order', report.groups[0].strategy == 'baseline', report.groups[0].order_after)
""",
            tmp_path,
        )
    orders = [line for line in reported.splitlines() if line.startswith("order")]
    assert orders[0].startswith("order False") and orders[1:] == ["order True ((f ⋈ m) ⋈ d)"] * 2
