"""A query that cannot be optimised is returned unchanged, with a reason; internal errors never reach the user."""

from __future__ import annotations

import logging
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

import pyjoinopt
from tests.support.compare import assert_same_rows, assert_same_schema
from tests.support.shop import SLOW, analysed, slow, unharmed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def reasons(df: Any, **options: Any) -> str:
    """All reasons for refusals, in one text."""
    return " | ".join(refusal.reason for refusal in pyjoinopt.join_report(df, **options).refusals)


def test_streaming_join_is_refused(db: SparkSession) -> None:
    clicks = db.readStream.format("rate").load().selectExpr("CAST(value AS INT) AS click")
    df = clicks.join(db.table("orders"), F.col("o_id") == F.col("click"))
    df = df.join(db.table("vip"), F.col("v_customer") == F.col("o_customer"))
    fast = df.optimize_joins()
    assert fast.isStreaming
    assert analysed(fast) == analysed(df)
    assert "stream" in reasons(df)
    with pytest.raises(pyjoinopt.PyJoinOptError, match="stream"):
        df.optimize_joins(strict=True)


@pytest.mark.parametrize(
    "text", ["SHOW TABLES", "DESCRIBE orders", "SET spark.sql.shuffle.partitions", "SHOW CATALOGS"]
)
def test_command_is_left_alone(db: SparkSession, text: str) -> None:
    df = db.sql(text)
    assert_same_rows(df, df.optimize_joins())
    assert not pyjoinopt.join_report(df).changed


def test_command_runs_once(db: SparkSession) -> None:
    df = db.sql(f"CREATE TABLE made_once USING parquet AS SELECT o_id, v_rank FROM {SLOW}")
    df.optimize_joins().collect()
    try:
        count = db.table("made_once").count()
        insert = db.sql(f"INSERT INTO made_once SELECT o_id, v_rank FROM {SLOW}")
        insert.optimize_joins().collect()
        assert db.table("made_once").count() == 2 * count > 0
    finally:
        db.sql("DROP TABLE made_once")


def test_explained_join_is_left_alone(db: SparkSession) -> None:
    df = db.sql(f"EXPLAIN SELECT * FROM {SLOW}")
    assert "Join" in df.optimize_joins().collect()[0][0]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "SELECT * FROM VALUES (1), (2)",
        "SELECT * FROM range(4)",
        "SELECT * FROM orders WHERE false",
        "SELECT 1 AS x WHERE false",
        "SELECT * FROM (SELECT 1 AS a) JOIN (SELECT 2 AS b)",
        "SELECT count(*) FROM orders",
    ],
)
def test_plan_with_little_in_it(db: SparkSession, text: str) -> None:
    unharmed(db.sql(text), reordered=False)


def test_frame_without_columns(db: SparkSession) -> None:
    unharmed(db.table("orders").select(), reordered=False)
    empty = slow(db).select()
    fast = empty.optimize_joins(strict=True)
    assert fast.columns == []
    assert fast.count() == empty.count()


def test_empty_frames(db: SparkSession) -> None:
    empty = db.createDataFrame([], "e_id INT")
    unharmed(empty, reordered=False)
    unharmed(slow(db).join(empty, F.col("e_id") == F.col("o_id"), "left"), reordered=True)
    unharmed(slow(db).join(empty, F.col("e_id") == F.col("o_id")), reordered=True)


def test_frames_made_from_python_data(db: SparkSession) -> None:
    names = db.createDataFrame([(1, "x"), (2, None), (8, "y")], "n_id INT, name STRING")
    numbers = db.sparkContext.parallelize([(n, n % 3) for n in range(20)], 2).toDF(["m_id", "m_mod"])
    df = slow(db).join(names, F.col("n_id") == F.col("o_customer")).join(numbers, F.col("m_id") == F.col("n_id"))
    unharmed(df, reordered=True)


def test_unresolved_plan_is_left_to_spark(db: SparkSession) -> None:
    """A frame whose plan was never analysed cannot be built from Python, but a broken view can be found in one."""
    db.sql("CREATE OR REPLACE TEMP VIEW short_lived AS SELECT * FROM orders")
    df = db.table("short_lived").join(db.table("vip"), F.col("v_customer") == F.col("o_customer"))
    db.catalog.dropTempView("short_lived")
    unharmed(df, reordered=False)


def test_deleted_files_are_not_the_optimizers_business(db: SparkSession, tmp_path: Path) -> None:
    """Planning reads file statistics; if files are missing, the query fails when it runs, as in plain Spark."""
    path = str(tmp_path / "gone")
    db.table("orders").write.parquet(path)
    gone = db.read.parquet(path)
    df = db.table("lines").join(gone, F.col("l_region") == F.col("o_region"))
    df = df.join(db.table("vip"), F.col("v_customer") == F.col("o_customer"))
    for file in Path(path).glob("*.parquet"):
        file.unlink()
    fast = df.optimize_joins()
    assert_same_schema(df, fast)


_WRONG_VALUES = [
    {"stratgy": "auto"}, {"strategy": "best"}, {"cost": "cheap"}, {"statistics": ""}, {"hint_slack": 0},
    {"hint_slack": "much"},
]  # fmt: skip


@pytest.mark.parametrize("option", _WRONG_VALUES)
def test_wrong_value_is_named(db: SparkSession, option: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(option))):
        slow(db).optimize_joins(**option)


