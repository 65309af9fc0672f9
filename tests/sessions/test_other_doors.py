"""The doors that need no Python in the driver: spark-sql, and a Connect server with a client that has no JVM."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from pyjoinopt.bridge.extension import EXTENSION
from pyjoinopt.bridge.jars import jar_for_version, spark_home
from pyjoinopt.bridge.java import ensure_java
from pyjoinopt.config import SESSION_KEYS

ROOT = Path(__file__).resolve().parents[2]
SQL = """SELECT count(*) FROM range(1000) f JOIN range(100) m ON f.id % 50 = m.id
JOIN range(10) d ON m.id = d.id WHERE d.id < 2"""
#: A folder with pyspark-client and what it needs, if the Python of the tests lacks it: pip install --target.
CLIENT = os.environ.get("PYJOINOPT_CONNECT_CLIENT")
CONNECT_JAR = any((spark_home() or Path()).glob("jars/spark-connect_*.jar"))


def settings(tmp_path: Path) -> list[str]:
    """What is copied from docs/sessions.md, and what keeps a test small."""
    return [
        "--master", "local[2]", "--driver-memory", "1g", "--jars", str(jar_for_version()),
        "--conf", f"spark.sql.extensions={EXTENSION}", "--conf", f"spark.pyjoinopt.python={sys.executable}",
        "--conf", "spark.ui.enabled=false", "--conf", "spark.sql.shuffle.partitions=2",
        "--conf", "spark.sql.catalogImplementation=in-memory",
        "--conf", f"spark.sql.warehouse.dir={tmp_path}/warehouse",
    ]  # fmt: skip


def environment(**more: str) -> dict[str, str]:
    java = ensure_java()
    return {
        "JAVA_HOME": str(java.resolve().parent.parent), **os.environ, "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONPATH": str(ROOT), **more,
    }  # fmt: skip


def program(name: str) -> str:
    home = spark_home()
    assert home is not None
    return str(home / "bin" / name)


@pytest.mark.slow
def test_spark_sql(tmp_path: Path) -> None:
    script = tmp_path / "report.sql"
    script.write_text(
        f"{SQL};\nSELECT changed, strategy FROM joinopt_report();\nSET spark.pyjoinopt.enabled=false;\n"
        f"{SQL.replace('SELECT', 'SELECT /*+ OPTIMIZE_JOINS(heuristic) */', 1)};\n{SQL};\n"
        "SELECT changed, strategy FROM joinopt_report();\n"
    )
    command = [program("spark-sql"), *settings(tmp_path), "-f", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment(), timeout=300)
    assert done.returncode == 0, done.stderr
    told = [line for line in done.stdout.splitlines() if not line.startswith("spark.")]
    assert told == ["40", "true\texact", "40", "40", "true\texact", "false\theuristic"], done.stderr


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a Connect server with the extension."""
    yield from start_server(tmp_path_factory.mktemp("server"), settings)


@pytest.fixture(scope="module")
def bare_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of one without."""
    yield from start_server(tmp_path_factory.mktemp("bare"), lambda _: ["--master", "local[2]"])


def start_server(folder: Path, arguments: object) -> Iterator[int]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        program("spark-submit"), "--class", "org.apache.spark.sql.connect.service.SparkConnectServer",
        *arguments(folder), "--conf", f"spark.connect.grpc.binding.port={port}",  # type: ignore[operator]
        "--conf", "spark.connect.grpc.binding.address=127.0.0.1", "spark-internal",
    ]  # fmt: skip
    with open(folder / "log", "w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, env=environment())
        try:
            until = time.monotonic() + 120
            while time.monotonic() < until and process.poll() is None:
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.2)
            yield port
        finally:
            process.terminate()
            process.wait(30)


def client(port: int, script: str, tmp_path: Path) -> str:
    """What a client says that has neither py4j nor a JVM."""
    prelude = (
        "import sys\nsys.modules['py4j'] = None\nimport pyjoinopt\nfrom pyspark.sql import SparkSession\n"
        f"spark = SparkSession.builder.remote('sc://127.0.0.1:{port}').getOrCreate()\nSQL = {SQL!r}\n"
    )
    path = os.pathsep.join([*([CLIENT] if CLIENT else []), str(ROOT)])
    command = [sys.executable, "-W", "ignore", "-c", prelude + script]
    variables = environment(PYTHONPATH=path, SPARK_HOME=str(spark_home()))  # the client's own helpers look for one
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=variables, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


needs_connect = pytest.mark.skipif(
    not CONNECT_JAR or (CLIENT is None and find_spec("grpc") is None),
    reason="needs a Spark with Connect and grpcio, or a folder with pyspark-client in PYJOINOPT_CONNECT_CLIENT",
)


@pytest.mark.slow
@needs_connect
def test_a_connect_client(server: int, tmp_path: Path) -> None:
    told = client(
        server,
        """
df = spark.sql(SQL)
assert pyjoinopt.is_enabled(spark)
assert df.collect() == df.optimize_joins().collect() == df.optimize_joins(strategy='heuristic').collect()
assert [r.strategy for r in pyjoinopt.last_reports(spark)] == ['auto', 'auto', 'heuristic']
assert df.optimize_joins().schema == df.schema
assert pyjoinopt.join_report(df).changed
assert pyjoinopt.join_report(df, strategy='none').strategy == 'none'
df.explain_joins()
f, m, d = spark.range(1000), spark.range(100).toDF('m'), spark.range(10).toDF('d')
x = f.join(m, f.id % 50 == m.m).join(d, m.m == d.d).filter('d < 2')
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
    assert "Joins: 1 group of 3 relations reordered" in told
    assert "only the strategy can be told with a call" in told


@pytest.mark.slow
@needs_connect
def test_a_server_without_the_extension(bare_server: int, tmp_path: Path) -> None:
    told = client(
        bare_server,
        """
df = spark.sql(SQL)
print(len(df.collect()), pyjoinopt.is_enabled(spark))
for call in (df.optimize_joins, df.explain_joins, lambda: pyjoinopt.enable(spark)):
    try:
        call()
    except pyjoinopt.UnsupportedDataFrameError as error:
        print(error)
""",
        tmp_path,
    )
    lines = told.splitlines()
    assert lines[0] == "1 False"
    assert len(lines) == 4 and all(f"--conf spark.sql.extensions={EXTENSION}" in line for line in lines[1:])


def test_every_key_of_sessions_is_read_by_the_jvm_and_documented() -> None:
    page = (ROOT / "docs" / "sessions.md").read_text()
    shim = ROOT / "jvm_shim" / "src" / "common"
    read = (shim / "WorkerSettings.scala").read_text() + (shim / "OptimizeJoins.scala").read_text()
    documented = set(re.findall(r"^\| `(spark\.pyjoinopt\.\w+)` \|", page, re.MULTILINE))
    assert documented == {key for key, _, _ in SESSION_KEYS}
    for key, default, _ in SESSION_KEYS:
        assert f'"{key.removeprefix("spark.pyjoinopt.")}"' in read or f'"{key}"' in read
        assert f"| `{key}` | `{default}`" in page or default in page
