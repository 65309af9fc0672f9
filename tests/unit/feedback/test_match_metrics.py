"""Which row counts of an executed plan are used."""

from __future__ import annotations

from typing import Any

from pyjoinopt.feedback.match_metrics import observed_rows

#: Column 1 is of relation 0, 2 of relation 1, 3 of relation 2.
OWNERS = {1: 0, 2: 1, 3: 2}


def scan(column: int, rows: int) -> dict[str, Any]:
    return {"c": "FileSourceScan", "k": [], "o": [column], "m": {"numOutputRows": rows}}


def filtered(child: int, rows: int) -> dict[str, Any]:
    return {"c": "Filter", "k": [child], "m": {"numOutputRows": rows}}


def broadcast(child: int, worked: bool = True) -> dict[str, Any]:
    return {"c": "BroadcastExchange", "k": [child], "m": {"collectTime": 3} if worked else {}}


def joined(left: int, right: int, rows: int) -> dict[str, Any]:
    return {"c": "BroadcastHashJoin", "k": [left, right], "m": {"numOutputRows": rows}}


def test_a_side_that_was_not_read_has_no_count() -> None:
    """The broadcast side is empty, so the other one is not opened: its row count of zero is meaningless."""
    plan = [scan(1, 0), scan(2, 25), filtered(1, 0), broadcast(2), joined(0, 3, 0)]
    assert observed_rows(plan, OWNERS, (1, 1)) == {0b10: 0.0}


def test_what_is_below_joins_that_did_not_run_has_none_either() -> None:
    plan = [
        scan(1, 0), scan(2, 9), broadcast(1), joined(0, 2, 0),
        scan(3, 25), filtered(4, 0), broadcast(5), joined(3, 6, 0),
    ]  # fmt: skip
    assert observed_rows(plan, OWNERS, (1, 1, 1)) == {0b010: 9.0, 0b100: 0.0}


def test_an_empty_file_that_was_read_counts() -> None:
    plan = [scan(1, 50), scan(2, 0), broadcast(1), joined(0, 2, 0)]
    assert observed_rows(plan, OWNERS, (1, 1)) == {0b01: 50.0, 0b10: 0.0, 0b11: 0.0}
    plan[2] = broadcast(1, worked=False)
    assert observed_rows(plan, OWNERS, (1, 1)) == {0b01: 50.0}


def test_counts_that_are_not_zero_are_believed() -> None:
    plan = [scan(1, 50), scan(2, 25), filtered(1, 5), broadcast(2), joined(0, 3, 12)]
    assert observed_rows(plan, OWNERS, (1, 1)) == {0b01: 50.0, 0b10: 5.0, 0b11: 12.0}


def test_a_join_that_only_marks_rows_is_counted_when_they_were_filtered() -> None:
    """As for a pinned IN or EXISTS, in the middle of a group, and on top of it."""
    marked = {**joined(0, 2, 50), "marks": True}
    plan = [scan(1, 50), scan(2, 25), broadcast(1), marked, filtered(3, 7)]
    plan += [scan(3, 9), broadcast(5), joined(4, 6, 3), filtered(7, 2)]
    assert observed_rows(plan, OWNERS, (1, 1, 1)) == {0b001: 50.0, 0b010: 25.0, 0b011: 7.0, 0b100: 9.0, 0b111: 3.0}
    assert observed_rows(plan[:5], {1: 0, 2: 1}, (1, 1)) == {0b01: 50.0, 0b10: 25.0, 0b11: 7.0}
