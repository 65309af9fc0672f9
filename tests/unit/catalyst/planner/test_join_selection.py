"""The join operator and the build side that Spark would select."""

from __future__ import annotations

import itertools

import pytest

from pyjoinopt.catalyst.planner.join_selection import (
    BROADCAST_HASH,
    CARTESIAN,
    NESTED_LOOP,
    SHUFFLED_HASH,
    SORT_MERGE,
    JoinConf,
    JoinOperator,
    predict_joins,
    select,
    select_join,
)  # fmt: skip
from pyjoinopt.plan.expressions import DETERMINISTIC, SUBQUERY, Expression, call
from pyjoinopt.plan.nodes import Join, LogicalPlan
from tests.support.estimated_tables import TABLES, col, eq, lit

KB, MB, GB = 1e3, 1e6, 1e9
CONF = JoinConf()
OFF = JoinConf(threshold=-1)
HASH = JoinConf(prefer_sort_merge=False)


@pytest.mark.parametrize(
    ("kind", "small_left", "small_right"),
    [
        ("Inner", "left", "right"),
        ("Cross", "left", "right"),
        ("LeftOuter", None, "right"),
        ("RightOuter", "left", None),
        ("FullOuter", None, None),
        ("LeftSemi", None, "right"),
        ("LeftAnti", None, "right"),
        ("ExistenceJoin", None, "right"),
    ],
)
def test_which_side_may_be_broadcast(kind: str, small_left: str | None, small_right: str | None) -> None:
    for sizes, build in (((MB, GB), small_left), ((GB, MB), small_right)):
        expected = JoinOperator(BROADCAST_HASH, build) if build else JoinOperator(SORT_MERGE)
        assert select_join(kind, *sizes, CONF) == expected
        assert select_join(kind, *sizes, OFF) == JoinOperator(SORT_MERGE)
        hint = ("BROADCAST", None) if sizes[0] < sizes[1] else (None, "BROADCAST")
        assert select_join(kind, *sizes, OFF, hint=hint) == expected


def test_both_sides_fit() -> None:
    assert select_join("Inner", MB, MB, CONF).build == "right"
    assert select_join("Inner", KB, MB, CONF).build == "left"
    assert select_join("Inner", MB, KB, CONF).build == "right"
    assert select_join("LeftOuter", KB, MB, CONF).build == "right"
    assert select_join("Inner", 10485760, GB, CONF).name == BROADCAST_HASH
    assert select_join("Inner", 10485761, GB, CONF).name == SORT_MERGE


def test_hints_in_their_order() -> None:
    def pick(left: str | None, right: str | None, kind: str = "Inner") -> JoinOperator:
        return select_join(kind, GB, 2 * GB, CONF, hint=(left, right))

    assert pick("BROADCAST", "SHUFFLE_MERGE") == JoinOperator(BROADCAST_HASH, "left")
    assert pick("BROADCAST", "BROADCAST") == JoinOperator(BROADCAST_HASH, "left")
    assert pick("SHUFFLE_HASH", "SHUFFLE_MERGE") == JoinOperator(SORT_MERGE)
    assert pick("SHUFFLE_HASH", "SHUFFLE_REPLICATE_NL") == JoinOperator(SHUFFLED_HASH, "left")
    assert pick(None, "SHUFFLE_HASH", "FullOuter") == JoinOperator(SHUFFLED_HASH, "right")
    assert pick("SHUFFLE_HASH", None, "LeftSemi") == JoinOperator(SORT_MERGE)  # cannot be built on the left
    assert pick("SHUFFLE_REPLICATE_NL", None) == JoinOperator(CARTESIAN)
    assert pick("SHUFFLE_REPLICATE_NL", None, "LeftOuter") == JoinOperator(SORT_MERGE)
    assert select_join("Inner", KB, GB, CONF, hint=("NO_BROADCAST_HASH", None)) == JoinOperator(SORT_MERGE)
    assert select_join("Inner", KB, GB, CONF, hint=(None, "SHUFFLE_MERGE")) == JoinOperator(SORT_MERGE)


def test_shuffled_hash_by_size() -> None:
    assert select_join("Inner", 4 * GB, GB, HASH) == JoinOperator(SHUFFLED_HASH, "right")
    assert select_join("Inner", 2 * GB, GB, HASH) == JoinOperator(SORT_MERGE)  # not three times smaller
    assert select_join("Inner", 40 * GB, 10 * GB, HASH) == JoinOperator(SORT_MERGE)  # 10 MiB times 200 partitions
    assert select_join("LeftSemi", GB, 4 * GB, HASH) == JoinOperator(SORT_MERGE)
    assert select_join("Inner", 4 * GB, GB, JoinConf(-1, 200, False)) == JoinOperator(SORT_MERGE)


