"""Variants of Spark in processes of their own, and what is made of their times."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from benchmarks import tpc as benchmark
from benchmarks.tpc_runs import OURS, PLAIN, Circumstances, Variant, check, geo_mean, spread
from demo.measure import equal_rows
from tests.support import tpc

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENDLESS = "SELECT count(DISTINCT id % 7) FROM range(1000000000000)"


@pytest.mark.slow
def test_a_variant_answers_with_rows_seconds_and_its_plan(spark: SparkSession) -> None:
    text = tpc.spark_queries("tpch")[5]
    tpc.register(spark, "tpch")
    expected = [tuple(row) for row in spark.sql(text).collect()]
    with closing(Variant(OURS, Circumstances("tpch", tpc.SCALE, 4, "1g", None))) as ours:
        (passed, spent), rows, plan = ours(text)
        assert equal_rows(expected, rows, tolerance=1e-6) and len(expected) > 0
        assert passed > 0 and spent > 0
        assert max(map(len, plan)) == 6  # all six relations are joined
        assert ours(text).plan == ours(text).plan  # the first one may not have had all samples in time


@pytest.mark.slow
def test_what_takes_too_long_is_cancelled_and_what_fails_says_so_here() -> None:
    with closing(Variant(PLAIN, Circumstances("tpch", tpc.SCALE, 4, "1g", 5.0))) as plain:
        (passed, _), rows, plan = plain(ENDLESS)
        assert rows is None and 5.0 <= passed < 60.0 and not plan
        with pytest.raises(RuntimeError, match=r"(?s)as it comes: .*TABLE_OR_VIEW_NOT_FOUND.*nowhere"):
            plain("SELECT * FROM nowhere")
        with pytest.raises(RuntimeError, match="the process of 'as it comes' has ended"):
            plain("SELECT 1")


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
