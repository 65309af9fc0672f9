"""The runs of TPC queries: shared state, and the evaluation of their times."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks import tpc as benchmark
from benchmarks.generated_code import GeneratedCode
from benchmarks.tpc_runs import OURS, PLAIN, check, geo_mean, spread
from tests.support import tpc

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.ci
def test_generated_code_is_compiled_anew_once_it_is_forgotten(spark: SparkSession) -> None:
    tpc.register(spark, "tpch")
    code, text = GeneratedCode(spark), tpc.spark_queries("tpch")[5]
    compiled = spark._jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME()

    def compiles() -> int:
        before = compiled.getCount()
        spark.sql(text).collect()
        return compiled.getCount() - before

    code.forget()
    assert len(code) == 0
    first = compiles()
    assert first > 5 and len(code) > 5
    assert compiles() == 0  # what a variant with the same plan would have found
    code.forget()
    assert compiles() == first


def test_ratios_are_of_the_best_runs() -> None:
    found = {"tpch 1": {PLAIN: [(4.0, 8.0), (2.0, 9.0)], OURS: [(1.0, 9.0), (3.0, 4.0)]}}
    assert benchmark._ratios(found, OURS, 0) == {"tpch 1": 0.5}  # by the clock
    assert benchmark._ratios(found, OURS, 1) == {"tpch 1": 0.5}  # by the processors
    assert spread(found["tpch 1"][PLAIN], 0) == 2.0
    assert geo_mean([0.5, 2.0]) == pytest.approx(1.0)


def test_other_rows_end_the_benchmark() -> None:
    check("tpch 1", OURS, [(1, 0.1 + 0.2)], [(1, 0.3)])
    with pytest.raises(SystemExit, match="tpch 1: pyjoinopt gives other rows"):
        check("tpch 1", OURS, [(1,)], [(2,)])
