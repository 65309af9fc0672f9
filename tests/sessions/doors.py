"""Programs that are not PySpark drivers: Spark's own, servers that listen on a port, and a client without a JVM."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from filelock import FileLock

from pyjoinopt.bridge.extension import EXTENSION
from pyjoinopt.bridge.install.jars import jar_for_version, spark_home
from pyjoinopt.bridge.install.java import ensure_java
from tests.support.tpc import cache_folder

ROOT = Path(__file__).resolve().parents[2]
SPARK = tuple(map(int, version("pyspark").split(".")[:2]))
HOME = spark_home() or Path()
CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"
HISTORY = "org.apache.spark.deploy.history.HistoryServer"
THRIFT = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"


def has_jar(pattern: str) -> bool:
    """Whether Spark's own jars include such a jar."""
    return any(HOME.glob(f"jars/{pattern}"))


def extended() -> list[str]:
    """The arguments of docs/sessions.md."""
    return [
        "--jars", str(jar_for_version()), "--conf", f"spark.sql.extensions={EXTENSION}",
        "--conf", f"spark.pyjoinopt.python={sys.executable}",
    ]  # fmt: skip


def environment(folder: Path, **more: str) -> dict[str, str]:
    """Variables of a program that works in a folder: Spark's and this Python's programs found, everything small."""
    conf = folder / "conf"
    conf.mkdir(exist_ok=True)
    (conf / "spark-defaults.conf").write_text(
        "spark.master local[2]\nspark.driver.memory 1g\nspark.ui.enabled false\nspark.sql.shuffle.partitions 2\n"
        "spark.driver.extraJavaOptions -Xss16m -XX:+UseParallelGC -XX:TieredStopAtLevel=1 "
        "-XX:ReservedCodeCacheSize=256m "  # when it is full, the JVM prints a warning to standard output
        f"-Dderby.system.home={folder}\nspark.sql.warehouse.dir {folder}/warehouse\n"
        "spark.pyjoinopt.timeout 30s\n"  # a busy machine may take over two to start Python and plan
        f"spark.local.dir {folder}/local\nspark.sql.catalogImplementation in-memory\n"
    )
    programs = [Path(sys.executable).parent, HOME / "bin", HOME / "sbin"]
    path = os.pathsep.join([*map(str, programs), os.environ["PATH"]])
    java = str(ensure_java().resolve().parent.parent)
    return {
        **os.environ, "JAVA_HOME": java, "SPARK_HOME": str(HOME), "SPARK_CONF_DIR": str(conf), "PATH": path,
        "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": str(ROOT), "SPARK_LOG_DIR": str(folder / "logs"),
        "SPARK_PID_DIR": str(folder / "pids"), "LC_ALL": "C.UTF-8", **more,
    }  # fmt: skip


def run(command: list[str], folder: Path, seconds: int = 300, **more: str) -> str:
    """The standard output of a program, which must exit with code 0."""
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=folder, env=environment(folder, **more), timeout=seconds
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]
    return done.stdout


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def running(command: list[str], folder: Path, port: int, **more: str) -> Iterator[None]:
    """A server that accepts connections on its port; it is stopped afterwards, with its child processes."""
    with open(folder / "log", "w") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=log, cwd=folder, env=environment(folder, **more), start_new_session=True
        )
        try:
            until = time.monotonic() + 180
            while time.monotonic() < until and process.poll() is None:
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.2)
            else:
                raise AssertionError((folder / "log").read_text()[-6000:])
            yield
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(60)


@contextmanager
def connect_server(folder: Path, arguments: list[str]) -> Iterator[int]:
    """The port of a Connect server."""
    port = free_port()
    command = [
        str(HOME / "bin" / "spark-submit"), "--class", CONNECT, *arguments,
        "--conf", f"spark.connect.grpc.binding.port={port}",
        "--conf", "spark.connect.grpc.binding.address=127.0.0.1", "spark-internal",
    ]  # fmt: skip
    with running(command, folder, port):
        yield port


@contextmanager
def history_server(
    folder: Path, logs: Path, applications: set[str], more: str = "", jars: Sequence[Path] = ()
) -> Iterator[str]:
    """The address of a History Server over a folder of event logs, which has read those of all these applications.

    Args:
        folder: for its own log.
        logs: the event logs.
        applications: their ids.
        more: options of its JVM.
        jars: in addition to ours.
    """
    port = free_port()
    options = f"-Dspark.history.fs.logDirectory={logs.as_uri()} -Dspark.history.ui.port={port} {more}"
    classes = os.pathsep.join(map(str, (jar_for_version(), *jars)))
    variables = {"SPARK_DAEMON_CLASSPATH": classes, "SPARK_HISTORY_OPTS": options}
    address = f"http://127.0.0.1:{port}"
    with running([str(HOME / "bin" / "spark-class"), HISTORY], folder, port, **variables):
        until, found = time.monotonic() + 60, set[str]()
        while not applications <= found and time.monotonic() < until:
            time.sleep(0.2)
            with urllib.request.urlopen(f"{address}/api/v1/applications", timeout=60) as answer:
                found = {application["id"] for application in json.load(answer)}
        assert applications <= found, (folder / "log").read_text()[-6000:]
        yield address


def client_python() -> str:
    """A Python with pyspark-client and what pyjoinopt needs, without py4j; made once, and kept beside the test data."""
    requirement = f"pyspark-client<{SPARK[0]}.{SPARK[1] + 1}"
    name = re.sub(r"[^\w.]+", "-", f"{requirement}-python{sys.version_info[0]}.{sys.version_info[1]}")
    folder = cache_folder() / name
    python = folder / "bin" / "python"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not (folder / "_COMPLETE").exists():
            shutil.rmtree(folder, ignore_errors=True)
            venv.create(folder, with_pip=True)
            pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
            subprocess.run([*pip, requirement, "pandas<3", "filelock", "platformdirs"], check=True, timeout=600)
            (folder / "_COMPLETE").touch()
    return str(python)


def client(port: int, script: str, folder: Path, seconds: int = 300) -> str:
    """The output of a client that has neither py4j nor a JVM.

    Some versions of pyspark-client look for a Spark of their own when they are imported; any folder will do.
    """
    prelude = (
        "import importlib.util, sys\nassert importlib.util.find_spec('py4j') is None\n"
        "import pyjoinopt\nfrom pyspark.sql import SparkSession\n"
        f"spark = SparkSession.builder.remote('sc://127.0.0.1:{port}').getOrCreate()\n"
    )
    variables = {k: v for k, v in os.environ.items() if k not in ("JAVA_HOME", "SPARK_HOME", "PYSPARK_PYTHON")}
    done = subprocess.run(
        [client_python(), "-W", "ignore", "-c", prelude + script], capture_output=True, text=True, cwd=folder,
        env={**variables, "PYTHONPATH": str(ROOT), "SPARK_HOME": str(folder)}, timeout=seconds,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]
    return done.stdout
