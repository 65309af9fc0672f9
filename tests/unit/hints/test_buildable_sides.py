"""Buildable sides: Spark's estimate, our estimate and the proven bound of a set of relations, one at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import pytest

from pyjoinopt.catalyst.planner.build_side import JoinConf
from pyjoinopt.cost.size import BROADCAST_HASH, NO_BUILD, SHUFFLE_HASH
from pyjoinopt.estimation.model.relation_statistics import LikelyBound, RelationStatistics
from pyjoinopt.hints.buildable_sides import BuildableSides, BuildableSidesOf
from pyjoinopt.hints.memory_limits import MemoryAllowance
from pyjoinopt.joins.cardinality.estimator import GraphEstimates
from pyjoinopt.plan.expressions import Attribute
from pyjoinopt.plan.nodes import relation
from tests.support.graphs import Builder

LIMIT = 1000.0
SLACK = MemoryAllowance(broadcast=8, hashed=4)
LARGE_BYTES = 1e12


class Known(NamedTuple):
    """A relation with rows of forty bytes: estimated rows, the proven bound, and Spark's estimate."""

    rows: float
    bound: float = math.inf
    spark_bytes: float = LARGE_BYTES


def estimates(relations: Sequence[Known]) -> GraphEstimates:
    builder = Builder([known.rows for known in relations])
    for vertex in range(1, len(relations)):
        builder.equal(0, vertex)
    known = [RelationStatistics(k.rows, k.rows * 40, "test", False, upper_bound=k.bound) for k in relations]
    return GraphEstimates(builder.graph(), known)


def tables(
    *relations: Known, adaptive: float = -1, allowance: MemoryAllowance = SLACK, threshold: float = LIMIT
) -> Callable[[int, float], int]:
    conf, known = JoinConf(threshold, adaptive_threshold=adaptive), estimates(relations)
    sides = BuildableSides([each.spark_bytes for each in relations], conf, allowance)
    return lambda relations, bytes: sides(relations, bytes, known)


def table(known: Known, adaptive: float = -1, allowance: MemoryAllowance = SLACK, threshold: float = LIMIT) -> int:
    """What may be built of one relation."""
    return tables(known, adaptive=adaptive, allowance=allowance, threshold=threshold)(1, known.rows * 40)


@pytest.mark.parametrize(
    ("rows", "bound", "expected"),
    [
        (25, 25, BROADCAST_HASH),  # just fits
        (25, 200, BROADCAST_HASH),  # at most eight times the threshold
        (25, 201, NO_BUILD),
        (25, math.inf, NO_BUILD),
        (26, 26, SHUFFLE_HASH),  # does not fit, but is proved to stay below four times
        (100, 100, SHUFFLE_HASH),
        (100, 101, NO_BUILD),
        (101, 101, NO_BUILD),
        (0, math.inf, NO_BUILD),
    ],
)
def test_what_a_hint_may_build(rows: float, bound: float, expected: int) -> None:
    assert table(Known(rows, bound)) == expected


def test_what_spark_broadcasts_by_itself() -> None:
    """Spark decides by its own estimate, however large the relation is."""
    assert table(Known(1e6, math.inf, LIMIT)) == BROADCAST_HASH
    assert table(Known(1e6, math.inf, LIMIT + 1)) == NO_BUILD
    assert table(Known(1e6, math.inf, 0)) == BROADCAST_HASH


def test_of_joins_spark_believes_the_product() -> None:
    many = Known(1e6, math.inf, 30)
    judge = tables(many, many, many)
    assert [judge(relations, 1e9) for relations in (0b001, 0b011, 0b110, 0b111)] == [
        BROADCAST_HASH, BROADCAST_HASH, BROADCAST_HASH, NO_BUILD,
    ]  # fmt: skip
    empty = Known(1e6, math.inf, 0)
    assert tables(empty, Known(1e6, math.inf, 2000))(0b11, 1e9) == NO_BUILD  # an empty one does not shrink the rest


def test_the_adaptive_habit() -> None:
    """A side that comes out small is hashed once it was shuffled, though nothing is proved of it."""
    unproved = Known(25)
    assert table(unproved, adaptive=LIMIT) == SHUFFLE_HASH
    assert table(unproved, adaptive=LIMIT - 1) == NO_BUILD
    assert table(unproved, adaptive=-1) == NO_BUILD
    assert table(Known(50), adaptive=2 * LIMIT) == SHUFFLE_HASH  # a threshold of its own
    assert table(Known(51), adaptive=2 * LIMIT) == NO_BUILD


def test_without_hints_it_is_what_spark_does() -> None:
    none = MemoryAllowance(0, 0)
    assert table(Known(25, 25), allowance=none) == NO_BUILD
    assert table(Known(25, 25), adaptive=LIMIT, allowance=none) == SHUFFLE_HASH
    assert table(Known(25, 25, LIMIT), allowance=none) == BROADCAST_HASH


def test_with_broadcasting_switched_off_there_is_none() -> None:
    assert table(Known(1, 1, 1), threshold=-1) == NO_BUILD
    assert table(Known(1, 1, 1), adaptive=LIMIT, threshold=-1) == SHUFFLE_HASH  # that has its own


@pytest.mark.parametrize(
    ("conf", "expected"),
    [
        ({}, SHUFFLE_HASH),  # adaptive execution is on, with the threshold of broadcasts
        ({"spark.sql.adaptive.enabled": "false"}, NO_BUILD),
        ({"spark.sql.adaptive.autoBroadcastJoinThreshold": "-1"}, NO_BUILD),
        ({"spark.sql.autoBroadcastJoinThreshold": "999b"}, NO_BUILD),
        ({"spark.sql.autoBroadcastJoinThreshold": "999b", "spark.sql.adaptive.autoBroadcastJoinThreshold": "1000b"}, 1),
    ],
)
def test_by_the_settings_of_a_session(conf: dict[str, str], expected: int) -> None:
    of = BuildableSidesOf({"spark.sql.autoBroadcastJoinThreshold": "1000b", **conf}, lambda _: int(LARGE_BYTES), SLACK)
    plan = relation("t", [Attribute(0, 0, "a")])
    assert of.of([plan])(1, 1000.0, estimates([Known(25)])) == expected


def test_a_bound_by_a_sample_may_be_built() -> None:
    builder = Builder([25.0, 1e6])
    builder.equal(0, 1)
    sampled = RelationStatistics(25.0, 1000.0, "test", False, upper_bound=1e6, likely=LikelyBound(200.0, 8192))
    known = GraphEstimates(builder.graph(), [sampled, RelationStatistics(1e6, 4e7, "test", True, upper_bound=1e6)])
    sides = BuildableSides([LARGE_BYTES, LARGE_BYTES], JoinConf(LIMIT, adaptive_threshold=-1), SLACK)
    assert sides(1, 1000.0, known) == BROADCAST_HASH
    assert known.upper_bound(1) == 1e6 and known.likely_bound(1) == 200
    assert known.rows(1) == pytest.approx(25) and known.likely_bound(2) == 1e6
    assert known.upper_bound(3) == 1e12 and known.likely_bound(3) == 2e8, "nothing is unique"
    assert known.statistics(3).likely == LikelyBound(2e8, 8192)