@pytest.mark.parametrize("option", [{"hints": "yes"}, {"strict": 1}, {"strategy": None}, {"hint_slack": 2.5}])
def test_wrong_type_is_named(db: SparkSession, option: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=next(iter(option))):
        slow(db).optimize_joins(**option)


@pytest.mark.parametrize("thing", [None, 1, "SELECT 1"])
def test_something_that_is_no_frame(thing: object) -> None:
    with pytest.raises((TypeError, pyjoinopt.PyJoinOptError), match="DataFrame"):
        pyjoinopt.optimize_joins(thing)


@pytest.mark.parametrize("failing", ["pyjoinopt.api.dataframe.optimize", "pyjoinopt.optimizer.optimize.normalise"])
def test_error_inside_gives_the_plain_frame_and_one_log_line(
    db: SparkSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, failing: str
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RecursionError(f"broken on purpose in {failing}")

    monkeypatch.setattr(failing, broken)
    df = slow(db)
    with caplog.at_level(logging.DEBUG, logger="pyjoinopt"):
        frames = [df.optimize_joins() for _ in range(3)]
    assert all(analysed(frame) == analysed(df) for frame in frames)
    assert_same_rows(df, frames[0])
    warnings = [record for record in caplog.records if "broken on purpose" in record.getMessage()]
    assert len(warnings) == 1
    assert "broken on purpose" in pyjoinopt.join_report(df).to_text()
    with pytest.raises(RecursionError, match="broken on purpose"):
        df.optimize_joins(strict=True)


def test_error_in_the_jvm_gives_the_plain_frame(db: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """An invalid rebuild request raises an error in the JVM, which the bridge handles."""
    from pyjoinopt.bridge.encode import Edits

    for nonsense in ({}, {"exprs": [], "edits": [["Join", 0, 1, "Sideways", None, []]], "root": 1_000_000}):
        monkeypatch.setattr(Edits, "message", lambda *_, reported=nonsense, **__: reported)
        df = slow(db).select("o_id", "l_qty")
        fast = df.optimize_joins()
        assert analysed(fast) == analysed(df)
        assert_same_rows(df, fast)
        with pytest.raises(pyjoinopt.PyJoinOptError, match="rebuilding"):
            df.optimize_joins(strict=True)


def test_error_in_the_jvm_while_exporting_gives_the_plain_frame(
    db: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request to the bridge names a plan that does not exist."""
    from pyjoinopt.bridge import gateway

    ask = gateway.Py4jGateway.__init__
    monkeypatch.setattr(gateway.Py4jGateway, "__init__", lambda self, shim, *_, **__: ask(self, shim, None))
    df = slow(db)
    assert analysed(df.optimize_joins()) == analysed(df)
    with pytest.raises(pyjoinopt.PyJoinOptError, match="export"):
        df.optimize_joins(strict=True)


@pytest.mark.ci
@pytest.mark.jvm
def test_stopped_session_gives_a_clear_error() -> None:
    """In a separate process, since the session of the test run must stay alive."""
    code = """
        from pyjoinopt.bridge.install.java import ensure_java
        ensure_java()
        import pyjoinopt
        from pyspark.sql import SparkSession
        spark = SparkSession.builder.master("local[1]").config("spark.driver.host", "127.0.0.1") \\
            .config("spark.ui.enabled", "false").getOrCreate()
        df = spark.range(3).join(spark.range(2), "id")
        df.optimize_joins()
        spark.stop()
        try:
            df.optimize_joins()
        except pyjoinopt.PyJoinOptError as error:
            print("caught:", error)
        spark = SparkSession.builder.master("local[1]").config("spark.driver.host", "127.0.0.1") \\
            .config("spark.ui.enabled", "false").getOrCreate()
        again = spark.range(3).join(spark.range(2), "id").optimize_joins(strict=True)
        print("after a new start:", again.count())
        """
    done = subprocess.run([sys.executable, "-c", dedent(code)], capture_output=True, text=True, timeout=120)
    assert "caught:" in done.stdout, done.stderr[-2000:]
    assert "stopped" in done.stdout
    assert "after a new start: 2" in done.stdout, done.stderr[-2000:]


def test_connect_frame_gives_a_clear_error() -> None:
    """Without grpc there is no Connect frame; then only the module name of the class is checked."""
    if find_spec("grpc") is not None and find_spec("google.protobuf") is not None:
        from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame

        frame = object.__new__(ConnectFrame)
    else:
        frame = object.__new__(type("DataFrame", (), {"__module__": "pyspark.sql.connect.dataframe"}))
    with pytest.raises(pyjoinopt.PyJoinOptError, match="Connect"):
        pyjoinopt.optimize_joins(frame)


def test_planning_starts_no_spark_job(db: SparkSession) -> None:
    tracker = db.sparkContext.statusTracker()
    df = slow(db)
    before = list(tracker.getJobIdsForGroup(None))
    df.optimize_joins(strict=True)
    assert list(tracker.getJobIdsForGroup(None)) == before


def test_two_threads_at_once(db: SparkSession) -> None:
    from concurrent.futures import ThreadPoolExecutor

    df = slow(db)
    with ThreadPoolExecutor(2) as pool:
        reports = list(pool.map(lambda _: pyjoinopt.join_report(df, strict=True).groups[0].order_after, range(12)))
    assert len(set(reports)) == 1
