"""Runs a query in a session that optimises every query, and returns the optimizer's report."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pyjoinopt
from pyjoinopt.bridge import extension
from pyjoinopt.report.join_report import JoinReport
from tests.support.oracle_bridge import oracle_of
from tests.support.querytree import Query
from tests.support.render_dataframe import run_pyspark, to_pyspark
from tests.support.render_sql import to_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Options = dict[str, Any]


def frame(spark: SparkSession, query: Query, form: str) -> DataFrame:
    """The query in Spark, as SQL or as DataFrame code."""
    return spark.sql(to_sql(query)) if form == "sql" else run_pyspark(spark, to_pyspark(query))


def enabled_session(spark: SparkSession) -> SparkSession:
    """The session, with every query optimised from now on, without a deadline, since the machine may be busy."""
    pyjoinopt.enable(spark)
    spark.conf.set("spark.pyjoinopt.timeout", "60s")
    return spark


def through_extension(
    enabled: SparkSession, plain: DataFrame, query: Query, form: str, options: Options
) -> tuple[list[Any], Counter[str]]:
    """The rows of the query, and the optimizer's report.

    Raises:
        AssertionError: the schema is not that of the plain frame.
        RuntimeError: the optimizer failed and left the query as written.
    """
    cost = options.get("cost", "spark")  # a session's cost model has a name; a model of one's own is a call's
    enabled.conf.set("spark.pyjoinopt.cost", cost if isinstance(cost, str) else "c_out")
    enabled.conf.set("spark.pyjoinopt.strategy", options.get("strategy", "auto"))
    jvm = oracle_of(enabled)
    before = jvm.lastReport(enabled._jsparkSession)
    df = frame(enabled, query, form)
    assert df.schema == plain.schema, "schema differs"
    rows = df.collect()
    if jvm.lastReport(enabled._jsparkSession) == before:
        return rows, Counter()
    reports = [JoinReport.from_dict(reported) for reported in extension.reports(enabled, before)]
    if failed := [report.error for report in reports if report.error]:
        raise RuntimeError(f"the optimizer failed: {failed[-1]}")
    return rows, Counter(extension_changed=any(group.changed for group in reports[-1].groups))
