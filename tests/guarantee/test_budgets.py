"""Search budgets of a call: pairs of sub-plans, and seconds. The rows are the same with every budget."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from pyjoinopt.report.model import GroupReport
from tests.sessions.conftest import rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def clique(spark: SparkSession, relations: int) -> DataFrame:
    """This many tables, with an equality on separate columns between every pair."""
    columns = [[f"id % {2 + (i * j) % 3} AS c{i}_{j}" for j in range(relations) if j != i] for i in range(relations)]
    made = [spark.range(3 + 7 * i % 11).selectExpr(*own) for i, own in enumerate(columns)]
    df = made[0]
    for i in range(1, relations):
        condition = df[f"c0_{i}"] == made[i][f"c{i}_0"]
        for j in range(1, i):
            condition &= df[f"c{j}_{i}"] == made[i][f"c{i}_{j}"]
        df = df.join(made[i], condition)
    return df


def chain(spark: SparkSession, relations: int) -> DataFrame:
    df = spark.range(10).toDF("k0")
    for i in range(1, relations):
        other = spark.range(10 + i % 5).selectExpr(f"id AS j{i}", f"(id * 7 + {i}) % 11 AS k{i}")
        df = df.join(other, df[f"k{i - 1}"] == other[f"j{i}"])
    return df


def group_of(df: DataFrame, **options: object) -> GroupReport:
    (group,) = df.optimize_joins(strict=True, store="off", **options)._pyjoinopt_report.groups
    return group


def test_the_budget_of_pairs_decides_how_a_group_is_searched(spark: SparkSession) -> None:
    df = chain(spark, 14)
    pairs = (14**3 - 14) // 6
    full = group_of(df)
    assert (full.strategy, full.pairs) == ("exact", pairs)
    assert group_of(df, pair_budget=pairs).strategy == "exact"
    less = group_of(df, pair_budget=pairs - 1)
    assert less.strategy == "linearized" and less.cost_after >= full.cost_after * (1 - 1e-9)
    assert rows(df.optimize_joins(pair_budget=1, strict=True)) == rows(df)


def test_the_time_of_a_search_is_kept(spark: SparkSession) -> None:
    """A clique of eighteen has 190 million pairs, which would take minutes."""
    df = clique(spark, 18)
    started = time.monotonic()
    group = group_of(df, pair_budget=1_000_000_000, search_seconds=1)
    assert time.monotonic() - started < 20
    assert group.strategy == "greedy" and 0.9 < group.seconds < 8
    assert group.cost_after <= group.cost_before * (1 + 1e-9)


@pytest.mark.parametrize("options", [{"pair_budget": 0}, {"search_seconds": 0}])
def test_nothing_to_spend_is_refused(spark: SparkSession, options: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        chain(spark, 3).optimize_joins(**options)