def test_keys_that_cannot_be_sorted_or_hashed() -> None:
    assert select_join("Inner", GB, GB, CONF, sortable=False) == JoinOperator(CARTESIAN)
    assert select_join("LeftOuter", GB, GB, CONF, sortable=False) == JoinOperator(NESTED_LOOP, "right")
    assert select_join("Inner", GB, KB, CONF, hashable=False) == JoinOperator(SORT_MERGE)


def test_sides_that_must_not_be_copied() -> None:
    """NO_BROADCAST_AND_REPLICATION: the other side is copied, whatever its size, and nothing is replicated."""

    def pick(kind: str, left: str | None, right: str | None, **more: object) -> JoinOperator:
        return select_join(kind, KB, GB, CONF, hint=(left, right), **more)  # type: ignore[arg-type]

    never = "NO_BROADCAST_AND_REPLICATION"
    assert pick("Inner", never, None) == JoinOperator(SORT_MERGE)
    assert pick("Inner", never, None, sortable=False) == JoinOperator(NESTED_LOOP, "right")
    assert pick("Inner", never, None, equi=False) == JoinOperator(NESTED_LOOP, "right")
    assert pick("RightOuter", never, None, equi=False) == JoinOperator(NESTED_LOOP, "right")
    assert pick("LeftOuter", None, never, equi=False) == JoinOperator(NESTED_LOOP, "left")
    assert pick("Inner", "SHUFFLE_REPLICATE_NL", never, equi=False) == JoinOperator(NESTED_LOOP, "left")
    assert pick("Inner", "NO_BROADCAST_HASH", None, equi=False) == JoinOperator(NESTED_LOOP, "left")


def test_keys_without_order_and_no_inner_join() -> None:
    """The last resort of an equi-join builds the smaller side, also of an outer join."""
    assert select_join("LeftOuter", KB, GB, OFF, sortable=False) == JoinOperator(NESTED_LOOP, "left")
    assert select_join("LeftOuter", KB, GB, OFF, equi=False) == JoinOperator(NESTED_LOOP, "right")
    assert select_join("LeftSingle", KB, GB, OFF) == JoinOperator(NESTED_LOOP, "right")


def test_not_in() -> None:
    def pick(conf: JoinConf, right: float = GB, **more: object) -> JoinOperator:
        return select_join("LeftAnti", KB, right, conf, False, null_aware=True, **more)  # type: ignore[arg-type]

    hashed = JoinOperator(BROADCAST_HASH, "right")
    assert pick(CONF) == pick(OFF) == pick(OFF, hint=(None, "SHUFFLE_MERGE")) == hashed
    assert pick(JoinConf(-1, null_aware=False)) == JoinOperator(NESTED_LOOP, "right")
    assert pick(JoinConf(-1, null_aware_threshold=1000), 1000) == hashed
    assert pick(JoinConf(-1, null_aware_threshold=1000), 1001) == JoinOperator(NESTED_LOOP, "right")
    assert pick(JoinConf(2000, null_aware_threshold=0), 2000) == hashed
    assert pick(JoinConf(-1, null_aware_threshold=1000), 1001, spark=(4, 1)) == hashed  # no such setting yet


def test_preferring_a_hash_table_is_a_hint_of_older_versions() -> None:
    hint = ("PREFER_SHUFFLE_HASH", None)
    assert select_join("Inner", GB, GB, OFF, hint=hint, spark=(4, 2)) == JoinOperator(SHUFFLED_HASH, "left")
    assert select_join("Inner", KB, GB, CONF, hint=hint, spark=(3, 5)) == JoinOperator(BROADCAST_HASH, "left")
    assert select_join("Inner", GB, GB, OFF, hint=hint) == JoinOperator(SORT_MERGE)


def test_joins_in_plan_order() -> None:
    orders, customers, nations = TABLES["orders"], TABLES["customers"], TABLES["nations"]
    below = Join(customers, nations, "Inner", eq("c_nation", "n_key"))
    semi = Join(customers, nations, "LeftSemi", eq("c_nation", "n_key"))
    question = Expression("ScalarSubquery", (), "int", SUBQUERY | DETERMINISTIC, plan=semi)
    top = Join(orders, below, "LeftOuter", call("And", eq("o_cust", "c_key"), eq(col("o_cust"), question)))
    bytes_of = {"orders": 100 * MB, "customers": MB, "nations": KB}
    sizes = {id(TABLES[name]): size for name, size in bytes_of.items()}
    found = predict_joins(top, {}, lambda leaf: sizes[id(leaf)])
    assert [join for join, _ in found] == [top, below, semi]
    assert [operator for _, operator in found] == [
        JoinOperator(SORT_MERGE),
        *[JoinOperator(BROADCAST_HASH, "right")] * 2,
    ]


