"""Hints in queries: their position in the plan and their effect; the strategy cases of Spark's suite of join hints."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pyjoinopt.bridge.decode import Export, decode
from pyjoinopt.catalyst.planner.join_selection import (
    BROADCAST_HASH,
    CARTESIAN,
    NESTED_LOOP,
    SHUFFLED_HASH,
    SORT_MERGE,
    JoinOperator,
)
from tests.oracles.catalyst.planner.spark_planner import joins_of, planned, predicted, settings, version_of
from tests.support.oracle_bridge import oracle_for

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EQUAL, LESS = "t1.key = t2.key", "t1.key < t2.key"
NEVER, ALWAYS = "-1", "100m"


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    made = spark.newSession()
    for name, rows in (("t1", 4), ("t2", 100), ("t3", 1000)):
        made.range(rows).selectExpr("id AS key", f"id * 2 AS value{name[1]}").createOrReplaceTempView(name)
    return made


def optimised(df: DataFrame) -> Export:
    from pyjoinopt.bridge.shim import bridge_for

    shim = bridge_for(df)
    export = decode(oracle_for(df).exportStage(df._jdf, json.dumps({"stage": "optimized"})))
    shim.release(export.handle)
    return export


def left(name: str) -> JoinOperator:
    return JoinOperator(name, "left")


def right(name: str) -> JoinOperator:
    return JoinOperator(name, "right")


@pytest.mark.parametrize(
    ("hints", "join_type", "condition", "threshold", "expected"),
    [
        # A broadcast goes before everything else.
        ("BROADCAST(t1)", "INNER", EQUAL, NEVER, left(BROADCAST_HASH)),
        ("BROADCAST(t2)", "INNER", EQUAL, NEVER, right(BROADCAST_HASH)),
        ("BROADCASTJOIN(t2)", "LEFT", EQUAL, NEVER, right(BROADCAST_HASH)),
        ("MAPJOIN(t1)", "RIGHT", EQUAL, NEVER, left(BROADCAST_HASH)),
        ("BROADCAST(t1, t2)", "INNER", EQUAL, NEVER, left(BROADCAST_HASH)),
        ("BROADCAST(t1, t2)", "LEFT", EQUAL, NEVER, right(BROADCAST_HASH)),
        ("BROADCAST(t1), MERGE(t1, t2)", "INNER", EQUAL, NEVER, left(BROADCAST_HASH)),
        ("BROADCAST(t1), SHUFFLE_HASH(t1, t2)", "INNER", EQUAL, NEVER, left(BROADCAST_HASH)),
        ("BROADCAST(t1), SHUFFLE_REPLICATE_NL(t1, t2)", "INNER", EQUAL, NEVER, left(BROADCAST_HASH)),
        ("MERGE(t1), BROADCAST(t2)", "INNER", EQUAL, NEVER, right(BROADCAST_HASH)),
        # A side that the type forbids is passed over.
        ("BROADCAST(t1)", "LEFT", EQUAL, NEVER, JoinOperator(SORT_MERGE)),
        ("BROADCAST(t2)", "RIGHT", EQUAL, NEVER, JoinOperator(SORT_MERGE)),
        ("BROADCAST(t1)", "FULL", EQUAL, ALWAYS, JoinOperator(SORT_MERGE)),
        ("BROADCAST(t1)", "LEFT SEMI", EQUAL, NEVER, JoinOperator(SORT_MERGE)),
        ("BROADCAST(t1)", "LEFT ANTI", EQUAL, ALWAYS, right(BROADCAST_HASH)),
        # Without keys any side can be broadcast.
        ("BROADCAST(t1)", "INNER", LESS, NEVER, left(NESTED_LOOP)),
        ("BROADCAST(t1)", "LEFT", LESS, NEVER, left(NESTED_LOOP)),
        ("BROADCAST(t2)", "RIGHT", LESS, NEVER, right(NESTED_LOOP)),
        ("BROADCAST(t1, t2)", "INNER", LESS, NEVER, left(NESTED_LOOP)),
        ("BROADCAST(t1, t2)", "FULL", LESS, NEVER, left(NESTED_LOOP)),
        ("BROADCAST(t1, t2)", "LEFT", LESS, NEVER, right(NESTED_LOOP)),
        ("BROADCAST(t1, t2)", "RIGHT", LESS, NEVER, left(NESTED_LOOP)),
        # Sort merge comes second, and needs keys.
        ("MERGE(t1)", "INNER", EQUAL, ALWAYS, JoinOperator(SORT_MERGE)),
        ("SHUFFLE_MERGE(t2)", "LEFT", EQUAL, ALWAYS, JoinOperator(SORT_MERGE)),
        ("MERGE(t1, t2), SHUFFLE_HASH(t1, t2)", "INNER", EQUAL, ALWAYS, JoinOperator(SORT_MERGE)),
        ("MERGE(t1), SHUFFLE_REPLICATE_NL(t2)", "INNER", EQUAL, ALWAYS, JoinOperator(SORT_MERGE)),
        ("MERGE(t1)", "INNER", LESS, NEVER, JoinOperator(CARTESIAN)),
        ("MERGE(t1)", "LEFT", LESS, NEVER, right(NESTED_LOOP)),
        # A hash table on each partition.
        ("SHUFFLE_HASH(t1)", "INNER", EQUAL, ALWAYS, left(SHUFFLED_HASH)),
        ("SHUFFLE_HASH(t2)", "INNER", EQUAL, ALWAYS, right(SHUFFLED_HASH)),
        ("SHUFFLE_HASH(t1, t2)", "INNER", EQUAL, ALWAYS, left(SHUFFLED_HASH)),
        ("SHUFFLE_HASH(t1)", "LEFT", EQUAL, ALWAYS, left(SHUFFLED_HASH)),
        ("SHUFFLE_HASH(t2)", "RIGHT", EQUAL, ALWAYS, right(SHUFFLED_HASH)),
        ("SHUFFLE_HASH(t2)", "FULL", EQUAL, ALWAYS, right(SHUFFLED_HASH)),
        ("SHUFFLE_HASH(t1)", "LEFT SEMI", EQUAL, NEVER, JoinOperator(SORT_MERGE)),
        ("SHUFFLE_HASH(t1), SHUFFLE_REPLICATE_NL(t1, t2)", "INNER", EQUAL, ALWAYS, left(SHUFFLED_HASH)),
        ("SHUFFLE_HASH(t1, t2)", "FULL", LESS, NEVER, left(NESTED_LOOP)),
        # Every pair of partitions: inner joins only.
        ("SHUFFLE_REPLICATE_NL(t1)", "INNER", EQUAL, ALWAYS, JoinOperator(CARTESIAN)),
        ("SHUFFLE_REPLICATE_NL(t2)", "INNER", LESS, ALWAYS, JoinOperator(CARTESIAN)),
        ("SHUFFLE_REPLICATE_NL(t1)", "LEFT", EQUAL, ALWAYS, right(BROADCAST_HASH)),
        ("SHUFFLE_REPLICATE_NL(t1)", "LEFT SEMI", LESS, NEVER, right(NESTED_LOOP)),
    ],
)
def test_strategy(
    session: SparkSession, hints: str, join_type: str, condition: str, threshold: str, expected: JoinOperator
) -> None:
    changes = {"spark.sql.autoBroadcastJoinThreshold": threshold}
    df = session.sql(f"SELECT /*+ {hints} */ t1.key FROM t1 {join_type} JOIN t2 ON {condition}")
    export = optimised(df)
    conf = {**export.conf, **changes, "spark.sql.adaptive.enabled": "false"}
    with settings(session, changes):
        assert planned(session, df._jdf.queryExecution().optimizedPlan()) == [expected]
    assert predicted([export.root], conf, version_of(session)) == [[expected]]


B, M, H, R = "BROADCAST", "SHUFFLE_MERGE", "SHUFFLE_HASH", "SHUFFLE_REPLICATE_NL"


def test_where_hints_arrive(session: SparkSession) -> None:
    one, two, three = (session.table(f"t{i}") for i in (1, 2, 3))
    cases = [
        (one.hint("broadcast").join(two, "key"), [(B, None)]),
        (one.join(two.hint("broadcast"), "key"), [(None, B)]),
        (one.join(two.hint("broadcast").join(three, "key").hint("broadcast"), "key"), [(None, B), (B, None)]),
        (one.hint("broadcast").join(two, "key").hint("broadcast").join(three, "key"), [(B, None), (B, None)]),
        (one.hint("broadcast").filter("key > 1").hint("broadcast").join(two, "key"), [(B, None)]),
        (one.hint("merge").filter("key > 1").hint("shuffle_hash").join(two, "key").hint("broadcast"), [(H, None)]),
        (
            one.join(two.hint("broadcast").limit(2).hint("merge"), "key")
            .hint("shuffle_hash").hint("shuffle_replicate_nl").join(three, "key"),
            [(R, None), (None, M)],
        ),
    ]  # fmt: skip
    for df, expected in cases:
        hints = [join.hint for join in joins_of(optimised(df).root)]
        assert hints == expected
    subtracted = one.select("key").hint("broadcast").subtract(two.select("key")).join(three, "key")
    assert [join.hint for join in joins_of(optimised(subtracted).root)] == [(B, None), (None, None)]
