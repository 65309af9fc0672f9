"""Shadow mode (`mode = report`) over all of TPC: no plan is changed, and the reports have the orders of mode `on`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

import pyjoinopt
from tests.support import tpc

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Whole filters in the text of a plan: where it is cut depends on the numbers of columns.
SETTINGS = {"spark.sql.maxMetadataStringLength": "100000", "spark.pyjoinopt.timeout": "60s"}
#: How many queries have a join group that would get another order, at the least.
REORDERED = {"tpch": 7, "tpcds": 45}


def plan_of(session: SparkSession, text: str) -> str:
    """The plan that would run, with columns and operators numbered as they come."""
    numbers: dict[str, str] = {}
    plan = session.sql(text)._jdf.queryExecution().executedPlan().toString()
    return re.sub(r"#\d+|plan_id=\d+", lambda found: numbers.setdefault(found[0], f"#{len(numbers)}"), plan)


@pytest.mark.ci
@pytest.mark.parametrize("benchmark", sorted(REORDERED))
def test_no_plan_is_changed(new_session: Callable[[], SparkSession], session: SparkSession, benchmark: str) -> None:
    shadow = new_session()
    tpc.register(shadow, benchmark)
    pyjoinopt.enable(shadow, mode="report")
    for key, value in SETTINGS.items():
        shadow.conf.set(key, value)
    reordered = 0
    for number, text in tpc.spark_queries(benchmark).items():
        shadow.conf.set("spark.pyjoinopt.enabled", "false")
        written = plan_of(shadow, text)
        shadow.conf.set("spark.pyjoinopt.enabled", "true")
        before = max((report.number for report in numbered(shadow)), default=0)
        assert plan_of(shadow, text) == written, f"query {number}"
        reports = [report for report in numbered(shadow) if report.number > before]
        assert not any(report.changed for report in reports), f"query {number}"
        reordered += any(report.order_before != report.order_after for report in reports)
    assert reordered >= REORDERED[benchmark]


def numbered(session: SparkSession) -> list:  # type: ignore[type-arg]
    return session.sql("SELECT number, changed, order_before, order_after FROM joinopt_report()").collect()
