"""The source `pyjoinopt` of Spark's metrics: what became of each plan, and the workers."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pyjoinopt
from tests.sessions import doors
from tests.sessions.conftest import BAD_ORDER, TABLES, rows
from tests.sessions.fakes import fake, give

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = BAD_ORDER.format(hint="")
TWO = "SELECT count(*) FROM fact LEFT JOIN mid ON fact_f = mid_k"


def counted(session: SparkSession) -> Counter[str]:
    """The counters of the driver."""
    loader = session._jvm.java.lang.Thread.currentThread().getContextClassLoader()
    metrics = loader.loadClass("org.apache.spark.sql.pyjoinopt.PlanMetrics$").getField("MODULE$").get(None)
    counters = metrics.metricRegistry().getCounters()
    return Counter({str(name): int(counters[name].getCount()) for name in counters})


@pytest.fixture
def change(session: SparkSession) -> Callable[[str], dict[str, int]]:
    """Run a query: the counters that have changed."""
    rows(session.sql(TWO))  # there is a source

    def run(text: str) -> dict[str, int]:
        before = counted(session)
        rows(session.sql(text))
        after = counted(session)
        return {name: after[name] - before[name] for name in after if after[name] != before[name]}

    return run


def test_each_plan_is_counted_once_by_its_outcome(
    session: SparkSession, change: Callable[[str], dict[str, int]]
) -> None:
    assert change(SQL) == {"plans.seen": 1, "plans.changed": 1}
    assert change(TWO) == {"plans.seen": 1, "plans.unchanged": 1}
    assert change("SELECT 1") == {}
    session.conf.set("spark.pyjoinopt.mode", "report")
    assert change(SQL) == {"plans.seen": 1, "plans.unchanged": 1}
    session.conf.set("spark.pyjoinopt.mode", "on")
    session.conf.set("spark.pyjoinopt.canary", "0")
    assert change(SQL) == {"plans.seen": 1, "plans.leftOut": 1}
    session.conf.set("spark.pyjoinopt.mode", "wrong")
    assert change(SQL) == {"plans.seen": 1, "plans.failed": 1}
    session.conf.set("spark.pyjoinopt.timeout", "soon")
    assert change(SQL) == {"plans.seen": 1, "plans.failed": 1}
    session.conf.set("spark.pyjoinopt.mode", "off")
    assert change(SQL) == {}


def test_workers_that_fail_or_are_late(
    session: SparkSession, change: Callable[[str], dict[str, int]], tmp_path: Path
) -> None:
    give(session, python=fake(tmp_path, "print('this is no frame at all')"))
    found = change(SQL)
    assert found.pop("workers.failed") >= 1
    assert found in ({"plans.seen": 1, "plans.failed": 1}, {"plans.seen": 1, "plans.timedOut": 1})
    give(session, python=fake(tmp_path, "import time; time.sleep(60)"))
    session.conf.set("spark.pyjoinopt.timeout", "1s")
    assert change(SQL) == {"plans.seen": 1, "plans.timedOut": 1}


def test_a_revoked_plan_is_counted(
    new_session: Callable[[], SparkSession], session: SparkSession, tmp_path: Path
) -> None:
    from tests.sessions.test_guard import pretend, run

    path = tmp_path / "store.sqlite"
    made = new_session()
    pyjoinopt.enable(made, feedback=True, store=str(path))
    made.conf.set("spark.pyjoinopt.timeout", "60s")
    made.conf.set("spark.pyjoinopt.test.store", str(path))
    made.conf.set("spark.pyjoinopt.strategy", "none")
    run(made, SQL, 2)
    made.conf.set("spark.pyjoinopt.strategy", "auto")
    run(made, SQL, 2)
    pretend(path, {True: 3.0, False: 1.0})
    before = counted(made)
    rows(made.sql(SQL))
    after = counted(made)
    assert after["plans.revoked"] == before["plans.revoked"] + 1
    assert after["plans.changed"] == before["plans.changed"]


@pytest.mark.ci
def test_prometheus_and_jmx_have_them(session: SparkSession, tmp_path: Path) -> None:
    """In a driver with the sinks that Spark's documentation describes."""
    for name, _, _ in TABLES:
        session.table(name).write.parquet(str(tmp_path / name))
    port = doors.free_port()
    program = tmp_path / "program.py"
    program.write_text(f"""
import json, urllib.request
from pyspark.sql import SparkSession
import pyjoinopt
builder = (SparkSession.builder.config("spark.ui.enabled", "true").config("spark.ui.port", "{port}")
    .config("spark.metrics.conf.*.sink.jmx.class", "org.apache.spark.metrics.sink.JmxSink")
    .config("spark.metrics.conf.*.sink.prometheusServlet.class", "org.apache.spark.metrics.sink.PrometheusServlet")
    .config("spark.metrics.conf.*.sink.prometheusServlet.path", "/metrics/prometheus")
    .config("spark.metrics.namespace", "shop"))
spark = pyjoinopt.configure(builder).getOrCreate()
for name in {[name for name, _, _ in TABLES]!r}:
    spark.read.parquet(f"{tmp_path}/{{name}}").createOrReplaceTempView(name)
spark.sql('''{SQL}''').collect()
text = urllib.request.urlopen("http://127.0.0.1:{port}/metrics/prometheus").read().decode()
jvm, gateway = spark._jvm, spark.sparkContext._gateway
management, lang = jvm.javax.management, jvm.java.lang
types, values = gateway.new_array(lang.Class, 2), gateway.new_array(lang.Object, 2)
types[0], types[1] = (lang.Class.forName("javax.management." + name) for name in ("ObjectName", "QueryExp"))
values[0] = management.ObjectName("metrics:*")
query = lang.Class.forName("javax.management.MBeanServer").getMethod("queryNames", types)
found = query.invoke(lang.management.ManagementFactory.getPlatformMBeanServer(), values)
names = [name for name in str(found.toString()).split(", ") if "pyjoinopt" in name]
print(json.dumps([text, names]))
spark.stop()
""")
    printed = doors.run([sys.executable, str(program)], tmp_path)
    text, names = json.loads(printed.splitlines()[-1])
    lines = re.findall(r"^metrics_shop_driver_pyjoinopt_(\w+)\{.*\} (\S+)$", text, re.M)
    values = {name: float(value) for name, value in lines}
    assert values["plans_seen_Count"] == values["plans_changed_Count"] == 1
    assert values["workers_started_Count"] >= 1 and values["workers_running_Value"] >= 1
    assert values["planning_milliseconds_Count"] == 1 and values["planning_milliseconds_Max"] > 0
    assert any("pyjoinopt.plans.changed" in name for name in names), names
