"""All 99 queries of TPC-DS over real generated data: same rows, same schema, joins really looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.tpc.check import RECORDING, check_query, expected, queries, totals

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES = queries("tpcds")


@pytest.mark.parametrize(("number", "text"), QUERIES, ids=[f"q{number:02}" for number, _ in QUERIES])
def test_query(number: int, text: str, tpcds: SparkSession) -> None:
    check_query(tpcds, "tpcds", number, text)


@pytest.mark.skipif(RECORDING, reason="the table is being written")
def test_doing_nothing_would_fail() -> None:
    assert len(QUERIES) == len(expected("tpcds")) == 99
    floor = {"groups": 150, "changed": 85, "outer_joins_eliminated": 4}
    assert all(totals("tpcds")[name] >= least for name, least in floor.items())
