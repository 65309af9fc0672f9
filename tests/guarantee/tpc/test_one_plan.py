"""A query gets one plan however it is written: the TPC queries with shuffled FROM lists."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

from benchmarks.shuffled import shuffled
from pyjoinopt.plan.relation_names import plain_name
from pyjoinopt.report.model import GroupReport, JoinEstimate
from tests.guarantee.tpc.check import expected, queries
from tests.support import tpc

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The number of ways to write a query, in addition to the original one.
WAYS = 4
#: The plan of one group: each join's relations (without the numbers of copies), type, rows and hint.
Made = tuple[tuple[list[str], str, str, str, list[str]], ...]


def _ways() -> list[object]:
    found: list[object] = []
    for benchmark in ("tpch", "tpcds"):
        for number, text in queries(benchmark):
            others = {shuffled(text, random.Random(f"{number} {k}")) for k in range(WAYS)} - {text}
            if others:
                # Query 2 has the tables of query 1, but other join keys, which the samples of that one lack. The
                # aggregates of 30, 65 and 81 become windows.
                often = benchmark == "tpch" or number % 4 == 0 or number in (1, 2, 30, 65, 81)
                marks = () if often else (pytest.mark.slow,)
                ways = [text, *sorted(others)]
                found.append(pytest.param(benchmark, number, ways, marks=marks, id=f"{benchmark}-{number}"))
    return found


@pytest.fixture(scope="module")
def sessions(spark: SparkSession) -> dict[str, SparkSession]:
    found = {}
    for benchmark in ("tpch", "tpcds"):
        found[benchmark] = spark.newSession()
        tpc.register(found[benchmark], benchmark)
    return found


def _made(group: GroupReport) -> Made:
    def kinds(names: Sequence[str]) -> list[str]:
        return sorted(map(plain_name, names))

    def side(number: int) -> Sequence[str]:
        own = len(group.relations)
        return [group.relations[number].name] if number < own else group.estimated_rows[number - own].relations

    def one(join: JoinEstimate) -> tuple[list[str], str, str, str, list[str]]:
        strategy, _, where = join.hint.partition(":")[0].partition(" ")
        hinted = side(join.left if where == "left" else join.right) if strategy else ()
        return kinds(join.relations), join.sign, f"{join.rows:.6g}", strategy, kinds(hinted)

    return tuple(sorted(map(one, group.estimated_rows)))


@pytest.mark.parametrize("benchmark, number, ways", _ways())
@pytest.mark.parametrize(
    ("cost", "ansi"),
    [("spark", False), *(pytest.param(*one, marks=pytest.mark.ci) for one in (("c_out", False), ("spark", True)))],
)
def test_one_plan(
    sessions: dict[str, SparkSession], benchmark: str, number: int, ways: list[str], cost: str, ansi: bool
) -> None:
    plans, groups = set(), set()
    sessions[benchmark].conf.set("spark.sql.ansi.enabled", str(ansi).lower())
    options = {"statistics": "full", "statistics_ms": 60_000, "store": "off", "cost": cost}
    for text in ways:
        fast = sessions[benchmark].sql(text).optimize_joins(strict=True, **options)
        found = fast._pyjoinopt_report.groups
        plans.add(str(sorted(map(_made, found))))
        groups.add(len(found))
    assert len(plans) == 1, "\n".join(sorted(plans))
    assert (cost, ansi) != ("spark", False) or groups == {expected(benchmark)[str(number)]["groups"]}  # the default
