"""What the JVM gets to compare a running query with its estimates."""

from __future__ import annotations

import json
from math import inf

from pyjoinopt.feedback.learned_rows import ExpectedGroup


def group(estimates: dict[int, float], probing: tuple[int, ...] = ()) -> ExpectedGroup:
    return ExpectedGroup(("a", "b", "c"), {7: 0, 8: 1, 9: -1}, (1, 1, 2), estimates, lambda: None, probing)


def test_only_joins_whose_rows_can_be_compared_are_sent() -> None:
    """An infinite number is no JSON, and an answer with one would be lost."""
    sent = group({0b1: 5.0, 0b11: 6.0, 0b101: inf, 0b110: 8.0, 0b111: 9.0}, probing=(0b110,)).to_dict()
    assert json.loads(json.dumps(sent, allow_nan=False)) == {
        "names": ["a", "b", "c"], "columns": [7, 8, 9], "owners": [0, 1, -1], "leaves": [1, 1, 2],
        "joins": [{"of": [0, 1], "rows": 6.0}],
    }  # fmt: skip


def test_a_group_without_such_joins_is_not_sent() -> None:
    assert group({0b1: 5.0, 0b111: inf}).to_dict() is None
