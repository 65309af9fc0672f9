"""Checks each sentence of docs/security.md: who may set what, what is stored, and who can read it.

A server with both Thrift and Connect is attacked over each. Statements about the driver's own Python are tested in this
process.
"""

from __future__ import annotations

import json
import re
import sqlite3
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import pyjoinopt
from pyjoinopt.bridge.shim import bridge_of
from pyjoinopt.config import STATIC_KEYS
from tests.sessions import doors
from tests.sessions.conftest import BAD_ORDER, BETTER, orders, planned, rows
from tests.sessions.fakes import fake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = BAD_ORDER.format(hint="")
SECRET = "5ecret-5ecret"
SAMPLED = (
    "SELECT count(*) FROM {0} a JOIN {0} b ON a.k = b.k JOIN range({1}) c ON b.k = c.id WHERE a.word LIKE '%x{1}%'"
)
NOTES = "SELECT DISTINCT number, notes, report FROM joinopt_report() ORDER BY number"
BRIDGE = "org.apache.spark.sql.pyjoinopt.PyJoinOptBridge"


# -- over a server --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Server:
    """A driver with one application, which clients reach in two ways."""

    folder: Path
    thrift: int
    connect: int

    @property
    def store(self) -> Path:
        return self.folder / "given" / "by application.sqlite"

    def log(self) -> str:
        return (self.folder / "log").read_text()

    def stored(self, table: str = "relation") -> list[tuple[Any, ...]]:
        with sqlite3.connect(f"{self.store.as_uri()}?mode=ro", uri=True) as connection:
            return connection.execute(f"SELECT * FROM {table}").fetchall()


thrift_only = pytest.mark.skipif(
    not (doors.has_jar("spark-hive-thriftserver_*.jar") and doors.has_jar("spark-connect_*.jar")),
    reason="this Spark comes without the servers",
)


