"""Each kind of finding: a plan that has it, and plans that are nearly alike and have not."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyjoinopt.advice.broadcast_sides import large_broadcasts, missed_broadcasts
from pyjoinopt.advice.examine import findings_of
from pyjoinopt.advice.multiplied_rows import multiplied_rows
from pyjoinopt.advice.outer_joins import needless_outer_joins, required_columns
from pyjoinopt.advice.repeated_subplans import repeated_subplans
from pyjoinopt.advice.uneven_work import Skew, Spill, uneven_work
from tests.support.made_up_logs import LogWriter, Operator, op, task_end
from tests.unit.advice.plans import broadcast, merged, ran, scan, shuffled

# -- multiplied rows ---------------------------------------------------------------------------------------------------


def multiplying(rows: float, above: Operator | None = None) -> Operator:
    join = merged(scan("orders", "a#1", 1000), scan("events", "b#2", 500_000), "[a#1], [b#2]", rows, stage=0)
    if above is not None:
        above.children = [join]
        return above
    return join


def test_rows_that_an_aggregate_drops(tmp_path: Path) -> None:
    (found,) = multiplied_rows(ran(tmp_path, multiplying(5e6, op("HashAggregate", rows=10)), {0: [3_600_000]}))
    assert (found.left_rows, found.right_rows, found.rows, found.rows_left) == (1000, 500_000, 5e6, 10)
    assert found.where == "orders ⋈ events" and "group before this join" in found.text
    assert found.hours == pytest.approx(0.45)


@pytest.mark.parametrize(
    "plan",
    [
        multiplying(5e6),
        multiplying(5e6, op("HashAggregate", rows=4e6)),
        multiplying(5e6, op("GlobalLimit", rows=1)),
        multiplying(900_000, op("HashAggregate", rows=1)),
    ],
    ids=["all are used", "few are dropped", "a limit", "not many times as many"],
)
def test_rows_that_are_not_multiplied_in_vain(tmp_path: Path, plan: Operator) -> None:
    assert not list(multiplied_rows(ran(tmp_path, plan)))


# -- broadcasts --------------------------------------------------------------------------------------------------------


def unequal(small: float = 1e6, how: str = "Inner") -> Operator:
    left = shuffled(scan("facts", "a#1", 1e8), 1e8, 8e9)
    right = shuffled(scan("lookup", "b#2", 1e4), 1e4, small)
    return merged(left, right, "[a#1], [b#2]", 1e8, how=how)


@pytest.mark.parametrize("how", ["Inner", "LeftOuter", "LeftSemi", "LeftAnti"])
def test_a_small_side_that_was_shuffled(tmp_path: Path, how: str) -> None:
    (found,) = missed_broadcasts(ran(tmp_path, unequal(how=how), {1: [3_600_000]}))
    assert (found.side, found.bytes, found.other_bytes, found.threshold) == ("lookup", 1e6, 8e9, 10 << 20)
    assert 0.1 < found.hours < 1.0 and "10.5 MB" in found.text


@pytest.mark.parametrize(("small", "how", "threshold"), [
    (9e6, "Inner", "10m"), (1e6, "Inner", "-1"), (1e6, "FullOuter", "10m"), (1e6, "RightOuter", "10m"),
    (1e6, "Inner", "1m"),
])  # fmt: skip
def test_sides_that_spark_must_not_broadcast(tmp_path: Path, small: float, how: str, threshold: str) -> None:
    settings = {"spark__sql__autoBroadcastJoinThreshold": threshold}
    assert not list(missed_broadcasts(ran(tmp_path, unequal(small, how), **settings)))


@pytest.mark.parametrize(("size", "ms", "rows", "found"), [
    (1e9, 10, 1e6, 1), (1e6, 30_000, 1e6, 1), (1e6, 100, 1e6, 0), (1e6, 30_000, 5, 0),
])  # fmt: skip
def test_large_and_slow_broadcasts(tmp_path: Path, size: float, ms: float, rows: float, found: int) -> None:
    built = op("BroadcastExchange", "", scan("people", "b#2", rows), rows=rows, data_size=size, time_to_build=ms)
    join = op(
        "BroadcastHashJoin", "BroadcastHashJoin [a#1], [b#2], Inner, BuildRight", scan("a", "a#1", 9), built, rows=9
    )
    assert len(list(large_broadcasts(ran(tmp_path, join, seconds=60.0)))) == found


# -- repeated sub-plans ------------------------------------------------------------------------------------------------


def grouped(number: int, filter: str = "(x > 3)", stage: int = 0) -> Operator:
    read = op("Scan parquet t", f"FileScan parquet t[a#{number}L]", rows=1e6, stage=stage)
    kept = op("Filter", f"Filter {filter}", read, rows=1e6, stage=stage)
    exchange = op("Exchange", f"Exchange hashpartitioning(a#{number}L, 4), [plan_id={number}]", kept, stage=9)
    return op("HashAggregate", f"HashAggregate(keys=[a#{number}L])", exchange, rows=100, stage=9)


def test_a_subplan_that_ran_twice(tmp_path: Path) -> None:
    plan = merged(grouped(1), grouped(7, stage=1), "[a#1L], [a#7L]", 100, stage=9)
    (found,) = repeated_subplans(ran(tmp_path, plan, {0: [7_200_000], 1: [7_200_000], 9: [1]}))
    assert found.runs == 2 and found.rows == 100 and found.operators == 4


def test_subplans_that_differ_or_are_reused(tmp_path: Path) -> None:
    other = merged(grouped(1), grouped(7, "(x > 4)"), "[a#1L], [a#7L]", 100)
    reused = merged(grouped(1), op("ReusedExchange", "ReusedExchange [a#9L]", grouped(7)), "[a#1L], [a#9L]", 100)
    for plan in (other, reused):
        assert not [f for f in repeated_subplans(ran(tmp_path, plan)) if f.operators > 1]


# -- outer joins -------------------------------------------------------------------------------------------------------


def padded(condition: str, how: str = "LeftOuter") -> Operator:
    left, right = scan("orders", "a#1L,x#5", 10), scan("people", "b#2L,c#3", 10)
    return op(
        "Filter",
        f"Filter {condition}",
        op("Project", "Project", broadcast(left, right, "[a#1L], [b#2L]", 10, how)),
        rows=5,
    )


def test_a_filter_that_makes_an_outer_join_needless(tmp_path: Path) -> None:
    for condition in ("isnotnull(c#3)", "(isnotnull(b#2L) AND (x#5 > 3))", "((x#5 > 3) AND isnotnull(c#3))"):
        (found,) = needless_outer_joins(ran(tmp_path, padded(condition)))
        assert found.column in ("b", "c") and found.certainty == 1.0


@pytest.mark.parametrize("condition", [
    "isnotnull(x#5)", "(isnotnull(c#3) OR (x#5 > 3))", "NOT isnotnull(c#3)", "isnotnull(coalesce(c#3, 1))",
    "(c#3 > 3)", "isnotnull(z#99)", "(isnotnull(c#3) = false)",
])  # fmt: skip
def test_filters_that_prove_nothing(tmp_path: Path, condition: str) -> None:
    assert not list(needless_outer_joins(ran(tmp_path, padded(condition))))


def test_other_joins_below_such_a_filter(tmp_path: Path) -> None:
    for how in ("Inner", "FullOuter", "RightOuter"):
        assert not list(needless_outer_joins(ran(tmp_path, padded("isnotnull(c#3)", how))))
    assert required_columns("Filter isnotnull(c#3)") == [3]


# -- skew and spill ----------------------------------------------------------------------------------------------------


def test_skew_and_spill(tmp_path: Path) -> None:
    log = LogWriter().start().execution(1, unequal(), {1: [1000] * 9})
    at = next(i for i, event in enumerate(log.events) if event["Event"] == "SparkListenerTaskEnd")
    log.events.insert(at, task_end(101, 100_000, read=1 << 33, spilled=1 << 30))
    from pyjoinopt.eventlog.executions import read_executions
    from pyjoinopt.eventlog.files import LogFiles
    from pyjoinopt.eventlog.lines import ReadingNotes

    path = log.write(tmp_path / "app-1")
    (execution,) = read_executions(LogFiles("app-1", (path,)), ReadingNotes())
    skew, spill = uneven_work(execution)
    assert isinstance(skew, Skew) and skew.longest_ms == 100_000 and 90 < skew.seconds < 100
    assert "frequent key" in skew.text and isinstance(spill, Spill) and spill.bytes == 1 << 30
    assert not list(uneven_work(ran(tmp_path, unequal(), {1: [1000] * 9 + [4000]})))


def test_an_execution_that_failed_has_no_findings(tmp_path: Path) -> None:
    plan = multiplying(5e6, op("HashAggregate", rows=10))
    assert findings_of(ran(tmp_path, plan)) and not findings_of(ran(tmp_path, plan, error="lost"))
