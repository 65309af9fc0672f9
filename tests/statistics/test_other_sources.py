"""Statistics that DSv2 sources report, with stand-ins for sources outside Spark's jars; Delta: `test_delta_log`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import pyjoinopt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow  # the stand-ins are compiled first


def test_what_a_source_reports(spark: SparkSession, stand_ins: Any) -> None:
    df = spark.read.format("org.apache.spark.sql.delta.standin.Reporting").load()
    (row,) = pyjoinopt.statistics.show(df, store="off").to_dict("records")
    assert (row["rows"], row["source"], row["distinct"], row["keys"]) == (1000, "reported", {"id": 70}, [("name",)])
