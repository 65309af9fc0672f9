"""One plan for every way to write a query: the TPC queries with their FROM lists shuffled.

Not in ANSI mode, where a predicate that may fail waits for what stood below it as written (see docs/limits.md).
"""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING

import pytest

from benchmarks.shuffled import shuffled
from pyjoinopt.report.record import GroupReport
from tests.support import tpc
from tests.tpc.check import expected, queries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Ways to write a query, beside the one in which it comes.
WAYS = 4
#: What one group makes: per join its relations, but for the numbers of their copies, and its rows.
Made = tuple[tuple[list[str], str], ...]


def _ways() -> list[object]:
    found: list[object] = []
    for benchmark in ("tpch", "tpcds"):
        for number, text in queries(benchmark):
            others = {shuffled(text, random.Random(f"{number} {k}")) for k in range(WAYS)} - {text}
            if others:
                marks = () if benchmark == "tpch" or number % 4 == 0 else (pytest.mark.slow,)
                ways = [text, *sorted(others)]
                found.append(pytest.param(benchmark, number, ways, marks=marks, id=f"{benchmark}-{number}"))
    return found


@pytest.fixture(scope="module")
def sessions(spark: SparkSession) -> dict[str, SparkSession]:
    found = {}
    for benchmark in ("tpch", "tpcds"):
        found[benchmark] = spark.newSession()
        found[benchmark].conf.set("spark.sql.ansi.enabled", "false")
        tpc.register(found[benchmark], benchmark)
    return found


def _made(group: GroupReport) -> Made:
    def kind(name: str) -> str:
        return re.sub(r"_\d+$", "", name)

    return tuple(sorted((sorted(map(kind, j.relations)), f"{j.rows:.6g}") for j in group.estimated_rows))


@pytest.mark.parametrize("benchmark, number, ways", _ways())
@pytest.mark.parametrize("cost", ["spark", "c_out"])
def test_one_plan(sessions: dict[str, SparkSession], benchmark: str, number: int, ways: list[str], cost: str) -> None:
    plans, groups = set(), set()
    for text in ways:
        fast = sessions[benchmark].sql(text).optimize_joins(strict=True, statistics="full", store="off", cost=cost)
        found = fast._pyjoinopt_report.groups
        plans.add(str(sorted(map(_made, found))))
        groups.add(len(found))
    assert len(plans) == 1
    assert groups == {expected(benchmark)[str(number)]["groups"]}
