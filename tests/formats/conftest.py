"""A session with Delta Lake, Iceberg and a JDBC driver, which `make test-formats` downloads."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import pyjoinopt
from pyjoinopt.bridge.shim import bridge_for
from tests.formats.postgres import Postgres

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

    from pyjoinopt.estimation.sources.registry import Known, Relation

DELTA = "io.delta.sql.DeltaSparkSessionExtension"
ICEBERG = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession

    from pyjoinopt.bridge.install.java import ensure_java

    ensure_java()
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    home = tmp_path_factory.mktemp("formats")
    jars = sorted(map(str, Path(os.environ["PYJOINOPT_TEST_FORMATS"]).glob("*.jar")))
    assert jars, "make test-formats brings the jars"
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "2g")
        .config("spark.driver.extraClassPath", ":".join(jars))
        .config("spark.driver.extraJavaOptions", f"-Dderby.system.home={home} -Xss16m -XX:TieredStopAtLevel=1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.warehouse.dir", str(home / "warehouse"))
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.ansi.enabled", "true")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.databricks.delta.snapshotPartitions", "1")
        .config("spark.sql.extensions", f"{DELTA},{ICEBERG}")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.sql.catalog.ice", "org.apache.iceberg.spark.SparkCatalog")
        .config("spark.sql.catalog.ice.type", "hadoop")
        .config("spark.sql.catalog.ice.warehouse", str(home / "ice"))
        .config("spark.sql.catalog.ice.cache-enabled", "false")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    """A server of its own, on loopback, with its data in a temporary folder; stopped at the end."""
    with Postgres(tmp_path_factory.mktemp("postgres")) as server:
        yield server


@pytest.fixture
def known() -> Callable[[DataFrame], tuple[Relation, Known]]:
    """The statistics of the single relation of a frame."""

    def of(df: DataFrame) -> tuple[Relation, Known]:
        from pyjoinopt.bridge.gateway import Py4jGateway
        from pyjoinopt.estimation.sources.leaf_statistics import LeafStatistics

        with Py4jGateway(bridge_for(df), df._jdf) as gateway:
            leaves = [node for node in gateway.export.nodes if not node.children]
            (one,) = LeafStatistics(gateway.statistics, leaves, "auto").known()
        return one

    return of


def settled(jobs: Callable[[], int]) -> int:
    """The number of jobs, once none has started for a while: Delta reads its log in the background after a write."""
    count = -1
    while count != (count := jobs()):
        time.sleep(0.3)
    return count


@pytest.fixture
def proved(known: Any, jobs: Any) -> Callable[..., Known]:
    """The statistics of a frame. Reading them must start no job, and they are compared with the data of the frame."""

    def check(df: DataFrame, exact: bool = True) -> Known:
        before = settled(jobs)
        facts = known(df)[1]
        assert jobs() == before, "a job was started for statistics"
        rows = df.collect()
        assert facts.exact == exact, facts
        if exact:
            assert facts.rows == len(rows), facts
        for name, column in facts.columns.items():
            values = [row[name] for row in rows if row[name] is not None]
            for value in values:
                assert _inside(column.min, value, column.max), (name, column, value)
        return facts

    return check


def _inside(low: Any, value: Any, high: Any) -> bool:
    from pyjoinopt.estimation.sources.json import number

    one = number(value)
    return one is None or ((low is None or low <= one) and (high is None or one <= high))


@pytest.fixture
def jobs(spark: SparkSession) -> Callable[[], int]:
    """How many jobs were started so far."""

    def count() -> int:
        return spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs()

    return count


@pytest.fixture
def same(spark: SparkSession) -> Callable[..., Any]:
    """Optimise a frame, and compare its rows with those of the frame as written. Returns the report."""

    def compare(df: DataFrame, **options: Any) -> Any:
        fast = pyjoinopt.optimize_joins(df, **{"store": "off", **options})
        assert _sorted(fast.collect()) == _sorted(df.collect())
        return fast.join_report()

    return compare


def _sorted(rows: list[Row]) -> list[str]:
    return sorted(map(repr, rows))
