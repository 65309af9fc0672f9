"""Better orders by the rows of a run: found where there is one, and none where the run's order is good or unknown."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyjoinopt.advice.better_order import better_orders
from pyjoinopt.advice.join_groups import find_groups
from pyjoinopt.advice.physical_joins import read_join, split
from pyjoinopt.advice.true_estimates import TrueEstimates
from tests.support.made_up_logs import Operator, op
from tests.unit.advice.plans import broadcast, merged, ran, scan, shuffled


def facts() -> Operator:
    return scan("facts", "k#1,d#2", 1e6)


def lines() -> Operator:
    return scan("lines", "k#3", 1e5)


def days() -> Operator:
    return scan("days", "d#4", 10)


def bad(last: float = 1e5) -> Operator:
    """Many lines for each fact, and then the few days that are wanted."""
    return merged(merged(facts(), lines(), "[k#1], [k#3]", 1e8), days(), "[d#2], [d#4]", last)


def good() -> Operator:
    return merged(merged(facts(), days(), "[d#2], [d#4]", 1e3), lines(), "[k#1], [k#3]", 1e5)


def test_a_bad_order_gets_a_better_one(tmp_path: Path) -> None:
    (found,) = better_orders(ran(tmp_path, bad(), {0: [1], 1: [3_600_000]}))
    assert {found.order, found.ran} >= {"((facts ⋈ lines) ⋈ days)"} and "lines ⋈ (" in found.order.replace(
        "days ⋈ f", ""
    )
    assert "facts" in found.order.split("lines")[1] and found.observed == 1.0
    assert found.ran_rows == pytest.approx(1e8) and found.rows == pytest.approx(1e3, rel=0.01)
    assert 0.3 < found.hours < 1.0 and 0.8 < found.certainty < 1.0


def test_a_good_order_gets_none(tmp_path: Path) -> None:
    assert not list(better_orders(ran(tmp_path, good())))


def test_the_rows_of_the_run_are_the_estimates(tmp_path: Path) -> None:
    (group,) = find_groups(ran(tmp_path, bad()).plan)
    known = TrueEstimates(group, 10 << 20)
    assert known.names == ("facts", "lines", "days")
    rows = {relations: known.estimates.size(relations).rows for relations in range(1, 8)}
    assert rows[0b011] == pytest.approx(1e8) and rows[0b111] == pytest.approx(1e5)
    assert rows[0b101] == pytest.approx(1e3)  # by the selectivity of the second join


def test_a_group_goes_through_exchanges_projections_and_aliases(tmp_path: Path) -> None:
    first = op("Project", "Project [(d#2 + 1) AS e#9, k#3]", merged(facts(), lines(), "[k#1], [k#3]", 1e8))
    plan = merged(shuffled(first, 1e8, 1e9), shuffled(days(), 10, 100), "[e#9], [d#4]", 1e5)
    (found,) = better_orders(ran(tmp_path, plan, {1: [1000]}))
    assert found.rows == pytest.approx(1e3, rel=0.01)


def test_results_of_an_aggregate_belong_to_it(tmp_path: Path) -> None:
    counted = op(
        "HashAggregate", "HashAggregate(keys=[x#70], functions=[count(1)])", scan("events", "x#70", 1e6), rows=1e5
    )
    plan = merged(merged(facts(), counted, "[k#1], [n#99L]", 1e8), days(), "[d#2], [d#4]", 1e5)
    (found,) = better_orders(ran(tmp_path, plan))
    assert "events" in found.order


def test_keys_of_unknown_relations_are_not_judged(tmp_path: Path) -> None:
    plan = merged(merged(facts(), lines(), "[k#1], [k#3]", 1e8), days(), "[what#55], [d#4]", 1e5)
    assert not list(better_orders(ran(tmp_path, plan)))


def test_outer_joins_are_left_in_their_places(tmp_path: Path) -> None:
    outer = merged(facts(), lines(), "[k#1], [k#3]", 1e8, how="LeftOuter")
    assert not list(find_groups(ran(tmp_path, merged(outer, days(), "[d#2], [d#4]", 1e5)).plan))


def test_subqueries_and_reused_results(tmp_path: Path) -> None:
    """A scalar subquery has a group of its own; what a reused exchange shows has been counted where it ran."""
    counted = op("Subquery", "Subquery scalar-subquery#40", bad())
    joined = merged(facts(), lines(), "[k#1], [k#3]", 1e8)
    top = op("Filter", "Filter (n#41 > scalar-subquery#40)", joined, counted, rows=9)
    execution = ran(tmp_path, top)
    assert [node.name for node in execution.plan.children] == ["SortMergeJoin"]
    assert len(list(better_orders(execution))) == 1
    reused = op("ReusedExchange", "ReusedExchange [d#2]", shuffled(bad(), 1e5, 1e6))
    assert not list(better_orders(ran(tmp_path, merged(facts(), reused, "[k#1], [d#2]", 1e5))))


def test_a_limit_may_have_stopped_the_joins(tmp_path: Path) -> None:
    assert not list(better_orders(ran(tmp_path, op("CollectLimit", "CollectLimit 5", op("Project", "", bad())))))
    sorted_first = op("CollectLimit", "CollectLimit 5", op("Sort", "Sort [a#1]", bad()))
    for plan in (sorted_first, op("TakeOrderedAndProject", "TakeOrderedAndProject(limit=5)", bad())):
        assert len(list(better_orders(ran(tmp_path, plan)))) == 1


def test_run_time_filters_make_it_less_sure(tmp_path: Path) -> None:
    thinned = scan("facts", "k#1,d#2", 1e6)
    thinned.text = "Filter might_contain(bloom, xxhash64(k#1))"
    plan = merged(merged(thinned, lines(), "[k#1], [k#3]", 1e8), days(), "[d#2], [d#4]", 1e5)
    (found,) = better_orders(ran(tmp_path, plan))
    assert found.observed == 0.5 and "run-time filters" in found.surer


def test_joins_are_read_from_their_text() -> None:
    def read(name: str, text: str) -> tuple[object, ...]:
        from pyjoinopt.eventlog.physical_plan import PlanNode

        leaf = PlanNode("x", "x", (), {}, frozenset())
        join = read_join(PlanNode(name, text, (leaf, leaf), {}, frozenset()))
        assert join is not None
        return join.join_type, join.left_keys, join.right_keys, join.condition, join.build

    skewed = "SortMergeJoin(skew=true) [a#1, f(b#2, 3)], [c#3, d#4L], LeftSemi, (x#1 > y#2)"
    assert read("SortMergeJoin(skew=true)", skewed) == (
        "LeftSemi", ("a#1", "f(b#2, 3)"), ("c#3", "d#4L"), "(x#1 > y#2)", "",
    )  # fmt: skip
    assert read("BroadcastNestedLoopJoin", "BroadcastNestedLoopJoin BuildLeft, LeftAnti, (a#1 > b#2)") == (
        "LeftAnti", (), (), "(a#1 > b#2)", "left",
    )  # fmt: skip
    cut = "BroadcastHashJoin [a#1, ... 3 more fields], [b#2, ... 3 more fields], Inner, BuildRight, false"
    assert read("BroadcastHashJoin", cut) == ("Inner", (), (), "", "right")
    assert read("BroadcastHashJoin", "BroadcastHashJoin ???") == ("", (), (), "", "")
    assert read("CartesianProduct", "CartesianProduct (a#1 < b#2)")[0] == "Inner"


@given(st.text(max_size=60))
def test_no_text_breaks_the_splitting(text: str) -> None:
    split(text)


@settings(max_examples=60)
@given(st.lists(st.floats(1, 1e9), min_size=7, max_size=7), st.booleans())
def test_advice_never_has_more_rows_than_the_run(
    tmp_path_factory: pytest.TempPathFactory, rows: list[float], hash: bool
) -> None:
    join = broadcast if hash else merged
    a, b, c, d, first, second, third = rows
    plan = join(scan("a", "a#1,x#2,y#3", a), scan("b", "b#4", b), "[a#1], [b#4]", first)
    plan = join(plan, scan("c", "c#5", c), "[x#2], [c#5]", second)
    plan = join(plan, scan("d", "d#6", d), "[y#3], [d#6]", third)
    for found in better_orders(ran(tmp_path_factory.getbasetemp(), plan)):
        assert found.rows <= 0.7 * found.ran_rows and 0 <= found.hours and 0 < found.certainty <= 1.0
