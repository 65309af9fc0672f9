"""In a session, a misspelled setting causes one warning, and every report has a reason."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.sessions import doors
from tests.sessions.conftest import BAD_ORDER, planned

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = BAD_ORDER.format(hint="")
#: Plans that go to the worker and stay as they are, and a part of the reason.
UNCHANGED = {
    "SELECT a.id, b.id AS c FROM range(90) a LEFT JOIN range(30) b ON a.id = b.id": "it joins two relations",
    "SELECT count(*) FROM (SELECT a.id FROM range(90) a JOIN range(30) b ON a.id = b.id LIMIT 9) x"
    " JOIN range(9) c ON x.id = c.id": "Limit",
    "SELECT /*+ OPTIMIZE_JOINS */ a.id FROM range(90) a FULL JOIN range(30) b ON a.id = b.id": "it joins two",
}  # fmt: skip


def test_a_misspelled_setting_of_a_session(session: SparkSession, warnings: Callable[[], list[str]]) -> None:
    session.conf.set("spark.pyjoinopt.searchSecnds", "5")
    warnings()
    for _ in range(2):
        session.sql(SQL).collect()
    (warned,) = [line for line in warnings() if "searchSecnds" in line]
    assert "has no effect; did you mean spark.pyjoinopt.searchSeconds?" in warned and "Settings are" in warned


def test_a_misspelled_setting_of_the_application(spark: SparkSession, warnings: Callable[[], list[str]]) -> None:
    """It may be one without which no worker starts, so it is looked for when the extension is loaded; see below."""
    jvm = spark._jvm
    assert jvm is not None
    conf = spark.sparkContext._jsc.sc().conf()
    conf.set("spark.pyjoinopt.pyhton", "/usr/bin/python3")
    try:
        for _ in range(2):
            jvm.org.apache.spark.sql.pyjoinopt.UnknownKeys.ofApplication()
        (warned,) = [line for line in warnings() if "pyhton" in line]
        assert "did you mean spark.pyjoinopt.python?" in warned
    finally:
        conf.remove("spark.pyjoinopt.pyhton")


@pytest.mark.jvm
@pytest.mark.slow
def test_a_misspelled_setting_where_no_query_is_planned(tmp_path: Path) -> None:
    command = ["spark-sql", *doors.extended(), "--conf", "spark.pyjoinopt.pyhton=/usr/bin/python3", "-e", "SELECT 1"]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env=doors.environment(tmp_path), timeout=300
    )
    assert done.returncode == 0, done.stderr[-6000:]
    (warned,) = [line for line in done.stderr.splitlines() if "pyhton" in line and "unknown" in line]
    assert "did you mean spark.pyjoinopt.python?" in warned


@pytest.mark.parametrize("text", UNCHANGED)
def test_a_plan_that_stays_has_a_reason(session: SparkSession, text: str) -> None:
    _, reports = planned(session, session.sql(text).collect)
    assert reports and not any(report.changed for report in reports)
    for report in reports:
        assert UNCHANGED[text] in "; ".join(refusal.reason for refusal in report.refusals), report.to_text()
    notes = session.sql("SELECT notes FROM joinopt_report() ORDER BY number DESC LIMIT 1").first()
    assert notes is not None and UNCHANGED[text] in notes[0]
