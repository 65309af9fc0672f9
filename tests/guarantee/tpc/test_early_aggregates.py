"""TPC queries in which every aggregate that may be computed early is, whatever it costs: same rows, same schema.

At the scale of the tests none of them pays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pyjoinopt.optimizer.eager_aggregation import eager_aggregation
from tests.guarantee.tpc.check import queries
from tests.support.prefilters import checked

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES = {benchmark: dict(queries(benchmark)) for benchmark in ("tpcds", "tpch")}
#: Queries with early aggregates.
EARLY = {
    "tpcds": [
        1, 3, 4, 5, 6, 8, 10, 11, 12, 14, 15, 19, 20, 21, 23, 24, 25, 30, 31, 32, 33, 34, 36, 42, 43, 45, 46, 47, 51,
        52, 53, 54, 55, 56, 57, 58, 60, 61, 63, 64, 66, 68, 69, 70, 71, 73, 74, 77, 79, 81, 88, 89, 90, 91, 92, 96, 98,
    ],
    "tpch": [2, 3, 5, 7, 10, 11, 12, 17, 18],
}  # fmt: skip
#: Where a window takes the place of an aggregate, there is none that may be early. Nor is there where two aggregates
#: are computed together, for the FILTER of one reads a column of the relation that only this one joins.
OPTIONS = {"store": "off", "rewrites_without": "aggregate_to_window,fuse_joined_aggregates"}
#: The default run has those that pay at a larger scale.
PAYING = (("tpcds", 11), ("tpcds", 74))


@pytest.fixture(autouse=True)
def whatever_it_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eager_aggregation, "_MARGIN", 0.0)


def numbers(benchmark: str) -> list[object]:
    return [
        pytest.param(number, marks=() if (benchmark, number) in PAYING else pytest.mark.ci)
        for number in EARLY[benchmark]
    ]


@pytest.mark.parametrize("number", numbers("tpcds"))
def test_tpcds(number: int, tpcds: SparkSession) -> None:
    assert checked(tpcds.sql(QUERIES["tpcds"][number]), **OPTIONS).eager_aggregations


@pytest.mark.parametrize("number", numbers("tpch"))
def test_tpch(number: int, tpch: SparkSession) -> None:
    assert checked(tpch.sql(QUERIES["tpch"][number]), **OPTIONS).eager_aggregations
