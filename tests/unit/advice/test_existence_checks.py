"""Inner joins that could be semi joins: found where the plan proves it, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyjoinopt.advice.examine import findings_of
from pyjoinopt.advice.existence_checks import ExistenceCheck, existence_checks
from tests.support.made_up_logs import Operator, op
from tests.unit.advice.plans import broadcast, merged, ran, scan

DISTINCT = "HashAggregate(keys=[a#1, x#5], functions=[])"


def events() -> Operator:
    return scan("events", "b#2,y#6", 500_000)


def joined(right: Operator | None = None, rows: float = 5e6, how: str = "Inner") -> Operator:
    return merged(scan("orders", "a#1,x#5", 400_000), right or events(), "[a#1], [b#2]", rows, stage=0, how=how)


def distinct(join: Operator, text: str = DISTINCT, between: str = "Project [a#1, x#5]") -> Operator:
    projected = op(between.split(" ")[0], between, join)
    shuffled = op("Exchange", "Exchange hashpartitioning(a#1, x#5, 4)", op("HashAggregate", text, projected))
    return op("HashAggregate", text, shuffled, rows=9)


def found_in(folder: Path, plan: Operator) -> list[ExistenceCheck]:
    return list(existence_checks(ran(folder, plan, {0: [3_600_000]})))


@pytest.mark.parametrize("text", [
    DISTINCT, "HashAggregate(keys=[], functions=[partial_max(x#5), partial_min(a#1)])",
    "SortAggregate(key=[a#1], functions=[max(x#5)])", "HashAggregate(keys=[year(x#5)], functions=[])",
])  # fmt: skip
def test_an_aggregate_that_ignores_duplicates(tmp_path: Path, text: str) -> None:
    (found,) = found_in(tmp_path, distinct(joined(), text))
    assert (found.where, found.side, found.rows, found.semi_rows) == ("orders ⋈ events", "events", 5e6, 400_000)
    assert found.hours == pytest.approx(0.5 * (1 - 0.08)) and found.certainty == 0.5
    assert "LEFT SEMI JOIN" in found.text and "at most 400k rows instead of 5.00M" in found.text


def test_the_left_side_may_be_the_one_that_is_tested(tmp_path: Path) -> None:
    plan = distinct(joined(), "HashAggregate(keys=[y#6], functions=[])", "Project [y#6]")
    (found,) = found_in(tmp_path, plan)
    assert found.side == "orders" and found.semi_rows == 500_000


def test_filters_and_joins_in_between(tmp_path: Path) -> None:
    assert found_in(tmp_path, distinct(joined(), between="Filter (x#5 > 3)"))
    above = broadcast(joined(), scan("people", "c#3", 10), "[x#5], [c#3]", 5e6)
    (found,) = found_in(tmp_path, distinct(above))
    assert found.where == "orders ⋈ events"
    assert not found_in(tmp_path, distinct(broadcast(joined(), scan("people", "c#3", 10), "[y#6], [c#3]", 5e6)))


@pytest.mark.parametrize("text", [
    "HashAggregate(keys=[a#1], functions=[partial_count(1)])", "HashAggregate(keys=[a#1, y#6], functions=[])",
    "HashAggregate(keys=[], functions=[partial_max(x#5), partial_sum(a#1)])", "HashAggregate(keys=[a#1",
    "HashAggregate(keys=[a#1], functions=[partial_max(y#6)])",
    "HashAggregate(keys=[a#1, ... 3 more fields], functions=[])",
    "HashAggregate(keys=[a#1], functions=[partial_max(rand(1))])", "HashAggregate(keys=[mine(a#1)], functions=[])",
])  # fmt: skip
def test_aggregates_that_prove_nothing(tmp_path: Path, text: str) -> None:
    assert not found_in(tmp_path, distinct(joined(), text))


@pytest.mark.parametrize("between", [
    "Project [a#1, x#5, y#6]", "Filter (y#6 > 3)", "Project [a#1, rand(5) AS x#5]", "Sample 0.1", "GlobalLimit 5",
    "Window [row_number()]", "Project [a#1, ... 9 more fields]",
])  # fmt: skip
def test_operators_that_may_see_the_duplicates(tmp_path: Path, between: str) -> None:
    assert not found_in(tmp_path, distinct(joined(), between=between))


def test_joins_and_sides_that_prove_nothing(tmp_path: Path) -> None:
    grouped = op("HashAggregate", "HashAggregate(keys=[b#2], functions=[count(1)])", events(), rows=500_000)
    cut_off = op("Scan parquet t", "FileScan parquet t[b#2,... 30 more fields]", rows=500_000)
    for join in (joined(grouped), joined(cut_off), joined(rows=7e5), joined(how="LeftOuter"), joined(how="LeftSemi")):
        assert not found_in(tmp_path, distinct(join))
    assert not found_in(tmp_path, joined()), "no aggregate"


def test_it_is_one_of_the_findings(tmp_path: Path) -> None:
    kinds = {finding.kind for finding in findings_of(ran(tmp_path, distinct(joined()), {0: [3_600_000]}))}
    assert kinds == {"existence check", "multiplied rows"}
