"""``python -m pyjoinopt doctor``: checks the installation, and runs one query end to end.

Each check needs the ones before it (Spark needs Java, a session needs the jar), so the first check that fails ends the
run.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Callable
from typing import Any, TextIO

from pyjoinopt.bridge.install import jars, java
from pyjoinopt.bridge.trial_session import quiet_session, remote_session
from pyjoinopt.errors import PyJoinOptError

_SESSION_SECONDS = 300
_SERVER_SECONDS = 120


def examine(out: TextIO) -> int:
    """Run the checks, write one line for each, and return the exit code: 0 if all passed, else 1.

    If pyspark-client is installed and pyspark is not, it runs the checks of a Spark Connect client, without a JVM.
    """
    checks: tuple[tuple[str, Callable[[], str]], ...] = (
        ("Python", _check_python),
        ("Spark", _check_spark),
        ("Java", _check_java),
        ("Scala", _check_scala),
        ("Jar", _check_jar),
        ("Session", _check_session),
    )
    if java.installed_spark_version() is None and java.installed_client_version() is not None:
        checks = (("Python", _check_python), ("Spark", _check_client), ("Server", _check_server))
    for name, check in checks:
        try:
            finding = check()
        except PyJoinOptError as error:
            return _failed(out, name, str(error))
        except Exception as error:
            return _failed(out, name, f"{type(error).__name__}: {_first_line(error)}")
        print(f"✓ {name:<8} {finding}", file=out, flush=True)
    untried = checks[-1][1] is _check_server and not os.environ.get("SPARK_REMOTE")
    well = "All is well on this side" if untried else "All is well"
    print(f"{well}: import pyjoinopt, then call df.optimize_joins().", file=out)
    return 0


def _failed(out: TextIO, name: str, problem: str) -> int:
    print(f"✗ {name:<8} {problem}", file=out)
    return 1


def _first_line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), "no message")


def _check_python() -> str:
    return f"{platform.python_version()} ({sys.executable})"


def _check_spark() -> str:
    installed = java.installed_spark_version()
    home = jars.spark_home()
    if installed is None or home is None:
        raise PyJoinOptError(java.why_no_spark())
    jars.check_spark_version(installed)
    if not (home / "jars").is_dir():
        raise PyJoinOptError(
            f"{home} has no folder `jars`. If SPARK_HOME is set, it must name the folder of a Spark installation; "
            "if it is not set, the Spark of the pyspark package is used."
        )
    return f"{installed} ({home})"


def _check_client() -> str:
    version = java.installed_client_version()
    return f"pyspark-client {version}: Spark Connect without a JVM; the server needs Java, Scala and the jar"


def _check_server() -> str:
    """Check the server that SPARK_REMOTE names, if it is set."""
    url = os.environ.get("SPARK_REMOTE")
    if not url:
        return "not tried, because none is named: set SPARK_REMOTE=sc://HOST:PORT and run this again"
    return f"{url}: {_in_a_process('try_server', {}, _SERVER_SECONDS)}"


def _check_java() -> str:
    executable = java.ensure_java()
    return f"{java.java_version(executable)} ({executable})"


def _check_scala() -> str:
    version = jars.scala_version_of(_spark_jars())
    return f"{version}, so the jar for Scala {jars.scala_binary_version(version)}"


def _check_jar() -> str:
    return str(jars.jar_for_version())


def _check_session() -> str:
    # Spark's Python workers must use the same Python as this process.
    return _in_a_process("try_session", {"SPARK_LOCAL_IP": "127.0.0.1", **os.environ, "PYSPARK_PYTHON": sys.executable})


def _in_a_process(function: str, environment: dict[str, str], seconds: int = _SESSION_SECONDS) -> str:
    """Run a function of this module in a new process, which hides Spark's log and isolates the JVM."""
    command = [sys.executable, "-c", f"from pyjoinopt.api.doctor import {function}; print({function}())"]
    try:
        done = subprocess.run(
            command, env=environment or None, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=seconds,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise PyJoinOptError(f"A small query did not finish within {seconds} seconds.") from None
    if done.returncode != 0:
        raise PyJoinOptError(f"A small query failed. The output of Python and Spark:\n{done.stderr.strip()}")
    return done.stdout.strip().splitlines()[-1]


def try_server() -> str:
    """Run one small query on the server that SPARK_REMOTE names; returns the result as text.

    Raises:
        UnsupportedDataFrameError: the server runs without the extension.
    """
    spark = remote_session()
    try:
        return _tried(_small_query(spark))
    finally:
        spark.stop()


def try_session() -> str:
    """Start a session and optimise and run one small query end to end; returns the result as text."""
    spark = quiet_session()
    try:
        return _tried(_small_query(spark), strict=True, cost="c_out")  # by rows, since the query is small
    finally:
        spark.stop()


def _tried(query: Any, **options: Any) -> str:
    import pyjoinopt

    report = pyjoinopt.join_report(query, **options)
    optimised = pyjoinopt.optimize_joins(query, **options)
    before, after = sorted(map(tuple, query.collect())), sorted(map(tuple, optimised.collect()))
    if before != after:
        raise PyJoinOptError("The optimised query returned other rows. Please report this as a bug of pyjoinopt.")
    verdict = "its joins were reordered" if report.changed else "its joins were left as written"
    return f"a query over three tables ran, {verdict}, and its {len(after)} rows are the same"


def _small_query(spark: Any) -> Any:
    """A query that joins two large relations first, and the selective small one last."""
    orders = spark.range(2000).selectExpr("id AS order_id", "id % 40 AS customer_id")
    items = spark.range(6000).selectExpr("id % 2000 AS item_order_id", "id AS item_id")
    customers = spark.range(3).selectExpr("id AS chosen_customer_id")
    return (
        orders.join(items, orders["order_id"] == items["item_order_id"])
        .join(customers, orders["customer_id"] == customers["chosen_customer_id"])
        .select("order_id", "item_id", "customer_id")
    )


def _spark_jars() -> Any:
    home = jars.spark_home()
    if home is None:
        raise PyJoinOptError(java.why_no_spark())
    return home / "jars"
