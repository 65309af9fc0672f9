"""A query that runs while one of its joins exceeds its estimate by far: one warning, with what to do."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pyjoinopt
from tests.sessions import doors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The filters on sales are one and the same, which estimates without a sample cannot know.
TABLES = {
    "sales": f"SELECT id % 20 AS kind, {', '.join(f'id % 10 AS {name}' for name in 'abcde')} FROM range(120000)",
    "kinds": "SELECT id % 20 AS kind, id AS item FROM range(2000)",
    "items": "SELECT id AS item, id % 3 AS region FROM range(2000)",
}
QUERY = "SELECT count(*), sum(region) FROM kinds JOIN items USING (item) JOIN sales USING (kind) WHERE "
WRONG = QUERY + "a = 1 AND b = 1 AND c = 1 AND d = 1 AND e = 1"
RIGHT = QUERY + "a = 1"
ROWS = 1_200_000
WARNING = "has a join far above its estimate"


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("running")
    for name, text in TABLES.items():
        spark.sql(text).coalesce(1).write.parquet(str(folder / name))
    return folder


@pytest.fixture
def learning(new_session: Callable[[], SparkSession], session: SparkSession, folder: Path) -> SparkSession:
    """A session with feedback and without samples, which forgets what it counts."""
    made = new_session()
    pyjoinopt.enable(made, feedback=True, store="off", statistics_without="samples")
    made.conf.set("spark.pyjoinopt.timeout", "30s")
    for name in TABLES:
        made.read.parquet(str(folder / name)).createOrReplaceTempView(name)
    return made


@pytest.fixture
def warned(learning: SparkSession, warnings: Callable[[], list[str]]) -> Callable[[str], list[str]]:
    """Runs a query: its warnings."""

    def run(text: str) -> list[str]:
        warnings()
        assert learning.sql(text).first()[0] == ROWS  # type: ignore[index]
        learning.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        return [line for line in warnings() if WARNING in line]

    return run


@pytest.mark.parametrize("adaptive", ["true", "false"])
@pytest.mark.parametrize("threshold", ["-1", "10485760"], ids=["sort-merge", "broadcast"])
def test_one_warning_for_each_execution_far_above_its_estimate(
    learning: SparkSession, warned: Callable[[str], list[str]], adaptive: str, threshold: str
) -> None:
    learning.conf.set("spark.sql.adaptive.enabled", adaptive)
    learning.conf.set("spark.sql.autoBroadcastJoinThreshold", threshold)
    for _ in range(2):
        (line,) = warned(WRONG)
        numbers = re.search(r"^WARN Query .*: kinds, sales have ([\d,]+) rows so far, ([\d,]+) were estimated", line)
        assert numbers is not None, line
        counted, estimated = (int(number.replace(",", "")) for number in numbers.groups())
        assert 1_000_000 < counted <= ROWS and estimated < counted / 100
        assert "The query runs on with the same plan. You can stop it, and then collect statistics" in line
        for remedy in ("pyjoinopt.analyze", "pyjoinopt.tune", "KEEP_JOIN_ORDER", "spark.pyjoinopt.enabled=false"):
            assert remedy in line
    assert warned(RIGHT) == []


def test_with_a_store_its_row_counts_are_used(
    learning: SparkSession, warned: Callable[[str], list[str]], tmp_path: Path
) -> None:
    pyjoinopt.enable(learning, feedback=True, store=str(tmp_path / "store.sqlite"), statistics_without="samples")
    (line,) = warned(WRONG)
    assert "If it ends, its row counts are used when it comes again. Or stop it, and then collect" in line
    assert warned(WRONG) == [], "and so they are"


@pytest.mark.parametrize("key, value", [("feedback", "false"), ("enabled", "false")])
def test_no_warning_without_an_estimate(
    learning: SparkSession, warned: Callable[[str], list[str]], key: str, value: str
) -> None:
    learning.conf.set(f"spark.pyjoinopt.{key}", value)
    assert warned(WRONG) == []


@pytest.mark.parametrize("target", ["noop", "parquet"])
def test_a_query_that_writes(
    learning: SparkSession, warnings: Callable[[], list[str]], tmp_path: Path, target: str
) -> None:
    """Adaptive execution may be below the command that writes."""
    warnings()
    learning.sql(WRONG.replace("sum(", "avg(")).toDF("n", "mean").write.format(target).mode("overwrite").save(
        str(tmp_path / "written")
    )
    learning.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    assert len([line for line in warnings() if WARNING in line]) == 1


def test_a_query_that_runs_as_written_is_not_to_be_run_as_written(
    learning: SparkSession, warned: Callable[[str], list[str]]
) -> None:
    learning.conf.set("spark.pyjoinopt.strategy", "none")
    (line,) = warned(WRONG)
    assert line.endswith("search a plan with pyjoinopt.tune.")


#: A single task, which ends with the query: its rows are known before by heartbeats alone.
LONG = """
import sys
from pyspark.sql import SparkSession
import pyjoinopt
spark = (SparkSession.builder.master("local[1]").config("spark.executor.heartbeatInterval", "500ms")
    .config("spark.sql.codegen.wholeStage", "false").getOrCreate())
pyjoinopt.enable(spark, feedback=True, store="off", statistics_without="samples")
for name in ("sales", "kinds", "items"):
    spark.read.parquet(f"{sys.argv[1]}/{name}").createOrReplaceTempView(name)
spark.sql("CREATE TEMP VIEW all_kinds AS SELECT kind, item, explode(sequence(1, 10)) AS n FROM kinds")
print(spark.sql(sys.argv[2].replace("kinds", "all_kinds")).first()[0], flush=True)
spark.stop()
"""


@pytest.mark.jvm
@pytest.mark.slow
def test_the_rows_of_a_running_task_count(folder: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LONG, str(folder), WRONG], capture_output=True, text=True, cwd=tmp_path,
        env=doors.environment(tmp_path), timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-6000:]
    (line,) = [line for line in done.stderr.splitlines() if WARNING in line]
    counted = re.search(r"have ([\d,]+) rows so far", line)
    assert counted is not None and int(counted[1].replace(",", "")) < int(done.stdout) == 10 * ROWS, line
