"""The Spark session and the sample databases that tests share.

One session serves a whole run: starting a JVM costs seconds, a query over small tables costs milliseconds. It checks
every plan change that a Catalyst rule makes (`spark.sql.planChangeValidation`), so a broken plan fails at once.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import tpc
from tests.support.letters import Letters
from tests.support.no_jvm import NoJvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pyjoinopt.plan.nodes import LogicalPlan


UNIT = Path(__file__).parent / "unit"
NO_JVM = pytest.StashKey[NoJvm]()

#: Deep plans need stack; queries over small tables do not live long enough for the optimizing compiler. Without it
#: the JVM sets aside 48 MB for compiled code, which a run fills within two minutes, to interpret from then on. What is
#: held softly, such as the rows of broadcasts, goes after some seconds, or the heap would never tell of a leak.
JVM_FLAGS = (
    "-Xss16m -XX:+UseParallelGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:MetaspaceSize=256m "
    "-XX:SoftRefLRUPolicyMSPerMB=1"
)
#: Every sort and every hash table begins with a page, 64 MB by default: the collector would do little else.
#: And the session remembers what thousands of finished queries did, for a web page that nobody looks at.
SMALL = {
    "spark.broadcast.compress": "false",
    "spark.shuffle.compress": "false",
    "spark.buffer.pageSize": "256k",
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.ui.retainedTasks": "10",
    "spark.sql.ui.retainedExecutions": "10",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """How many random queries (`--fuzz-n`), from which number on, from which seed, or just one of them."""
    group = parser.getgroup("fuzz", "random queries")
    group.addoption("--fuzz-n", type=int, default=60, help="how many random queries to compare (default 60)")
    group.addoption("--fuzz-from", type=int, default=0, help="leave out as many, which ran before (default 0)")
    group.addoption("--fuzz-seed", type=int, default=1, help="seed of the tables and of all queries (default 1)")
    group.addoption("--all-states", action="store_true", help="compare rules with Catalyst's on every plan state")
    group.addoption("--record-golden", action="store_true", help="write the expected texts of reports anew")
    group.addoption("--fuzz-only", type=int, default=None, help="run one query, by its number")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests with the fixture `spark` need a JVM; tests that start one in another way have the marker written."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.jvm)
        if item.get_closest_marker("jvm") and UNIT in item.path.parents:
            raise pytest.UsageError(f"{item.nodeid} needs a JVM, which tests/unit is without")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    with _without_jvm(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    with _without_jvm(item):
        return (yield)


def _without_jvm(item: pytest.Item) -> AbstractContextManager[None]:
    """Keeps a test without the marker `jvm` from starting one."""
    if item.get_closest_marker("jvm"):
        return nullcontext()
    if NO_JVM not in item.config.stash:
        item.config.stash[NO_JVM] = NoJvm(Path(tempfile.mkdtemp(prefix="no-jvm-")))
    return item.config.stash[NO_JVM].kept()


def pytest_unconfigure(config: pytest.Config) -> None:
    if NO_JVM in config.stash:
        config.stash[NO_JVM].remove()


@pytest.fixture(scope="session", autouse=True)
def own_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads or writes the user's own store of statistics."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYJOINOPT_STORE", str(tmp_path_factory.mktemp("store") / "statistics.sqlite"))
        yield


@pytest.fixture
def w() -> Letters:
    """For plans in few letters."""
    return Letters()


@pytest.fixture
def abcd(w: Letters) -> tuple[LogicalPlan, ...]:
    """Four relations of two columns each."""
    return tuple(w.relation(name, f"{name}1 {name}2") for name in "abcd")


@pytest.fixture
def abc(abcd: tuple[LogicalPlan, ...]) -> tuple[LogicalPlan, ...]:
    """Three relations of two columns each."""
    return abcd[:3]


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


@pytest.fixture(scope="session")
def tpch(spark: SparkSession) -> SparkSession:
    """A session of the same application with the TPC-H tables as temporary views."""
    session = spark.newSession()
    tpc.register(session, "tpch")
    return session


@pytest.fixture(scope="session")
def tpcds(spark: SparkSession) -> SparkSession:
    """A session of the same application with the TPC-DS tables as temporary views.

    Its queries are long and its tables tiny, so compiling a query would take longer than running it.
    """
    session = spark.newSession()
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    tpc.register(session, "tpcds")
    return session
