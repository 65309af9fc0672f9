"""All 99 queries of TPC-DS over generated data: same rows, same schema, and the known number of reordered groups.

The default run optimises each of them and runs every eighth, CI every fourth; the slow tests run the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.guarantee.tpc.check import RECORDING, check_plan, check_query, expected, queries, totals

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES = dict(queries("tpcds"))
RUN = [number for number in QUERIES if number % 8 == 0]
RUN_TOO = [
    pytest.param(number, marks=pytest.mark.slow if number % 4 else pytest.mark.ci)
    for number in QUERIES
    if number not in RUN
]


@pytest.mark.parametrize("number", RUN + RUN_TOO)
def test_query(number: int, tpcds: SparkSession) -> None:
    check_query(tpcds, "tpcds", number, QUERIES[number])


@pytest.mark.parametrize("number", sorted(QUERIES.keys() - RUN))
def test_plan(number: int, tpcds: SparkSession) -> None:
    check_plan(tpcds.sql(QUERIES[number]), "tpcds", number)


@pytest.mark.skipif(RECORDING, reason="the table is being written")
def test_doing_nothing_would_fail() -> None:
    assert len(QUERIES) == len(expected("tpcds")) == 99
    floor = {"groups": 150, "changed": 90, "outer_joins_eliminated": 4}
    assert all(totals("tpcds")[name] >= least for name, least in floor.items())
