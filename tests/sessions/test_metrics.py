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
from pyjoinopt.report.reason_keys import KEYS
from tests.sessions import doors
from tests.sessions.conftest import BAD_ORDER, TABLES, logged, rows
from tests.sessions.fakes import GREETS, fake, give

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
    assert change(SQL) == {"plans.seen": 1, "plans.leftOut": 1, "refusals.canary": 1}
    session.conf.set("spark.pyjoinopt.mode", "wrong")
    assert change(SQL) == {"plans.seen": 1, "plans.failed": 1}
    session.conf.set("spark.pyjoinopt.timeout", "soon")
    assert change(SQL) == {"plans.seen": 1, "plans.failed": 1}
    session.conf.set("spark.pyjoinopt.mode", "off")
    assert change(SQL) == {}


def test_a_plan_is_counted_once_for_each_reason_of_its_refusals(
    session: SparkSession, change: Callable[[str], dict[str, int]]
) -> None:
    broadcast = BAD_ORDER.format(hint="/*+ BROADCAST(mid) */")
    assert change(broadcast) == {"plans.seen": 1, "plans.unchanged": 1, "refusals.joinHint": 1}
    both = f"SELECT * FROM ({broadcast}) one JOIN ({broadcast}) two ON one.fact_k = two.fact_k"
    assert change(both)["refusals.joinHint"] == 1, "once a plan"
    assert change(SQL) == {"plans.seen": 1, "plans.changed": 1}


def test_a_reason_without_a_counter_is_counted_as_other(
    session: SparkSession, change: Callable[[str], dict[str, int]], tmp_path: Path
) -> None:
    answer = {"edits": None, "summary": "", "problem": None, "outcome": "unchanged"}
    answer["refusals"] = ["bad luck", "canary", "new", 7]
    program = f"{GREETS}write({{'id': request['id'], 'answer': {answer!r}}})\ntime.sleep(60)"
    give(session, python=fake(tmp_path, program))
    found = change(SQL)
    assert found.pop("workers.started") == 1
    assert found == {"plans.seen": 1, "plans.unchanged": 1, "refusals.canary": 1, "refusals.other": 1}


def test_the_counters_of_reasons_are_their_keys(session: SparkSession) -> None:
    found = {name.removeprefix("refusals.") for name in counted(session) if name.startswith("refusals.")}
    assert found == set(KEYS)


def test_each_query_has_one_line_with_its_figures(session: SparkSession) -> None:
    keys = ("outcome", "plans", "milliseconds", "cost_before", "cost_after", "refusals")
    pattern = "|".join(("%p", *(f"%X{{pyjoinopt_{key}}}" for key in keys), "%X{execution_id}", "%m%n"))
    mdc = session._jvm.org.slf4j.MDC
    broadcast = BAD_ORDER.format(hint="/*+ BROADCAST(mid) */")
    with logged(session, pattern) as lines:

        def line(text: str) -> list[str]:
            """The figures of a query by their order above, then the number of its execution and the message."""
            lines()
            rows(session.sql(text))
            (found,) = (line for line in lines() if line.startswith("INFO|"))
            return found.split("|")[1:]

        outcome, plans, milliseconds, before, after, refusals, number, message = line(SQL)
        assert (outcome, plans, refusals) == ("changed", "1", "") and number.isdigit()
        assert float(before) > float(after) > 0
        assert message.startswith(f"Joins reordered in {milliseconds} ms (changed; cost {before} to {after}): ")
        outcome, plans, milliseconds, *_, refusals, _, message = line(broadcast)
        assert (outcome, plans, refusals) == ("unchanged", "1", "joinHint")
        assert message == f"Joins kept as written in {milliseconds} ms (unchanged; refusals joinHint)"
        outcome, plans, *_ = line(
            f"SELECT note_k FROM note WHERE note_k < (SELECT max(mid_v) FROM ({SQL})) "
            f"AND note_v < (SELECT max(mid_v) FROM ({broadcast}))"
        )
        assert int(plans) >= 2 and set(outcome.split(",")) == {"changed", "unchanged"}
        mdc.put("pyjoinopt_plans", "mine")
        assert line(SQL)[1] == "1"
        assert mdc.get("pyjoinopt_plans") == "mine" and mdc.get("pyjoinopt_outcome") is None
        mdc.remove("pyjoinopt_plans")
        session.conf.set("spark.pyjoinopt.canary", "0")
        found = line(SQL)
        assert (found[0], found[5]) == ("leftOut", "canary")
        session.conf.set("spark.pyjoinopt.timeout", "soon")
        assert line(SQL)[0] == "failed"
        session.conf.set("spark.pyjoinopt.mode", "off")
        rows(session.sql(SQL))
        assert not lines()


@pytest.mark.ci
@pytest.mark.skipif(not doors.has_jar("log4j-layout-template-json-*.jar"), reason="this Spark has no structured log")
def test_the_structured_log_and_the_size_of_the_store(session: SparkSession, tmp_path: Path) -> None:
    """In a driver whose log is JSON."""
    for name, _, _ in TABLES:
        session.table(name).write.parquet(str(tmp_path / name))
    store = tmp_path / "store.sqlite"
    program = tmp_path / "program.py"
    program.write_text(f"""
import json, os
from pyspark.sql import SparkSession
import pyjoinopt
builder = SparkSession.builder.config("spark.pyjoinopt.store", {str(store)!r})
spark = pyjoinopt.configure(builder).getOrCreate()
loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()
metrics = loader.loadClass("org.apache.spark.sql.pyjoinopt.PlanMetrics$").getField("MODULE$").get(None)
size = lambda: metrics.metricRegistry().getGauges()["store.bytes"].getValue()
none = size()
for name in {[name for name, _, _ in TABLES]!r}:
    spark.read.parquet(f"{tmp_path}/{{name}}").createOrReplaceTempView(name)
spark.sql('''{SQL}''').collect()
spark.sql("SELECT * FROM joinopt_report()").collect()  # the worker has done all that it does for the query
files = [name for name in ({str(store)!r}, {f"{store}-wal"!r}) if os.path.exists(name)]
some = size(), sum(map(os.path.getsize, files))
for name in files:
    os.rename(name, name + ".moved")
print(json.dumps([none, some, size()]))
spark.stop()
""")
    submit = f'"{doors.HOME}/bin/spark-submit" --conf spark.log.structuredLogging.enabled=true'
    command = f'{submit} "{program}" 2> "{tmp_path}/errors"'
    none, (size, expected), moved = json.loads(doors.run(["sh", "-c", command], tmp_path).splitlines()[-1])
    assert (none, size, moved) == (0, expected, 0) and size > 0
    (line,) = (line for line in (tmp_path / "errors").read_text().splitlines() if "Joins reordered in" in line)
    event = json.loads(line)
    context = event["context"]
    assert event["level"] == "INFO"
    assert context["pyjoinopt_outcome"] == "changed" and context["pyjoinopt_refusals"] == ""
    assert float(context["pyjoinopt_cost_before"]) > float(context["pyjoinopt_cost_after"])
    assert int(context["pyjoinopt_milliseconds"]) > 0 and context["execution_id"].isdigit()


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
