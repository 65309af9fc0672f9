"""Spark's cost-based join order, on synthetic statistics.

Expected orders, costs and numbers of kept plans are those of Spark's own suite and of an article with four tables,
all of them worked out by hand as well.
"""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyjoinopt.catalyst.rules.cost_based_join_reorder import cost_based_join_reorder, extract_inner_joins
from pyjoinopt.catalyst.rules.join_reorder_dp import JoinReorderDP, better_than
from pyjoinopt.catalyst.support.reordered_join import ReorderedGroup
from pyjoinopt.plan.format import show
from pyjoinopt.plan.nodes import CROSS, INNER, LEFT, Filter, Join, LogicalPlan, Project
from pyjoinopt.plan.traversal import post_order
from tests.support.letters import join, names
from tests.support.made_up_tables import Tables, comma, suite, tree

# -- JoinReorderSuite -----------------------------------------------------------------------------------------------


def test_three_tables() -> None:
    w, t = suite()
    groups: list[ReorderedGroup] = []
    plan = Filter(w("k1 = k2 and v1 = v3"), comma(t["t1"], t["t2"], t["t3"]))
    result = w.optimize(plan, groups)
    assert tree(result) == "((t1 ⋈ t3) ⋈ t2)"
    assert isinstance(result, Project) and names(result.output) == ["k1", "v1", "k2", "v3"]
    (group,) = groups
    assert (group.rows_after, group.bytes_after) == (1000, 20000)
    assert (group.rows_before, group.bytes_before) == (4000, 80000)
    assert group.relations == (t["t1"], t["t2"], t["t3"])


def test_kept_plans() -> None:
    w, t = suite()
    items = [t["t1"], t["t2"], t["t3"]]
    known = [w.known[id(p)] for p in items]
    search = JoinReorderDP(items, known, [w("k1 = k2"), w("v1 = v3")], comma(*items).output_set)
    assert search.run() is not None and search.plans == 6
    items = [t["t1"], t["t4"], t["t2"], t["t3"]]
    known = [w.known[id(p)] for p in items]
    search = JoinReorderDP(items, known, [w("k1 = k4"), w("k1 = k2"), w("v4 = v3")], comma(*items).output_set)
    best = search.run()
    assert best is not None and (best.rows, best.bytes, search.plans) == (6000, 120000, 10)
    assert best.tree == ((0, 2), (1, 3))


def test_a_relation_without_a_condition_comes_last() -> None:
    w, t = suite()
    result = w.optimize(Filter(w("k1 = k2 and v1 = v3"), comma(t["t1"], t["t2"], t["t4"], t["t3"])))
    assert tree(result) == "(((t1 ⋈ t3) ⋈ t2) ⋈ t4)"
    assert names(result.output) == ["k1", "v1", "k2", "k4", "v4", "v3"]


def test_columns_that_nobody_needs_are_dropped_in_between() -> None:
    w, t = suite()
    groups: list[ReorderedGroup] = []
    plan = w.project("v1", Filter(w("k1 = k2 and v1 = v3"), comma(t["t1"], t["t2"], t["t3"])))
    assert show(w.optimize(plan, groups)).splitlines() == [
        "Project v1",
        "  Join Inner (k1 = k2)",
        "    Project k1, v1",
        "      Join Inner (v1 = v3)",
        "        LocalRelation t1",
        "        LocalRelation t3",
        "    LocalRelation t2",
    ]
    assert (groups[0].rows_after, groups[0].bytes_after) == (1000, 16000)


def test_a_projection_can_be_a_relation() -> None:
    w, t = suite()
    pruned = w.project("k5", t["t5"])
    plan = w.project("v1", join(join(t["t1"], pruned, w("k1 = k5")), t["t3"], w("v1 = v3")))
    result = w.optimize(plan)
    assert tree(result) == "((t1 ⋈ t3) ⋈ t5)" and any(node is pruned for node in post_order(result))
    assert names(result.output) == ["v1"]


def test_a_computed_column_in_between_blocks() -> None:
    w, t = suite()
    middle = w.project("v1", join(t["t1"], t["t2"], w("k1 = k2")), w.alias("key", "k1 + k2"))
    plan = w.project("key", join(middle, t["t3"], w("v1 = v3")))
    assert w.optimize(plan) is plan


def test_four_tables_bushy() -> None:
    w, t = suite()
    plan = Filter(w("k1 = k4 and k1 = k2 and v4 = v3"), comma(t["t1"], t["t4"], t["t2"], t["t3"]))
    result = w.optimize(plan)
    assert tree(result) == "((t1 ⋈ t2) ⋈ (t4 ⋈ t3))"
    assert names(result.output) == ["k1", "v1", "k4", "v4", "k2", "v3"]


@pytest.mark.parametrize("columns", list(itertools.permutations(["k1", "v1", "v3"])))
def test_the_best_order_stays_as_it_is(columns: tuple[str, ...]) -> None:
    w, t = suite()
    best = join(join(t["t1"], t["t3"], w("v1 = v3")), t["t2"], w("k1 = k2"))
    plan = w.project(" ".join(columns), best)
    assert w.optimize(plan) is plan


def test_output_order_without_row_counts() -> None:
    w = Tables()
    x, i, a = w.relation("x", "x y"), w.relation("i", "i j"), w.relation("a", "a b")
    plan = join(join(x, i, type=CROSS), a, w("a = x and b = i"))
    result = w.optimize(plan)
    assert tree(result) == "((x ⋈ a) ⋈ i)" and names(result.output) == ["x", "y", "i", "j", "a", "b"]


