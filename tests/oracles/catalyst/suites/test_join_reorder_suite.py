"""The cases of Spark's JoinReorderSuite that `test_cost_based_join_reorder` omits: hints in long chains, self joins."""

from __future__ import annotations

from pyjoinopt.plan.nodes import LogicalPlan, Project
from pyjoinopt.plan.traversal import post_order
from tests.oracles.catalyst.suites.support import shape
from tests.support.letters import join, names
from tests.support.made_up_tables import Tables, suite, tree

BROADCAST = ("BROADCAST", None)


def reordered(w: Tables, t: dict[str, LogicalPlan]) -> LogicalPlan:
    """t1, t2, t3, whose best order is ((t1 ⋈ t3) ⋈ t2)."""
    return join(join(t["t1"], t["t2"], w("k1 = k2")), t["t3"], w("v1 = v3"))


def test_a_hint_between_joins_blocks_both_parts() -> None:
    w, t = suite()
    hinted = join(join(join(t["t1"], t["t2"], w("k1 = k2")), t["t4"]), t["t3"], w("v1 = v3"), hint=BROADCAST)
    plan = join(hinted, t["t5"], w("v5 = v3"))
    assert w.optimize(plan) is plan


def test_groups_below_a_hint() -> None:
    w, t = suite()
    below = join(reordered(w, t), t["t4"], hint=BROADCAST)
    result = w.optimize(below)
    assert tree(result) == "(((t1 ⋈ t3) ⋈ t2) ⋈ t4)"
    group = result.children[0]
    assert isinstance(group, Project) and names(group.output) == ["k1", "v1", "k2", "v3"]
    right = w.optimize(join(reordered(w, t), t["t4"], hint=(None, "BROADCAST")))
    assert shape(right) == shape(result)


def test_groups_below_a_hint_in_the_middle() -> None:
    w, t = suite()
    hinted = join(reordered(w, t), t["t4"], w("v4 = v3"), hint=BROADCAST)
    result = w.optimize(join(hinted, t["t5"], w("v5 = v3")))
    assert tree(result) == "((((t1 ⋈ t3) ⋈ t2) ⋈ t4) ⋈ t5)"
    assert names(result.output) == ["k1", "v1", "k2", "v3", "k4", "v4", "k5", "v5"]


def test_a_table_joined_with_itself() -> None:
    w, t = suite()
    again = w.table("t2", 20, "k2_again:5", 240)
    lower = w.project("v1", join(t["t2"], t["t1"], w("k1 = k2")))
    plan = join(lower, again, w("v1 = k2_again"))
    result = w.optimize(plan)
    assert names(result.output) == ["v1", "k2_again"]
    leaves = [node for node in post_order(result) if not node.children]
    assert sorted(map(id, leaves)) == sorted(map(id, (t["t1"], t["t2"], again)))
