"""All 22 queries of TPC-H over generated data: same rows, same schema, and the known number of reordered groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pyjoinopt
from tests.guarantee.tpc.check import RECORDING, check_query, expected, queries, totals

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES = queries("tpch")


@pytest.mark.parametrize(("number", "text"), QUERIES, ids=[f"q{number:02}" for number, _ in QUERIES])
def test_query(number: int, text: str, tpch: SparkSession) -> None:
    check_query(tpch, "tpch", number, text)


def test_what_an_or_implies_for_both_nations_is_known(tpch: SparkSession) -> None:
    """Query 7: (FRANCE and GERMANY) or (GERMANY and FRANCE); Spark filters both nations, a join at a time."""
    report = pyjoinopt.join_report(tpch.sql(dict(QUERIES)[7]), strict=True, statistics="full")
    (group,) = report.groups
    assert {r.name: r.rows for r in group.relations if r.name in ("n1", "n2")} == {"n1": 2.0, "n2": 2.0}
    assert group.changed


@pytest.mark.skipif(RECORDING, reason="the table is being written")
def test_doing_nothing_would_fail() -> None:
    assert len(QUERIES) == len(expected("tpch")) == 22
    floor = {"groups": 11, "changed": 10, "joins_spared": 2}
    assert all(totals("tpch")[name] >= least for name, least in floor.items())
