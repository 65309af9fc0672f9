"""The event log has the report of each plan, beside the SQL execution that it was made for."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.sessions import doors
from tests.sessions.conftest import BAD_ORDER, BETTER, TABLES
from tests.support import history_logs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = BAD_ORDER.format(hint="")
EVENT = "org.apache.spark.sql.pyjoinopt.JoinOrdersPlanned"
START = "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart"


@pytest.mark.ci
def test_reports_are_events_of_their_executions(session: SparkSession, tmp_path: Path) -> None:
    for name, _, _ in TABLES:
        session.table(name).write.parquet(str(tmp_path / name))
    log = tmp_path / "events"
    log.mkdir()
    program = tmp_path / "program.py"
    program.write_text(f"""
import time
from pyspark.sql import SparkSession
import pyjoinopt
builder = (SparkSession.builder.config("spark.eventLog.enabled", "true").config("spark.eventLog.dir", "{log}")
    .config("spark.eventLog.compress", "false").config("spark.eventLog.rolling.enabled", "false"))
spark = pyjoinopt.configure(builder).getOrCreate()
for name in {[name for name, _, _ in TABLES]!r}:
    spark.read.parquet(f"{tmp_path}/{{name}}").createOrReplaceTempView(name)
spark.sql('''{SQL}''').collect()
spark.sql('''{SQL.replace("dim_v = 1", "dim_v = 2")}''').explain()
spark.sql("SELECT count(*) FROM fact").collect()
time.sleep(2)
spark.stop()
""")
    doors.run([sys.executable, str(program)], tmp_path)
    (file,) = log.iterdir()
    events = [json.loads(line) for line in file.read_text().splitlines()]
    planned = [event for event in events if event["Event"] == EVENT]
    assert len(planned) == 2
    reports = [json.loads(event["report"]) for event in planned]
    assert [report["changed"] for report in reports] == [True, True]
    assert reports[0]["groups"][0]["order_after"] == BETTER
    started = {event["executionId"]: event["description"] for event in events if event["Event"] == START}
    assert planned[0]["executionId"] in started and planned[1]["executionId"] == -1
    assert planned[0]["time"] <= planned[1]["time"]
    assert [event["query"] for event in planned] == [1, 2] and all(event["pictures"] for event in planned)
    steps = [event for event in events if event["Event"] == history_logs.PLANNING]
    assert [(event["query"], event["outcome"]) for event in steps] == [
        (1, ""), (1, "changed"), (2, ""), (2, "changed"),
    ]  # fmt: skip
    (executed,) = [event for event in events if event["Event"] == history_logs.EXECUTED]
    assert (executed["query"], executed["executionId"]) == (1, planned[0]["executionId"])
    assert [join["relations"] for join in json.loads(executed["joins"])] == [["mid", "dim"], ["fact", "mid", "dim"]]
