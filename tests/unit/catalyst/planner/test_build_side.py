"""Build sides by hint and by size: the cases of Spark's own suite, and further ones."""

from __future__ import annotations

import pytest

from pyjoinopt.catalyst.planner.build_side import (
    BROADCAST,
    HASH,
    NO_BROADCAST,
    NO_BROADCAST_HASH,
    PREFER_HASH,
    JoinConf,
    broadcast_side,
    desired_loop_side,
    hash_side,
    loop_side,
    parse_bytes,
    required_loop_side,
    smaller_side,
)

LEFT, RIGHT = 20_000_000, 1000
CONF = JoinConf()
HASHING = JoinConf(prefer_sort_merge=False)


@pytest.mark.parametrize(
    ("hint", "hinted", "side"),
    [
        ((BROADCAST, None), True, "left"),
        ((None, BROADCAST), True, "right"),
        ((BROADCAST, BROADCAST), True, "right"),
        ((None, None), True, None),
        ((None, None), False, "right"),
        ((None, NO_BROADCAST_HASH), False, None),
        ((None, NO_BROADCAST), False, None),
    ],
)
def test_broadcast(hint: tuple[str | None, str | None], hinted: bool, side: str | None) -> None:
    assert broadcast_side("Inner", LEFT, RIGHT, CONF, hint, hinted) == side


@pytest.mark.parametrize(
    ("hint", "hinted", "side"),
    [
        ((HASH, None), True, "left"),
        ((None, HASH), True, "right"),
        ((HASH, HASH), True, "right"),
        ((None, None), True, None),
        ((None, None), False, "right"),
        ((None, NO_BROADCAST_HASH), False, "right"),
    ],
)
def test_shuffled_hash(hint: tuple[str | None, str | None], hinted: bool, side: str | None) -> None:
    assert hash_side("Inner", LEFT, RIGHT, HASHING, hint, hinted) == side


def test_preferred_hash_table() -> None:
    for spark, side in (((4, 2), "left"), ((4, 3), None)):
        assert hash_side("Inner", LEFT, RIGHT, CONF, (PREFER_HASH, None), False, spark) == side
        assert hash_side("Inner", LEFT, RIGHT, CONF, (PREFER_HASH, None), True, spark) is None


def test_smaller_side() -> None:
    assert smaller_side(LEFT, RIGHT) == smaller_side(5, 5) == "right"
    assert smaller_side(RIGHT, LEFT) == "left"


def test_fits_the_threshold() -> None:
    assert not CONF.fits(LEFT) and CONF.fits(RIGHT) and CONF.fits(0)
    assert CONF.fits(10 * 1024 * 1024) and not CONF.fits(10 * 1024 * 1024 + 1)
    assert not JoinConf(-1).fits(0) and JoinConf(0).fits(0)


def test_fits_a_hash_table() -> None:
    conf = JoinConf(100, 4)
    assert conf.fits_hash_table(399) and not conf.fits_hash_table(400)
    assert not JoinConf(-1, 4).fits_hash_table(1)
    assert not JoinConf(9_000_000_000_000_000_000, 3).fits_hash_table(1 << 63)
    assert not JoinConf(6_000_000_000_000_000_000, 2).fits_hash_table(0)  # the product is below 0 in 64 bits
    assert conf.much_smaller(100, 300) and not conf.much_smaller(100, 299)


def test_nested_loops() -> None:
    assert required_loop_side("Inner", (None, None)) is None
    assert required_loop_side("LeftSingle", (None, NO_BROADCAST)) == "right"
    assert required_loop_side("Inner", (NO_BROADCAST, NO_BROADCAST)) == "right"
    assert required_loop_side("Inner", (None, NO_BROADCAST)) == "left"
    sides = {
        kind: desired_loop_side(kind, 1, 2) for kind in ("Inner", "FullOuter", "LeftOuter", "RightOuter", "LeftAnti")
    }
    assert sides == {
        "Inner": "left", "FullOuter": "left", "LeftOuter": "right", "RightOuter": "left", "LeftAnti": "right"
    }  # fmt: skip
    assert loop_side("LeftOuter", LEFT, RIGHT, CONF, (BROADCAST, None), True) == "left"
    assert loop_side("LeftOuter", RIGHT, RIGHT, CONF, (BROADCAST, BROADCAST), True) == "right"
    assert loop_side("Inner", LEFT, RIGHT, CONF, (None, NO_BROADCAST_HASH), False) == "right"
    assert loop_side("Inner", LEFT, RIGHT, CONF, (None, NO_BROADCAST), False) is None


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("10485760", 10485760), ("10MB", 10485760), ("10m", 10485760), (" 20 kB ", 20480), ("5b", 5), ("-1", -1),
        ("-2k", -2048), ("1g", 1 << 30), ("2tb", 2 << 40), ("1P", 1 << 50), ("", None), ("many", None), ("1.5m", None),
        ("5 x", None),
    ],
)  # fmt: skip
def test_sizes_as_text(text: str, size: int | None) -> None:
    assert parse_bytes(text) == size


def test_settings() -> None:
    assert JoinConf.of({}) == JoinConf()
    conf = JoinConf.of({
        "spark.sql.autoBroadcastJoinThreshold": "20kb", "spark.sql.shuffle.partitions": "7",
        "spark.sql.join.preferSortMergeJoin": "FALSE", "spark.sql.shuffledHashJoinFactor": "5",
        "spark.sql.optimizeNullAwareAntiJoin": "false", "spark.sql.optimizeNullAwareAntiJoin.broadcastThreshold": "1k",
    })  # fmt: skip
    assert conf == JoinConf(20480, 7, False, 5, False, 1024, 20480)


def test_adaptive_execution_may_shuffle_into_more_partitions() -> None:
    settings = {
        "spark.sql.shuffle.partitions": "7", "spark.sql.adaptive.coalescePartitions.initialPartitionNum": "50",
    }  # fmt: skip
    assert JoinConf.of(settings).shuffle_partitions == 50
    assert JoinConf.of({**settings, "spark.sql.adaptive.enabled": "false"}).shuffle_partitions == 7
    assert JoinConf.of({**settings, "spark.sql.adaptive.coalescePartitions.enabled": "false"}).shuffle_partitions == 7