def test_groups_inside_a_union() -> None:
    w, t = suite()
    inner = w.project("v1", Filter(w("k1 = k2 and v1 = v3"), comma(t["t1"], t["t2"], t["t3"])))
    other = w.project("v4", t["t4"])
    union = LogicalPlan("Union", (inner, other), inner.output)
    result = w.optimize(join(union, t["t5"], w("v1 = v5")))
    assert tree(result) == "(Union[((t1 ⋈ t3) ⋈ t2), t4] ⋈ t5)"


def test_hints_block_the_group_they_are_in() -> None:
    w, t = suite()
    broadcast = ("BROADCAST", None)
    left, right = join(t["t1"], t["t2"], w("k1 = k2")), join(t["t4"], t["t3"], w("v4 = v3"))
    plan = join(left, right, w("k1 = k4"), hint=("BROADCAST", "BROADCAST"))
    assert w.optimize(plan) is plan
    chain = join(
        join(join(t["t1"], t["t2"], w("k1 = k2"), hint=broadcast), t["t4"], w("k1 = k4"), hint=broadcast),
        t["t3"],
        w("v4 = v3"),
    )
    assert w.optimize(chain) is chain


def test_hints_do_not_block_the_groups_below_and_above() -> None:
    w, t = suite()
    below = Filter(w("k1 = k2 and v1 = v3"), comma(t["t1"], t["t2"], t["t3"]))
    hinted = join(below, t["t4"], w("k1 = k4"), hint=("BROADCAST", None))
    assert tree(w.optimize(hinted)) == "(((t1 ⋈ t3) ⋈ t2) ⋈ t4)"
    above = join(hinted, t["t5"], w("v5 = v3"))
    assert tree(w.optimize(above)) == "((((t1 ⋈ t3) ⋈ t2) ⋈ t4) ⋈ t5)"


def test_better_than() -> None:
    a, b = (300, 80), (500, 30)
    assert better_than(*a, *b) and not better_than(*b, *a)
    assert not better_than(*a, *a) and not better_than(*b, *b)
    assert not better_than(1, 1, 0, 5) and not better_than(1, 1, 5, 0)


@given(*[st.integers(1, 10**30) for _ in range(4)], st.floats(0, 1))
def test_better_than_is_antisymmetric(a: int, b: int, c: int, d: int, weight: float) -> None:
    """But for rounding: of two that cost the same, Spark's powers may call each the better one, and so may ours."""
    difference = weight * math.log(a / c) + (1 - weight) * math.log(b / d)
    if abs(difference) > 1e-9:
        assert better_than(a, b, c, d, weight) is (difference < 0)
        assert better_than(c, d, a, b, weight) is (difference > 0)


# -- when it does not fire ------------------------------------------------------------------------------------------


def test_conditions_for_firing() -> None:
    w, t = suite()
    plan = join(join(t["t1"], t["t2"], w("k1 = k2")), t["t3"], w("v1 = v3"))
    assert cost_based_join_reorder(plan, w.statistics) is not plan
    assert cost_based_join_reorder(plan, w.statistics, conf={"spark.sql.cbo.joinReorder.dp.threshold": "2"}) is plan
    assert cost_based_join_reorder(plan, lambda item: None) is plan
    del w.known[id(t["t2"])]
    assert cost_based_join_reorder(plan, w.statistics) is plan
    two_only = join(t["t1"], t["t3"], w("v1 = v3"))
    assert cost_based_join_reorder(two_only, w.statistics) is two_only
    cached = Join(plan.left, plan.right, INNER, plan.condition, info={"cached": True})
    assert cost_based_join_reorder(cached, w.statistics) is cached


def test_no_part_of_a_group_is_tried_alone() -> None:
    w = Tables()
    small = [w.table(f"s{i}", 10, f"a{i}:10 b{i}:10") for i in range(13)]
    big = w.table("big", 10**6, "x:10 y:10")
    plan: LogicalPlan = join(small[0], big, w("a0 = x"))
    for i in range(1, 13):
        plan = join(plan, small[i], w(f"b{i - 1} = a{i}"))
    assert len(extract_inner_joins(plan)[0]) == 14
    assert cost_based_join_reorder(plan, w.statistics) is plan
    outer = join(plan, w.table("last", 1, "z:1"), w("z = y"), LEFT)
    assert cost_based_join_reorder(outer, w.statistics) is outer


def test_unconnected_relations_stay() -> None:
    w, t = suite()
    plan = join(join(t["t1"], t["t2"], w("k1 > 5")), t["t3"], w("v1 = v3"))
    assert cost_based_join_reorder(plan, w.statistics) is plan


# -- four tables of an article: 5000, 1500, 800 and 200 rows, all joined on one key ----------------------------------


def test_the_small_tables_come_first() -> None:
    w = Tables()
    vb = w.table("very_big", 5000, "vb:5000")
    b, s1, s2 = w.table("big", 1500, "b:1500"), w.table("small1", 800, "s1:800"), w.table("small2", 200, "s2:200")
    groups: list[ReorderedGroup] = []
    plan = join(join(join(vb, b, w("vb = b")), s1, w("vb = s1")), s2, w("vb = s2"))
    result = w.optimize(plan, groups)
    assert tree(result) == "(((very_big ⋈ small2) ⋈ small1) ⋈ big)"
    assert names(result.output) == ["vb", "b", "s1", "s2"]
    # very_big ⋈ big is 1500 rows of 16 bytes, with small1 800 of 20; with small2 it is 200 of 16, then 200 of 20.
    assert (groups[0].rows_before, groups[0].bytes_before) == (1500 + 800, 1500 * 16 + 800 * 20)
    assert (groups[0].rows_after, groups[0].bytes_after) == (200 + 200, 200 * 16 + 200 * 20)
