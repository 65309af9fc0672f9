"""PushExtraPredicateThroughJoin gives the same plans as Catalyst's."""

from __future__ import annotations

import random

from pyjoinopt.catalyst.rules.push_extra_predicate_through_join import push_extra_predicate_through_join
from tests.oracles.catalyst.oracle import Canon, Oracle


def test_beside_catalyst(spark, oracle: Oracle) -> None:
    """Of a join of two relations the sides are the relations: both rules give the same plan."""
    x = spark.createDataFrame([(1, 2, None)], "a int, b int, c int")
    y = spark.createDataFrame([(1, 2, None)], "d int, e int, f int")
    x.createOrReplaceTempView("extra_x"), y.createOrReplaceTempView("extra_y")
    rng, changed = random.Random(7), 0
    for _ in range(90):
        export = oracle.finished(
            spark.sql(f"SELECT * FROM extra_x JOIN extra_y ON a = d AND {_drawn(rng, 3)} AND {_drawn(rng, 2)}")
        )
        before = oracle.applied(export, ["PushDownPredicates", "BooleanSimplification"])
        catalyst = oracle.applied(before, ["PushExtraPredicateThroughJoin"], once=True)
        ours = oracle.built(before, push_extra_predicate_through_join(before.root))
        canon = Canon(a.id for a in before.attributes)
        assert canon.plan(ours.root) == canon.plan(catalyst.root)
        changed += canon.plan(ours.root) != canon.plan(before.root)
    assert changed > 20


def _drawn(rng: random.Random, depth: int) -> str:
    if depth == 0:
        return f"{rng.choice('abcdef')} {rng.choice(['=', '<', '>'])} {rng.randrange(9)}"
    word = rng.choice([" OR ", " AND ", " OR "])
    return f"({word.join(_drawn(rng, depth - 1) for _ in range(2))})"
