"""Sixteen threads plan at the same time: every query gets its own order and its own report."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

import pyjoinopt
from tests.sessions.conftest import rows
from tests.sessions.fakes import workers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Joins to hang on to the ones before; a query has some of them, so that few are of one shape.
JOINS = (
    "JOIN mid ON fact_f = mid_k", "JOIN dim AS d ON mid_f = d.dim_k", "LEFT JOIN note AS n ON d.dim_f = n.note_k",
    "JOIN dim AS e ON fact_v = e.dim_k", "LEFT SEMI JOIN mid AS some ON fact_k = some.mid_k",
    "LEFT ANTI JOIN note AS none ON fact_k = none.note_v", "JOIN note AS last ON fact_v = last.note_k",
)  # fmt: skip
SHAPES = [(few, only) for few in range(2, len(JOINS) + 1) for only in ("", " AND mid_v = 1", " AND mid_v = 3")][:16]


def query(number: int) -> str:
    """Marked by its number, so that its report is known among all."""
    few, only = SHAPES[number]
    return (
        f"SELECT /*+ OPTIMIZE_JOINS('mark=m{number}') */ fact_k, mid_v FROM fact {' '.join(JOINS[:few])} "
        f"WHERE d.dim_v = 1{only} AND fact_k % {number + 2} = 0"
    )


def reported(session: SparkSession, number: int) -> list[object]:
    """The contents of the reports with a mark: the orders, the cost and the problem of each."""
    found = session.sql(f"SELECT DISTINCT number, report FROM joinopt_report('m{number}') ORDER BY number").collect()
    reports = [pyjoinopt.JoinReport.from_dict(json.loads(row.report)) for row in found]
    return [([(g.order_before, g.order_after) for g in r.groups], r.cost_after, r.error) for r in reports]


@pytest.mark.ci
def test_they_do_not_mix(session: SparkSession) -> None:
    session.conf.set("spark.pyjoinopt.timeout", "60s")
    numbers = range(16)
    texts = [query(number) for number in numbers]
    expected = [rows(session.sql(text)) for text in texts]
    one_by_one = [reported(session, number) for number in numbers]
    assert len({str(orders) for ((orders, _, _),) in one_by_one}) >= 6
    assert all(error is None for ((_, _, error),) in one_by_one)
    with ThreadPoolExecutor(max_workers=16) as pool:
        assert list(pool.map(lambda text: rows(session.sql(text)), texts)) == expected
    assert [reported(session, number) for number in numbers] == [2 * reports for reports in one_by_one]
    assert len(workers()) <= 2
