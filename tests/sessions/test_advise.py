"""Advice on queries that a real Spark ran, from its event logs with every codec, in a JVM of its own.

`make test-versions` runs these tests on each Spark, with the logs that it writes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import pyjoinopt
from pyjoinopt.advice.physical_joins import joins_of
from pyjoinopt.eventlog.execution import Execution
from pyjoinopt.eventlog.executions import read_executions
from pyjoinopt.eventlog.files import find_logs
from pyjoinopt.eventlog.lines import ReadingNotes

pytestmark = [pytest.mark.jvm, pytest.mark.ci, pytest.mark.timeout(1800)]
CODECS = ("default", "none", "zstd", "lz4", "snappy", "lzf")

#: One application for each codec, one after the other; the counts of joins are printed.
SCRIPT = """
import json, sys
from pyspark.sql import SparkSession

home, codecs = sys.argv[1], sys.argv[2].split(",")
BAD = "FROM facts JOIN lines ON f_k = l_k JOIN days ON f_d = d_d WHERE d_wanted = 3"
GOOD = "FROM facts JOIN days ON f_d = d_d JOIN lines ON f_k = l_k WHERE d_wanted = 3"
counts = {}
for codec in codecs:
    builder = (SparkSession.builder.master("local[2]").appName(codec).config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1").config("spark.driver.memory", "1g")
        .config("spark.sql.shuffle.partitions", "3").config("spark.sql.warehouse.dir", home + "/warehouse")
        .config("spark.eventLog.enabled", "true").config("spark.eventLog.dir", "file://" + home + "/logs"))
    if codec == "none":
        builder = builder.config("spark.eventLog.compress", "false").config("spark.eventLog.rolling.enabled", "false")
    elif codec != "default":
        builder = (builder.config("spark.eventLog.compress", "true").config("spark.eventLog.rolling.enabled", "false")
            .config("spark.eventLog.compression.codec", codec))
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    if not counts:
        # A third of the facts share one key.
        facts = "CASE WHEN id % 3 = 0 THEN 0 ELSE id % 600 END AS f_k", "(id * 7) % 100 AS f_d"
        spark.range(60000).selectExpr(*facts).write.parquet(home + "/facts")
        spark.range(30000).selectExpr("id % 600 AS l_k", "id AS l_v").write.parquet(home + "/lines")
        spark.range(100).selectExpr("id AS d_d", "id % 50 AS d_wanted").write.parquet(home + "/days")
    for table in ("facts", "lines", "days"):
        spark.read.parquet(home + "/" + table).createOrReplaceTempView(table)
    if not counts:
        count = lambda text: spark.sql("SELECT count(*) " + text).first()[0]
        counts = {"first": count("FROM facts JOIN lines ON f_k = l_k"), "all": count(BAD),
                  "good": count("FROM facts JOIN days ON f_d = d_d WHERE d_wanted = 3")}
        distinct = "SELECT DISTINCT f_d FROM facts {} lines ON f_k = l_k"
        texts = [distinct.format(join) for join in ("JOIN", "LEFT SEMI JOIN")]
        spark.sparkContext.setJobDescription("exists")
        results = [sorted(row.f_d for row in spark.sql(text).collect()) for text in texts]
        assert results[0] == results[1]
    for threshold in ("-1", "10m"):
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", threshold)
        for name, text in (("bad", BAD), ("good", GOOD)):
            spark.sparkContext.setJobDescription(name + threshold)
            spark.sql("SELECT count(*), sum(l_v) " + text).collect()
    spark.stop()
print("COUNTS" + json.dumps(counts))
"""


def run(python: str, home: Path, codecs: str) -> dict[str, int]:
    """Run the script with an interpreter, and return the counts of joins."""
    variables = {**os.environ, "PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python}
    (home / "logs").mkdir()
    command = [python, "-c", SCRIPT, str(home), codecs]
    done = subprocess.run(command, capture_output=True, text=True, env=variables, timeout=1500)
    printed = [line for line in done.stdout.splitlines() if line.startswith("COUNTS")]
    assert done.returncode == 0 and printed, done.stdout + done.stderr
    counts: dict[str, int] = json.loads(printed[0].removeprefix("COUNTS"))
    return counts


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, int]]:
    """The folder of the logs, and the counts."""
    home = tmp_path_factory.mktemp("advise")
    return home / "logs", run(sys.executable, home, ",".join(CODECS))


def executions(folder: Path, codec: str) -> dict[str, Execution]:
    """The queries of the application with a codec, by their description."""
    notes = ReadingNotes()
    found = [execution for log in find_logs([folder]) for execution in read_executions(log, notes)]
    assert not notes.texts
    return {e.description: e for e in found if e.application.name == codec and e.description[:3] in ("bad", "goo")}


def rows(execution: Execution) -> list[float | None]:
    """The rows of its joins, the last one first."""
    return [join.rows for join in joins_of(execution.plan)]


@pytest.mark.parametrize("codec", CODECS)
def test_rows_of_joins_are_those_that_were_counted(logs: tuple[Path, dict[str, int]], codec: str) -> None:
    folder, counts = logs
    found = executions(folder, codec)
    assert len(found) == 4 and all(execution.complete and execution.task_ms > 0 for execution in found.values())
    for threshold in ("-1", "10m"):
        assert rows(found[f"bad{threshold}"]) == [counts["all"], counts["first"]]
        assert rows(found[f"good{threshold}"]) == [counts["all"], counts["good"]]


def test_the_files_are_compressed_as_expected(logs: tuple[Path, dict[str, int]]) -> None:
    names = {path.suffix for log in find_logs([logs[0]]) for path in log.paths}
    assert {".zstd", ".lz4", ".snappy", ".lzf"} <= names
    rolled = any(path.name.startswith("eventlog_v2_") for path in logs[0].iterdir())
    assert rolled is (int(version("pyspark").split(".")[0]) >= 4)  # by default


def test_a_bad_order_gets_the_good_one_as_advice(logs: tuple[Path, dict[str, int]]) -> None:
    folder, counts = logs
    advice = pyjoinopt.advise(folder)
    orders = {
        (query.description, finding.to_dict()["order"]): finding.to_dict()
        for query in advice.queries
        for finding in query.findings
        if finding.kind == "better join order" and not query.description.startswith("first")  # the counts themselves
    }
    assert {description for description, _ in orders} == {"bad-1", "bad10m"}
    for (_, order), finding in orders.items():
        assert sorted(order.strip("()").replace("(", "").replace(")", "").split(" ⋈ ")) == ["days", "facts", "lines"]
        assert "(facts ⋈ days)" in order or "(days ⋈ facts)" in order
        assert finding["ran_rows"] == pytest.approx(counts["first"])
        assert finding["rows"] == pytest.approx(counts["good"], rel=0.5) and finding["observed"] == 1.0
    assert all(query.runs == len(CODECS) for query in advice.queries if query.description.startswith("bad"))


def test_a_join_that_a_semi_join_can_replace(logs: tuple[Path, dict[str, int]]) -> None:
    """The script compares the rows of both."""
    folder, counts = logs
    (query,) = [query for query in pyjoinopt.advise(folder).queries if query.description == "exists"]
    (found,) = [finding.to_dict() for finding in query.findings if finding.kind == "existence check"]
    assert (found["side"], found["rows"], found["semi_rows"]) == ("lines", counts["first"], 60_000)
    assert query.runs == 1
