"""Joins of which a shuffled hash join may lose partners are not hashed by those releases of Spark."""

from __future__ import annotations

import pytest

from pyjoinopt.hints.shuffled_hash_keys import can_be_hashed
from pyjoinopt.plan.expressions import Attribute, call, conjunction, reference
from pyjoinopt.plan.nodes import Join, relation

A, B, C, D = (Attribute(i, i, name, "int") for i, name in enumerate("abcd"))
KEY = call("EqualTo", reference(A), reference(C))
REST = call("LessThan", reference(B), reference(D))


@pytest.mark.parametrize("join_type", ["LeftSemi", "LeftAnti"])
def test_only_keys_are_compared(join_type: str) -> None:
    for spark, right in (("3.5.6", False), ("3.5.7", True), ("4.0.0", False), ("4.0.1", True), ("4.3.0", True)):
        both = Join(relation("s", [A, B]), relation("t", [C, D]), join_type, conjunction([KEY, REST]))
        assert can_be_hashed(both, spark) is right
        assert can_be_hashed(Join(both.left, both.right, join_type, KEY), spark)


def test_joins_that_keep_all_partners_and_joins_without_keys() -> None:
    left, right = relation("s", [A, B]), relation("t", [C, D])
    assert can_be_hashed(Join(left, right, "Inner", conjunction([KEY, REST])), "4.0.0")
    assert can_be_hashed(Join(left, right, "LeftOuter", conjunction([KEY, REST])), "3.5.0")
    assert not can_be_hashed(Join(left, right, "LeftSemi", REST), "4.3.0")
