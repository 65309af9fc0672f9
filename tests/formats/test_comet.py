"""TPC-H with Comet: optimised queries give the written queries' rows, without existence joins or more Spark operators.

`make test-comet` downloads Comet for Spark 3.5 (the version is in `pom.xml`) and runs this in a session of its own.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pyjoinopt.optimizer import optimize as optimizer
from tests.support import tpc
from tests.support.compare import assert_same_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

JARS = os.environ.get("PYJOINOPT_TEST_COMET", "")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.jvm,
    pytest.mark.skipif(not JARS, reason="`make test-comet` downloads Comet and says where it is"),
]
#: An EXISTS that is joined late: without Comet it is pinned there as an existence join.
LATE = """
    SELECT count(*) FROM lineitem
    JOIN orders ON l_orderkey = o_orderkey JOIN customer ON o_custkey = c_custkey AND c_custkey < 9
    WHERE EXISTS (SELECT 1 FROM partsupp WHERE ps_partkey = l_partkey AND ps_availqty < 9000)
"""
#: Operators that do no work themselves, or convert data between the engines.
_NO_WORK = re.compile(
    r"Comet|AdaptiveSparkPlan|InputAdapter|QueryStage|WholeStage|AQEShuffleRead|ColumnarToRow|Reused|Subquery|=="
)


@pytest.fixture(scope="module")
def comet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session in which Comet runs every operator that it supports."""
    from pyspark.sql import SparkSession

    from pyjoinopt.bridge.install.java import ensure_java

    ensure_java()
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    home = tmp_path_factory.mktemp("comet")
    jars = ":".join(sorted(map(str, Path(JARS).glob("comet-spark-*.jar"))))
    assert jars, f"there is no comet-spark-*.jar in {JARS}"
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "2g")
        .config("spark.driver.extraClassPath", jars)
        .config("spark.driver.extraJavaOptions", f"-Dderby.system.home={home} -Xss16m")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.warehouse.dir", str(home / "warehouse"))
        .config("spark.local.dir", str(home / "local"))
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.plugins", "org.apache.spark.CometPlugin")
        .config("spark.shuffle.manager", "org.apache.spark.sql.comet.execution.shuffle.CometShuffleManager")
        .config("spark.memory.offHeap.enabled", "true")
        .config("spark.memory.offHeap.size", "2g")
        .config("spark.pyjoinopt.store", "off")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    tpc.register(session, "tpch")
    yield session
    session.stop()


def executed(df: DataFrame) -> list[str]:
    """The final plan's operators, after the query has run."""
    text = df._jdf.queryExecution().executedPlan().toString().split("== Initial Plan ==")[0]
    return [line.lstrip(" +-:*0123456789()") for line in text.splitlines() if line.strip()]


def optimized(df: DataFrame) -> str:
    return str(df._jdf.queryExecution().optimizedPlan().toString())


def left_to_spark(df: DataFrame) -> int:
    return sum(not _NO_WORK.match(operator) for operator in executed(df))


def test_no_semi_join_becomes_an_existence_join(comet: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    df = comet.sql(LATE)
    fast = df.optimize_joins(strict=True, cost="c_out")
    assert fast.join_report().joins_reordered
    assert_same_rows(df, fast)
    assert "ExistenceJoin" not in optimized(fast)
    monkeypatch.setattr(optimizer, "NATIVE", "nothing is loaded")
    assert "ExistenceJoin" in optimized(df.optimize_joins(strict=True, cost="c_out")), "the query proves nothing"


def test_tpch_with_comet(comet: SparkSession) -> None:
    """`pytest -s` prints how many operators Comet leaves to Spark."""
    changed, native, before, after = 0, 0, 0, 0
    for number, text in tpc.spark_queries("tpch").items():
        df = comet.sql(text)
        fast = df.optimize_joins(strict=True)
        rows, fast_rows = df.collect(), fast.collect()
        assert_same_rows(rows, fast_rows, label=(f"{number} as written", f"{number} optimised"))
        counts = left_to_spark(df), left_to_spark(fast)
        print(f"query {number:>2}: {counts[0]} operators are left to Spark as written, {counts[1]} optimised")
        before, after = before + counts[0], after + counts[1]
        native += sum(operator.startswith("Comet") for operator in executed(fast))
        changed += fast.join_report().changed
        assert not [operator for operator in executed(fast) if "ExistenceJoin" in operator], number
    print(f"in all: {before} as written, {after} optimised, {native} run by Comet")
    assert changed > 5 and native > 100, "nothing was changed, or Comet runs nothing"
    assert after <= before
