"""The Spark session that tests and doctests share, and the store of statistics that they use.

One session serves a whole run: starting a JVM costs seconds, a query over small tables costs milliseconds. It checks
every plan change that a Catalyst rule makes (`spark.sql.planChangeValidation`), so a broken plan fails at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


#: Deep plans need stack; queries over small tables do not live long enough for the optimizing compiler. Without it
#: the JVM reserves 48 MB for compiled code, which a run fills within two minutes; then it only interprets. Softly
#: referenced objects, such as the rows of broadcasts, are freed after some seconds, or the heap would not show a leak.
JVM_FLAGS = (
    "-Xss16m -XX:+UseParallelGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:MetaspaceSize=256m "
    "-XX:SoftRefLRUPolicyMSPerMB=1"
)
#: Every sort and every hash table begins with a page, 64 MB by default: the collector would do little else.
#: And the session keeps the records of thousands of finished queries, for a web page that nobody opens.
SMALL = {
    "spark.broadcast.compress": "false",
    "spark.shuffle.compress": "false",
    "spark.buffer.pageSize": "256k",
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.ui.retainedTasks": "10",
    "spark.sql.ui.retainedExecutions": "10",
}


@pytest.fixture(scope="session", autouse=True)
def own_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads or writes the user's own store of statistics."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYJOINOPT_STORE", str(tmp_path_factory.mktemp("store") / "statistics.sqlite"))
        yield


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session of the run: two threads, no UI, small shuffles, everything it writes under a temporary folder."""
    pytest.importorskip("pyspark", reason="PySpark is needed to run queries")
    from pyspark.sql import SparkSession

    from pyjoinopt.bridge.install.java import ensure_java

    ensure_java()
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    home = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.master("local[2]")
        .appName("pyjoinopt tests")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "3g")
        .config("spark.driver.extraJavaOptions", f"-Dderby.system.home={home} {JVM_FLAGS}")
        .config("spark.local.dir", str(home / "local"))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.warehouse.dir", str(home / "warehouse"))
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.planChangeValidation", "true")
        .config("spark.sql.session.timeZone", "UTC")
        .config(map=SMALL)
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
