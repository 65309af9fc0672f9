"""Scans without statistics in the event logs of a real Spark: what each kind of log shows."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

import pyjoinopt

pytestmark = [pytest.mark.jvm, pytest.mark.ci, pytest.mark.timeout(1800)]

#: An application for each kind of log, one after the other.
SCRIPT = """
import sys, time
from pyspark.sql import SparkSession
import pyjoinopt

home = sys.argv[1]
COSTS = {"spark.sql.ui.explainMode": "cost"}
APPLICATIONS = {
    "plain": {"spark.sql.autoBroadcastJoinThreshold": "1m"},
    "costs": COSTS,
    "costs and cbo": {**COSTS, "spark.sql.cbo.enabled": "true"},
    "report": {"spark.pyjoinopt.mode": "report", "spark.pyjoinopt.statistics": "none"},
}
for name, settings in APPLICATIONS.items():
    builder = (SparkSession.builder.master("local[2]").appName(name).config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1").config("spark.driver.memory", "1g")
        .config("spark.sql.shuffle.partitions", "3").config("spark.sql.warehouse.dir", home + "/" + name)
        .config("spark.eventLog.enabled", "true").config("spark.eventLog.dir", "file://" + home + "/logs")
        .config("spark.eventLog.compress", "false"))
    for key in ("spark.sql.ui.explainMode", "spark.sql.cbo.enabled", "spark.sql.autoBroadcastJoinThreshold",
                "spark.pyjoinopt.mode", "spark.pyjoinopt.statistics"):
        builder = builder.config(key, settings[key]) if key in settings else builder
    spark = (pyjoinopt.configure(builder) if name == "report" else builder).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    if name == "plain":
        spark.range(200000).selectExpr("id % 100 AS f_d", "id AS f_v").write.csv(home + "/facts")
        spark.range(1200000).selectExpr("id % 100 AS l_d", "id AS l_v").write.csv(home + "/lines")
        spark.range(120000).selectExpr("id AS d_d", "id % 50 AS d_w").write.parquet(home + "/days")
    spark.read.csv(home + "/facts", "f_d LONG, f_v LONG").createOrReplaceTempView("facts")
    spark.read.csv(home + "/lines", "l_d LONG, l_v LONG").createOrReplaceTempView("lines")
    spark.read.parquet(home + "/days").createOrReplaceTempView("days")
    if name.startswith("costs"):
        for table in ("analysed", "plain"):
            spark.read.parquet(home + "/days").write.saveAsTable(table)
        spark.sql("ANALYZE TABLE analysed COMPUTE STATISTICS FOR ALL COLUMNS").collect()
        texts = ["SELECT count(*) FROM analysed a JOIN plain p ON a.d_d = p.d_d JOIN facts ON f_d = a.d_d"]
    elif name == "plain":
        texts = ["SELECT count(*), sum(f_v) FROM facts JOIN lines ON f_d = l_d WHERE l_v < 100"]
    else:
        # A worker that was started for a query may send its report when the query has ended.
        texts = 5 * ["SELECT count(*) FROM facts JOIN days ON f_d = d_d JOIN lines ON f_d = l_d WHERE l_v < 9"]
    for text in texts:
        spark.sparkContext.setJobDescription(name)
        spark.sql(text).collect()
        time.sleep(1 if name == "report" else 0)
    spark.stop()
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], dict[str, Any]]:
    """Application and table -> its finding about statistics."""
    home = tmp_path_factory.mktemp("statistics")
    (home / "logs").mkdir()
    variables = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    command = [sys.executable, "-c", SCRIPT, str(home)]
    done = subprocess.run(command, capture_output=True, text=True, env=variables, timeout=1500)
    assert done.returncode == 0, done.stdout + done.stderr
    findings = [
        (query.description, finding.to_dict())
        for log in (home / "logs").iterdir()
        for query in pyjoinopt.advise(log).queries
        for finding in query.findings
        if finding.kind == "missing statistics"
    ]
    return {(description, finding["where"]): finding for description, finding in findings}


def test_files_of_text_and_a_side_that_was_broadcast_late(found: dict[tuple[str, str], dict[str, Any]]) -> None:
    assert {table for application, table in found if application == "plain"} == {"facts", "lines"}
    facts, lines = found["plain", "facts"], found["plain", "lines"]
    assert facts["rests_on"] == "format" and facts["rows"] == 200_000
    assert lines["rests_on"] == "late broadcast, format" and "more than 1.05 MB" in lines["text"]


@pytest.mark.parametrize("application", ["costs", "costs and cbo"])
def test_costs_in_the_text_of_the_plan(found: dict[tuple[str, str], dict[str, Any]], application: str) -> None:
    with_cbo = application == "costs and cbo"
    tables = {table for name, table in found if name == application}
    assert tables == ({"plain", "facts"} if with_cbo else {"plain", "facts", "analysed"})
    plain = found[application, "plain"]
    assert (plain["rests_on"], plain["rows"]) == ("costs", 120_000) and plain["estimated_bytes"] > 0
    assert "ANALYZE TABLE default.plain" in plain["text"] and ("cbo" in plain["text"]) is not with_cbo
    assert plain["certainty"] == (1.0 if with_cbo else 0.5)


def test_reports_of_pyjoinopt(found: dict[tuple[str, str], dict[str, Any]]) -> None:
    lines = found["report", "lines"]
    assert "report" in lines["rests_on"].split(", ") and 'source "size' in lines["text"]
    assert lines["estimated_rows"] >= 100_000 and lines["rows"] == 9
