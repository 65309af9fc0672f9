"""Sources that are not among Spark's jars, by stand-ins: what a DSv2 source reports. See `test_delta_log` for Delta."""

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
