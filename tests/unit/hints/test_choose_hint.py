"""Hints require a proven bound, and are set only where Spark's choice is wrong."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from pyjoinopt.catalyst.planner.build_side import JoinConf
from pyjoinopt.estimation.model.relation_statistics import LikelyBound, RelationStatistics
from pyjoinopt.estimation.plans.operators import estimate_plan
from pyjoinopt.hints.choose_hint import join_hint
from pyjoinopt.hints.memory_limits import MemoryAllowance
from pyjoinopt.plan.nodes import Filter, Join
from tests.support.estimated_tables import TABLES, col, eq, leaf, lit
from tests.unit.estimation.plans.test_operators import group, node

LIMIT = 10485760
LARGE = RelationStatistics(1e9, 1e11, "footers", True, upper_bound=1e9)
SMALL = RelationStatistics(100.0, 4000.0, "footers", False, upper_bound=1000.0)  # 40 bytes a row
GUESS = RelationStatistics(100.0, 4000.0, "footers", False)  # as small, but nothing is proved


def hint(
    kind: str, left: RelationStatistics, right: RelationStatistics, spark_bytes: tuple[float, float] = (1e11, 1e9),
    threshold: float = LIMIT, existing: tuple[str | None, str | None] = (None, None), allowance: float = 1,
) -> tuple[str | None, str | None]:  # fmt: skip
    return join_hint(kind, left, right, *spark_bytes, JoinConf(threshold), MemoryAllowance(allowance, allowance),
    existing)[:2]


def test_proved_side_that_spark_overrates() -> None:
    assert hint("Inner", LARGE, SMALL) == (None, "BROADCAST")
    assert hint("Inner", SMALL, LARGE) == ("BROADCAST", None)
    reason = join_hint("Inner", LARGE, SMALL, 1e11, 1e9, JoinConf()).reason
    assert "1,000 rows" in reason and "40.0 kB" in reason


def test_estimates_alone_are_no_promise() -> None:
    assert hint("Inner", LARGE, GUESS) == (None, None)
    assert hint("Inner", GUESS, GUESS) == (None, None)


@pytest.mark.parametrize(
    ("kind", "left", "right"),
    [
        ("Inner", True, True), ("Cross", True, True), ("LeftOuter", False, True), ("RightOuter", True, False),
        ("FullOuter", False, False), ("LeftSemi", False, True), ("LeftAnti", False, True),
        ("ExistenceJoin", False, True),
    ],
)  # fmt: skip
def test_only_sides_that_the_type_allows(kind: str, left: bool, right: bool) -> None:
    assert hint(kind, SMALL, LARGE, (1e9, 1e11)) == ("BROADCAST" if left else None, None)
    assert hint(kind, LARGE, SMALL) == (None, "BROADCAST" if right else None)


def test_never_where_spark_broadcasts_by_itself() -> None:
    assert hint("Inner", LARGE, SMALL, (1e11, 1000)) == (None, None)
    assert hint("Inner", SMALL, GUESS, (1e11, LIMIT)) == (None, None)
    # To build the other side must be worth it: here it avoids shuffling about ten megabytes, then nothing.
    large = RelationStatistics(260_000.0, 10.4e6, "footers", False, upper_bound=260_000.0)
    assert hint("Inner", large, SMALL, (LIMIT, 1e9)) == (None, "BROADCAST")
    assert hint("Inner", SMALL, large, (1e9, LIMIT)) == ("BROADCAST", None)
    assert hint("Inner", SMALL, SMALL, (LIMIT, 1e9)) == (None, None)
    assert hint("Inner", large, GUESS, (LIMIT, 1e9)) == (None, None), "of which nothing is proved"
    # The left side of a left join cannot be broadcast: Spark's small estimate for it has no effect.
    assert hint("LeftOuter", LARGE, SMALL, (1000, 1e9)) == (None, "BROADCAST")


def test_never_beyond_the_threshold() -> None:
    per_row = 40.0
    rows = LIMIT / per_row
    fits = RelationStatistics(1.0, per_row, "footers", False, upper_bound=rows)
    over = RelationStatistics(1.0, per_row, "footers", False, upper_bound=rows + 1)
    assert hint("Inner", LARGE, fits) == (None, "BROADCAST")
    assert hint("Inner", LARGE, over) == (None, None)
    assert hint("Inner", LARGE, SMALL, threshold=-1) == (None, None)
    assert hint("Inner", LARGE, SMALL, threshold=100) == (None, None)


def test_the_smaller_proved_side() -> None:
    smaller = RelationStatistics(10.0, 400.0, "footers", False, upper_bound=10.0)
    assert hint("Inner", smaller, SMALL) == ("BROADCAST", None)
    assert hint("Inner", SMALL, smaller) == (None, "BROADCAST")
    assert hint("Inner", SMALL, SMALL) == (None, "BROADCAST")


def test_of_sides_expected_to_be_equal_the_one_proved_smaller() -> None:
    """The hint does not depend on the written order; otherwise a query would have several plans."""
    looser = replace(SMALL, upper_bound=2000.0)
    assert hint("Inner", SMALL, looser) == ("BROADCAST", None)
    assert hint("Inner", looser, SMALL) == (None, "BROADCAST")


def test_hints_of_the_query_stay() -> None:
    assert hint("Inner", LARGE, SMALL, existing=("SHUFFLE_MERGE", None)) == (None, None)


def test_sides_of_plans() -> None:
    """A filtered small table, an aggregate, a limit: proved. A filtered large table: only guessed."""
    huge = estimate_plan(TABLES["lines"], leaf)

    def given(plan: object) -> bool:
        return hint("Inner", huge, estimate_plan(plan, leaf), (1e11, 1e11))[1] is not None  # type: ignore[arg-type]

    nations, customers = TABLES["nations"], TABLES["customers"]
    assert given(Filter(eq("n_name", lit("GERMANY")), nations))
    assert given(group(customers, "c_nation"))
    assert given(group(TABLES["lines"]))
    assert given(node("GlobalLimit", TABLES["orders"], limit=100))
    assert given(Join(nations, nations, "Cross"))
    assert not given(Filter(eq("o_key", lit(5)), TABLES["orders"]))
    assert not given(group(TABLES["orders"], "o_status"))  # its values were not counted
    assert not given(Join(customers, customers, "Cross"))
    assert not given(node("LocalLimit", TABLES["orders"], limit=100))
    assert given(group(Filter(eq(col("o_status"), lit("F")), TABLES["orders"]), "o_date"))


def test_empty_sides() -> None:
    empty = RelationStatistics(0.0, 0.0, "footers", True, upper_bound=0.0)
    assert hint("Inner", LARGE, empty) == (None, "BROADCAST")
    assert math.isinf(GUESS.bytes_bound)


def test_expected_to_fit_and_proved_to_do_no_harm() -> None:
    filtered = RelationStatistics(1e5, 2e6, "footers", False, upper_bound=2e6)  # 2 MB expected, 40 MB at most
    assert hint("Inner", LARGE, filtered, allowance=8) == (None, "BROADCAST")
    assert hint("Inner", LARGE, filtered, allowance=1) == (None, None)
    reason = join_hint("Inner", LARGE, filtered, 1e11, 1e9, JoinConf(), MemoryAllowance()).reason
    assert reason == "about 100,000 rows (2.0 MB), at most 2,000,000 rows (40.0 MB), Spark estimates 1.0 GB"


def test_hash_tables_of_partitions() -> None:
    medium = RelationStatistics(1e6, 4e7, "footers", True, upper_bound=1e6)  # 40 MB: too large to broadcast
    assert hint("Inner", LARGE, medium, allowance=8) == (None, "SHUFFLE_HASH")
    assert hint("Inner", medium, LARGE, (1e9, 1e11), allowance=8) == ("SHUFFLE_HASH", None)
    assert hint("Inner", LARGE, medium, allowance=2) == (None, None)  # may not fit if one partition has it all
    assert hint("Inner", medium, medium, allowance=8) == (None, None)  # to hash as many rows as to sort is no gain
    assert hint("LeftSemi", LARGE, medium, allowance=8) == (None, "SHUFFLE_HASH")
    assert hint("LeftSemi", medium, LARGE, (1e9, 1e11), allowance=8) == (None, None)
    unproved = RelationStatistics(1e6, 4e7, "footers")
    assert hint("Inner", LARGE, unproved, allowance=8) == (None, None)


def test_without_keys_there_is_nothing_to_hash() -> None:
    medium = RelationStatistics(1e6, 4e7, "footers", True, upper_bound=1e6)
    assert join_hint("Inner", LARGE, medium, 1e11, 1e9, JoinConf(), MemoryAllowance(8, 8), keyed=False).right is None
    small = join_hint("Inner", LARGE, SMALL, 1e11, 1e9, JoinConf(), MemoryAllowance(8, 8), keyed=False)
    assert small.right == "BROADCAST"


def test_memory_lets_a_broadcast_be_larger_but_no_hash_table() -> None:
    medium, wide = RelationStatistics(6e5, 2.4e7, upper_bound=4e6), RelationStatistics(1e5, 2e6, upper_bound=6e6)
    much = MemoryAllowance(broadcast=16, hashed=8)
    assert wide.bytes_bound > 8 * LIMIT
    assert join_hint("Inner", LARGE, wide, 1e11, 1e9, JoinConf(), MemoryAllowance()).right is None
    assert join_hint("Inner", LARGE, wide, 1e11, 1e9, JoinConf(), much).right == "BROADCAST"
    assert join_hint("Inner", LARGE, medium, 1e11, 1e9, JoinConf(), much).right is None


def test_a_little_more_than_the_threshold_is_broadcast_beside_a_much_larger_side() -> None:
    built = RelationStatistics(4e5, 1.6e7, upper_bound=5e5)
    for times, chosen in ((11, "BROADCAST"), (9, "SHUFFLE_HASH")):
        probed = RelationStatistics(1e7, times * 1.6e7, "footers", True, upper_bound=1e7)
        assert hint("Inner", probed, built, allowance=8) == (None, chosen)
    larger = RelationStatistics(6e5, 2.4e7, upper_bound=6e5)
    assert hint("Inner", LARGE, larger, allowance=8) == (None, "SHUFFLE_HASH")


def test_merge_where_spark_would_broadcast_too_much() -> None:
    packed = RelationStatistics(1e8, 4e9, "footers", True, upper_bound=1e8)  # of a file that is one value, repeated
    assert hint("Inner", LARGE, packed, (1e11, 1e6), allowance=8) == (None, "SHUFFLE_MERGE")
    assert hint("Inner", SMALL, packed, (1e11, 1e6), allowance=8) == ("BROADCAST", None)  # better still
    large = RelationStatistics(1e7, 4e8, "footers", True, upper_bound=1e7)  # a pity, but no harm
    assert hint("Inner", LARGE, large, (1e11, 1e6), allowance=8) == (None, None)
    guessed = RelationStatistics(1e8, 4e9, "size")
    assert hint("Inner", LARGE, guessed, (1e11, 1e6), allowance=8) == (None, None)


def test_a_bound_by_a_sample_carries_a_hint_and_is_named() -> None:
    sampled = replace(SMALL, upper_bound=1e9, likely=LikelyBound(2000.0, 8192))
    assert hint("Inner", LARGE, sampled) == (None, "BROADCAST")
    reason = join_hint("Inner", LARGE, sampled, 1e11, 1e9, JoinConf()).reason
    assert "at most 2,000 rows (80.0 kB) by a sample of 8,192 rows (error: one in 1,000,000)" in reason
    assert hint("Inner", LARGE, replace(SMALL, upper_bound=1e9)) == (None, None)
    assert hint("Inner", LARGE, replace(sampled, likely=LikelyBound(1e6, 8192))) == (None, None), "40 MB"
    assert hint("Inner", LARGE, replace(sampled, likely=LikelyBound(1e6, 8192)), allowance=4) == (None, "BROADCAST")


def test_a_proof_that_is_enough_is_the_reason() -> None:
    both = replace(SMALL, likely=LikelyBound(500.0, 8192))
    assert "sample" not in join_hint("Inner", LARGE, both, 1e11, 1e9, JoinConf()).reason
