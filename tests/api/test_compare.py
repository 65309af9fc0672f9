"""`pyjoinopt.compare`: alternating timed runs, and a real comparison of the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pyjoinopt
from pyjoinopt.api.compare import Comparison
from tests.support import tpc

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.ci
def test_a_query_is_run_both_ways(tpch: SparkSession) -> None:
    df = tpch.sql(tpc.spark_queries("tpch")[5])
    found = pyjoinopt.compare(df, repeat=2, progress=True)
    assert len(found.before) == len(found.after) == 2 and min(*found.before, *found.after) > 0
    assert found.rows == df.count() and found.same is True
    assert "5 rows, the same rows" in str(found) and found.spread[0] <= found.speed_up <= found.spread[1]


def test_large_results_are_counted_only(tpch: SparkSession) -> None:
    found = pyjoinopt.compare(tpch.table("nation"), repeat=1, check_rows=10)
    assert found.rows == 25 and found.same is None
    assert "nothing was changed" in found.to_text() and "were not compared" in found.to_text()


def test_columns_of_the_same_name(tpch: SparkSession) -> None:
    df = tpch.sql("SELECT n_nationkey, n_nationkey, n_name n_nationkey FROM nation")
    df.collect()  # it is planned already
    assert pyjoinopt.compare(df, repeat=1).same is True


def test_other_rows_are_reported() -> None:
    assert "OTHER ROWS" in Comparison(pyjoinopt.JoinReport(), (1.0,), (1.0,), 3, False).to_text()


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ((2.0, 3.0), (1.0, 1.5), "faster in every"),
        ((1.0, 1.5), (2.0, 3.0), "slower in every"),
        ((1.0, 2.0), (1.5,), "within the noise"),
    ],
)
def test_the_verdict_is_as_strong_as_the_spread_allows(
    before: tuple[float, ...], after: tuple[float, ...], said: str
) -> None:
    assert said in Comparison(pyjoinopt.JoinReport(changed=True), before, after, 3, True).to_text()


def test_arguments(tpch: SparkSession) -> None:
    df = tpch.table("nation")
    with pytest.raises(ValueError, match="repeat is 0, but must be at least 1"):
        pyjoinopt.compare(df, repeat=0)
    with pytest.raises(TypeError, match="check_rows is 'many'"):
        pyjoinopt.compare(df, check_rows="many")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="unknown option 'strategi'"):
        pyjoinopt.compare(df, strategi="auto")