def test_deep_plans() -> None:
    plan: LogicalPlan = TABLES["orders"]
    for _ in range(2500):
        plan = Join(plan, TABLES["customers"], "LeftSemi", eq("o_cust", "c_key"))
    assert {operator for _, operator in predict_joins(plan, {})} == {JoinOperator(SORT_MERGE)}


def test_without_equality() -> None:
    def pick(kind: str, left: float, right: float, **more: object) -> JoinOperator:
        return select_join(kind, left, right, CONF, equi=False, **more)  # type: ignore[arg-type]

    assert pick("Inner", GB, GB) == JoinOperator(CARTESIAN)
    assert pick("Inner", GB, KB) == JoinOperator(NESTED_LOOP, "right")
    assert pick("LeftOuter", KB, GB) == JoinOperator(NESTED_LOOP, "left")  # the only side that fits
    assert pick("LeftOuter", KB, KB) == JoinOperator(NESTED_LOOP, "right")
    assert pick("LeftOuter", GB, GB) == JoinOperator(NESTED_LOOP, "right")
    assert pick("RightOuter", GB, GB) == JoinOperator(NESTED_LOOP, "left")
    assert pick("FullOuter", GB, 2 * GB) == JoinOperator(NESTED_LOOP, "left")
    assert pick("Inner", GB, GB, hint=("BROADCAST", None)) == JoinOperator(NESTED_LOOP, "left")
    assert pick("Inner", GB, KB, hint=(None, "SHUFFLE_REPLICATE_NL")) == JoinOperator(CARTESIAN)


def test_joins_of_a_plan() -> None:
    orders, customers = TABLES["orders"], TABLES["customers"]
    key = eq("o_cust", "c_key")
    assert select(Join(orders, customers, "Inner", key), GB, KB, CONF) == JoinOperator(BROADCAST_HASH, "right")
    assert select(Join(customers, orders, "Inner", key), GB, GB, CONF) == JoinOperator(SORT_MERGE)
    ordering = call("LessThan", col("o_cust"), col("c_key"))
    assert select(Join(orders, customers, "Inner", ordering), GB, GB, CONF) == JoinOperator(CARTESIAN)
    one_sided = eq(col("c_key"), lit(3))
    assert select(Join(orders, customers, "Inner", one_sided), GB, GB, CONF) == JoinOperator(CARTESIAN)
    both = call("And", ordering, key)
    assert select(Join(orders, customers, "Inner", both), GB, GB, CONF) == JoinOperator(SORT_MERGE)
    not_in = call("Or", key, call("IsNull", key))
    assert select(Join(orders, customers, "LeftAnti", not_in), GB, GB, CONF) == JoinOperator(BROADCAST_HASH, "right")
    assert select(Join(orders, customers, "LeftSemi", not_in), GB, GB, CONF) == JoinOperator(NESTED_LOOP, "right")
    hinted = Join(orders, customers, "Inner", key, (None, "SHUFFLE_HASH"))
    assert select(hinted, GB, KB, CONF) == JoinOperator(SHUFFLED_HASH, "right")


def test_every_case_has_an_answer() -> None:
    kinds = (
        "Inner",
        "Cross",
        "LeftOuter",
        "RightOuter",
        "FullOuter",
        "LeftSemi",
        "LeftAnti",
        "ExistenceJoin",
        "LeftSingle",
    )
    hints = (None, "BROADCAST", "SHUFFLE_MERGE", "SHUFFLE_HASH", "SHUFFLE_REPLICATE_NL", "NO_BROADCAST_HASH", "NEW_ONE")
    sizes = (1.0, GB)
    for kind, l_hint, r_hint, left, right, equi in itertools.product(kinds, hints, hints, sizes, sizes, (True, False)):
        picked = select_join(kind, left, right, CONF, equi, (l_hint, r_hint))
        assert (picked.build is None) == (picked.name in (SORT_MERGE, CARTESIAN))
        if picked.name == CARTESIAN:
            assert kind in ("Inner", "Cross")
        if kind == "LeftSingle":
            assert picked.name != SORT_MERGE


def test_configuration() -> None:
    conf = JoinConf.of({"spark.sql.autoBroadcastJoinThreshold": "5", "spark.sql.join.preferSortMergeJoin": "false"})
    assert conf.threshold == 5 and not conf.prefer_sort_merge and conf.shuffle_partitions == 200
    assert JoinConf.of({"spark.sql.autoBroadcastJoinThreshold": "many"}).threshold == 10485760
    assert not OFF.fits(0) and CONF.fits(0)
