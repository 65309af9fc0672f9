"""The walk of a plan is kept on the plan."""

from __future__ import annotations

import gc
import weakref

from pyjoinopt.plan.expressions import Attribute
from pyjoinopt.plan.nodes import Join, LogicalPlan, relation
from pyjoinopt.plan.traversal import post_order


class _Watched(LogicalPlan):
    __slots__ = ("__weakref__",)


def test_every_walk_visits_each_node_once_children_first() -> None:
    a, b = (relation(name, [Attribute(i, i + 1, "k")]) for i, name in enumerate("ab"))
    below = Join(a, b)
    root = Join(below, below)
    for _ in range(2):
        assert list(post_order(root)) == [a, b, below, root]
        assert list(post_order(below)) == [a, b, below]
        assert list(post_order(a)) == [a]


def test_a_cached_plan_is_not_entered() -> None:
    cached = LogicalPlan("Filter", (relation("a", [Attribute(0, 1, "k")]),), info={"cached": True})
    above = LogicalPlan("Distinct", (cached,))
    assert list(post_order(above)) == [cached, above]
    assert list(post_order(cached)) == [cached]


def test_what_is_kept_keeps_no_plan_alive() -> None:
    """A plan must go with its last reference, not with the next run of the garbage collector."""
    plan = _Watched("Distinct", (relation("a", [Attribute(0, 1, "k")]),))
    gone = weakref.ref(plan)
    gc.disable()
    try:
        list(post_order(plan))
        del plan
        assert gone() is None
    finally:
        gc.enable()