@pytest.fixture(scope="module")
def server(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A Thrift server with Connect as a plug-in, and tables of words that nobody has read yet."""
    folder = tmp_path_factory.mktemp("server")
    for name in ("mine", "others", "unstored"):
        words = f"concat('{SECRET}-', '{name}', ' x', CAST(id AS string)) AS word"
        spark.range(500).selectExpr("id AS k", words).coalesce(1).write.parquet(str(folder / name))
    thrift, connect = doors.free_port(), doors.free_port()
    command = [
        str(doors.HOME / "bin" / "spark-submit"), "--class", doors.THRIFT, *doors.extended(),
        "--conf", f"spark.pyjoinopt.store={folder / 'given' / 'by application.sqlite'}",
        "--conf", "spark.pyjoinopt.statisticsWithout=keys",
        "--conf", "spark.plugins=org.apache.spark.sql.connect.SparkConnectPlugin",
        "--conf", f"spark.connect.grpc.binding.port={connect}",
        "--conf", "spark.connect.grpc.binding.address=127.0.0.1",
        "spark-internal", "--hiveconf", f"hive.server2.thrift.port={thrift}",
        "--hiveconf", "hive.server2.thrift.bind.host=127.0.0.1",
    ]  # fmt: skip
    with doors.running(command, folder, thrift):
        yield Server(folder, thrift, connect)


@pytest.fixture(params=[pytest.param("thrift", marks=pytest.mark.ci), pytest.param("connect", marks=pytest.mark.slow)])
def client(
    request: pytest.FixtureRequest, spark: SparkSession, server: Server, tmp_path: Path
) -> Callable[..., list[list[Any]]]:
    """Runs lists of statements, each list in its own session, with all sessions open at the same time.

    The statements of the first session run first, those of the second then, and so on.
    """

    def thrift(*sessions: list[str]) -> list[list[Any]]:
        driver = spark._jvm.org.apache.hive.jdbc.HiveDriver()
        nothing = spark._jvm.java.util.Properties()
        url = f"jdbc:hive2://127.0.0.1:{server.thrift}/default"
        # They end with the server: to close one, Hive makes a metastore, which takes many seconds.
        opened = [driver.connect(url, nothing) for _ in sessions]
        return [[_by_jdbc(one, text) for text in texts] for one, texts in zip(opened, sessions, strict=True)]

    def connect(*sessions: list[str]) -> list[list[Any]]:
        said = doors.client(
            server.connect,
            f"URL, SESSIONS = 'sc://127.0.0.1:{server.connect}', {sessions!r}"
            """
import json
def run(session, text):
    try:
        return [[str(value) for value in row] for row in session.sql(text).collect()]
    except Exception as error:
        return str(error)
opened = [SparkSession.builder.remote(URL).create() for _ in SESSIONS]
print('\\n' + json.dumps([[run(one, text) for text in texts] for one, texts in zip(opened, SESSIONS)]), flush=True)
for one in opened:
    one.stop()  # a session that was made by create() keeps the program from ending
""",
            tmp_path,
        )
        return list(json.loads(said.splitlines()[-1]))

    return thrift if request.param == "thrift" else connect


def _by_jdbc(connection: Any, text: str) -> Any:
    statement = connection.createStatement()
    try:
        if not statement.execute(text):
            return []
        found, answer = statement.getResultSet(), []
        columns = range(1, found.getMetaData().getColumnCount() + 1)
        while found.next():
            answer.append([str(found.getString(column)) for column in columns])
        return answer
    except Exception as error:
        return str(error)
    finally:
        statement.close()


def view(server: Server, name: str) -> str:
    return f"CREATE TEMPORARY VIEW {name} AS SELECT * FROM parquet.`{server.folder / name}`"


@thrift_only
def test_a_client_starts_no_program_and_opens_no_file(
    client: Callable[..., list[list[Any]]], server: Server, tmp_path: Path
) -> None:
    started = tmp_path / "started"
    python = fake(tmp_path, f"open({str(started)!r}, 'w').close()")
    constants, evil = tmp_path / "constants.json", tmp_path / "evil" / "store.sqlite"
    constants.write_text(json.dumps({"shuffle": SECRET}))
    values = {
        "python": python, "pythonpath": str(tmp_path), "workers": "50", "startTimeout": "1h", "prestart": "9h",
        "store": str(evil), "costConstants": str(constants), "storeFunctions": "true", "locked": "mode",
    }  # fmt: skip
    assert [f"spark.pyjoinopt.{name}" for name in values] == list(STATIC_KEYS)
    before = server.log()
    (said, unallowed) = client([
        *(f"SET spark.pyjoinopt.{name}={value}" for name, value in values.items()),
        "SET spark.sql.legacy.setCommandRejectsSparkCoreConfs=false",
        f"SET spark.pyspark.driver.python={python}", f"SET spark.pyspark.python={python}",
        "SET spark.pyjoinopt.statisticsWithout=",
        view(server, "mine"), SAMPLED.format("mine", 401), SAMPLED.format("mine", 402), NOTES,
    ], ["SET spark.pyjoinopt.storeFunctions=true", "SELECT * FROM joinopt_queries()"])  # fmt: skip
    assert "joinopt_queries() shows names of tables" in str(unallowed[-1])
    assert all(isinstance(answer, list) for answer in said), said
    assert said[-3:-1] == [[["0"]], [["0"]]]
    assert len(said[-1]) >= 2
    for _, notes, report in said[-1]:
        assert re.findall(r"(spark\.pyjoinopt\.\w+): it belongs to the application", notes) == list(STATIC_KEYS)
        assert json.loads(report)["error"] is None
    assert not started.exists() and not evil.parent.exists()
    assert SECRET not in str(said[-1]), "a report holds no values"
    log = server.log()[len(before) :]
    for key in STATIC_KEYS:
        assert log.count(f"A session has set {key}. It is ignored") == 1
    assert SECRET not in log


@thrift_only
def test_a_session_may_switch_the_store_off_and_others_keep_it(
    client: Callable[..., list[list[Any]]], server: Server
) -> None:
    known = {row[0] for row in server.stored()} if server.store.exists() else set()
    client(["SET spark.pyjoinopt.store=off", view(server, "unstored"), SAMPLED.format("unstored", 401), NOTES])
    assert ({row[0] for row in server.stored()} if server.store.exists() else set()) == known
    client([view(server, "mine"), SAMPLED.format("mine", 403), NOTES])
    assert server.stored() and any(SECRET.encode() not in bytes(row[3]) for row in server.stored("blob"))
    for file in server.store.parent.glob(f"{server.store.name}*"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


@thrift_only
def test_a_session_sees_its_own_reports_only(client: Callable[..., list[list[Any]]], server: Server) -> None:
    marked = SAMPLED.format("mine", 404).replace("SELECT", "SELECT /*+ OPTIMIZE_JOINS('mark=m') */")
    one, other, nobody = client(
        [view(server, "mine"), marked, NOTES],
        [view(server, "others"), SAMPLED.format("others", 405), NOTES, "SELECT number FROM joinopt_report('m')"],
        [NOTES, "SELECT number FROM joinopt_report('m')"],
    )  # fmt: skip
    assert [row[0] for row in one[-1]] == ["1"] and '"mine"' in str(one[-1]) and '"others"' not in str(one[-1])
    assert [row[0] for row in other[-2]] == ["1"] and '"others"' in str(other[-2]) and '"mine"' not in str(other[-2])
    assert other[-1] == nobody[0] == nobody[1] == []


@thrift_only
def test_reflect_reaches_nothing_of_others(client: Callable[..., list[list[Any]]], server: Server) -> None:
    calls = ["'takeExecuted'", "'takeExecuted', 1L", "'samples', 1L, '{}'", "'statistics', 1L, '{}'"]
    calls += ["'analysis', 1L", "'enable'"]
    (said,) = client([f"SELECT reflect('{BRIDGE}', {call})" for call in calls])
    assert all(isinstance(answer, str) for answer in said), said


@thrift_only
@pytest.mark.slow
def test_the_calls_of_a_connect_client_set_nothing_of_the_application(server: Server, tmp_path: Path) -> None:
    said = doors.client(
        server.connect,
        f"URL = 'sc://127.0.0.1:{server.connect}'"
        """
spark.sql("SELECT 1").collect()
for options in ({'python': '/x'}, {'store': '/x/y.sqlite'}, {'cost_constants': '/etc/hostname'}):
    try:
        pyjoinopt.enable(spark, **options)
    except ValueError as error:
        print('refused', 'where the server is started' in str(error), *options)
pyjoinopt.enable(spark, store='off')
print(spark.conf.get('spark.pyjoinopt.store'))
""",
        tmp_path,
    )
    assert said.splitlines() == [
        "refused True python", "refused True store", "refused True cost_constants", "off",
    ]  # fmt: skip


# -- in the driver's own Python --------------------------------------------------------------------------------------


def test_the_keys_of_the_application_are_the_same_everywhere() -> None:
    scala = (doors.ROOT / "jvm_shim" / "src" / "common" / "session" / "ApplicationSettings.scala").read_text()
    (listed,) = re.findall(r"Seq\(([^)]*)\)\s*\.map\(Ours \+ _\)", scala)
    assert [f"spark.pyjoinopt.{name}" for name in re.findall(r'"(\w+)"', listed)] == list(STATIC_KEYS)
    table = (doors.ROOT / "docs" / "security.md").read_text().partition("## What is stored")[0]
    assert set(STATIC_KEYS) <= set(re.findall(r"`(spark\.pyjoinopt\.\w+)`", table))


def test_what_a_session_sets_is_not_used(
    session: SparkSession, warnings: Callable[[], list[str]], tmp_path: Path
) -> None:
    expected = rows(session.sql(SQL))
    session.conf.set("spark.pyjoinopt.python", "/there/is/no/python3")
    session.conf.set("spark.pyjoinopt.workers", "none")
    session.sql(f"SET spark.pyjoinopt.store={tmp_path / 'a' / 'store.sqlite'}")
    warnings()
    for _ in range(2):
        found, reports = planned(session, lambda: rows(session.sql(SQL)))
        assert found == expected and orders(reports) == [BETTER]
    reported = [line for line in warnings() if line.startswith("WARN")]
    assert len(reported) == 3 and all("ignored" in line and "pyjoinopt.enable" in line for line in reported)
    assert not (tmp_path / "a").exists()
    refused = {refusal.where for refusal in reports[0].refusals if "belongs to the application" in refusal.reason}
    assert refused == {"spark.pyjoinopt.python", "spark.pyjoinopt.workers", "spark.pyjoinopt.store"}


def test_what_the_drivers_python_gives_is_used(
    session: SparkSession, new_session: Callable[[], SparkSession], warnings: Callable[[], list[str]], tmp_path: Path
) -> None:
    started = tmp_path / "started"
    real = f"open({str(started)!r}, 'w').close()\nimport sys\nfrom pyjoinopt.worker.serve import main\nsys.exit(main())"
    store = tmp_path / "new" / "store.sqlite"
    pyjoinopt.enable(session, python=fake(tmp_path, real), workers=1, start_timeout="60s", store=str(store))
    warnings()
    assert orders(planned(session, lambda: rows(session.sql(SQL)))[1]) == [BETTER]
    assert started.exists() and store.exists() and stat.S_IMODE(store.stat().st_mode) == 0o600
    started.unlink()
    other = new_session()
    pyjoinopt.enable(other)
    assert orders(planned(other, lambda: rows(other.sql(SQL)))[1]) == [BETTER]
    assert not started.exists(), "it is of one session"
    assert not [line for line in warnings() if line.startswith("WARN")]
    session.conf.set("spark.pyjoinopt.store", "auto")
    planned(session, lambda: rows(session.sql(SQL)))
    assert "has set spark.pyjoinopt.store" in "".join(warnings())
    pyjoinopt.enable(session, python="")


def test_it_is_used_for_cached_data_too(
    session: SparkSession, warnings: Callable[[], list[str]], tmp_path: Path
) -> None:
    """Spark plans what is cached in a clone of the session."""
    store = tmp_path / "new" / "store.sqlite"
    pyjoinopt.enable(session, store=str(store))
    warnings()
    df = session.sql(SQL).cache()
    try:
        df.count()
        reported = warnings()
        assert any(BETTER in line for line in reported) and not [line for line in reported if line.startswith("WARN")]
        assert store.exists()
    finally:
        df.unpersist()


def test_what_the_application_leaves_out_no_session_brings_back(session: SparkSession) -> None:
    conf, bridge = session.sparkContext._jsc.sc().conf(), bridge_of(session)

    def without() -> str:
        exported = json.loads(bridge.export(session.sql(SQL)._jdf, "{}"))
        bridge.release(exported["handle"])
        return str(exported["conf"]["spark.pyjoinopt.statisticsWithout"])

    session.conf.set("spark.pyjoinopt.statisticsWithout", "keys")
    assert without() == "keys"
    conf.set("spark.pyjoinopt.statisticsWithout", "samples")
    try:
        assert without() == "samples,keys"
        session.conf.set("spark.pyjoinopt.statisticsWithout", "")
        assert without() == "samples"
    finally:
        conf.remove("spark.pyjoinopt.statisticsWithout")


def test_calls_on_a_frame_follow_the_keys_of_its_session(session: SparkSession, tmp_path: Path) -> None:
    """But no folder is created for them: the key may be a client's, where a server shares the session."""
    here, nowhere, given = (tmp_path / name / "store.sqlite" for name in ("here", "nowhere", "given"))
    here.parent.mkdir()
    df = session.sql(SQL)
    session.conf.set("spark.pyjoinopt.store", str(here))
    assert df.optimize_joins()._pyjoinopt_report.changed and here.exists()
    session.conf.set("spark.pyjoinopt.store", str(nowhere))
    with pytest.warns(RuntimeWarning, match="no session may create one"):
        assert df.optimize_joins()._pyjoinopt_report.changed
    assert not nowhere.parent.exists()
    assert df.optimize_joins(store=str(given))._pyjoinopt_report.changed and given.exists()


@pytest.mark.parametrize(
    "content", [f'{{"shuffle": "{SECRET}"}}', f"{SECRET}\n", f'["{SECRET}"]', b"\xff\xfe5ecret-5ecret".decode("latin1")]
)
def test_no_message_has_anything_of_a_file(session: SparkSession, tmp_path: Path, content: str) -> None:
    file = tmp_path / "file"
    file.write_bytes(content.encode("latin1"))
    with pytest.raises(ValueError, match="is not a file with the constants") as raised:
        session.sql(SQL).optimize_joins(cost_constants=str(file))
    reported, waiting = set(), [raised.value]
    while waiting:
        error = waiting.pop()
        assert "5ecret" not in f"{error!r}"
        reported.add(error)
        waiting += [e for e in (error.__cause__, error.__context__) if isinstance(e, ValueError) and e not in reported]


def test_a_static_method_that_sql_can_call_gives_nothing_away(session: SparkSession) -> None:
    """`reflect` calls static methods with numbers and strings; the existing ones have been reviewed.

    A first parameter that is a number is one that `OpenNumbers` made.
    """
    jvm = session._jvm
    sql = {"int", "long", "short", "byte", "boolean", "float", "double", "java.lang.String"}
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    bridge = jvm.java.lang.Class.forName(BRIDGE, True, loader)
    reached = set()
    for method in bridge.getMethods():
        kinds = [kind.getName() for kind in method.getParameterTypes()]
        is_static = jvm.java.lang.reflect.Modifier.isStatic(method.getModifiers())
        if is_static and set(kinds) <= sql and kinds[:1] != ["long"]:
            reached.add(method.getName())
    assert reached == {"forgetSamples", "openHandles", "trials", "version", "workers"}
    handles = [json.loads(bridge_of(session).export(session.range(1)._jdf, "{}"))["handle"] for _ in range(5)]
    assert len({handle >> 40 for handle in handles}) == 5, "they do not count up"
    for handle in handles:
        bridge_of(session).release(handle)
