"""Projections around join groups, as Spark has them when its cost-based join reordering runs.

By then ColumnPruning has put an attribute-only projection under every join input with unread columns, and over
every group whose parent reads less than all. CostBasedJoinReorder weighs bytes as well as rows, so its reimplementation
needs them to come to the same choice. This is the part of ColumnPruning that concerns inner joins.
"""

from __future__ import annotations

from pyjoinopt.plan.expressions import reference
from pyjoinopt.plan.nodes import INNER_LIKE, Filter, Join, LogicalPlan, Project
from pyjoinopt.plan.required_columns import needed_columns
from pyjoinopt.plan.traversal import post_order


def prune_join_inputs(plan: LogicalPlan) -> LogicalPlan:
    """The plan with such projections; the very same object if every join reads and gives only what is needed."""
    needed = needed_columns(plan, projections=False)
    done: dict[int, LogicalPlan] = {}
    for node in post_order(plan):
        children = []
        for child in () if node.cached else node.children:
            new = done[id(child)]
            if _inner_join(node) != _inner_join(child):  # an input of a group, or the top of one
                new = _pruned(new, needed[id(child)])
            children.append(new)
        done[id(node)] = node if node.cached else node.with_children(tuple(children))
    return done[id(plan)]


def _inner_join(node: LogicalPlan) -> bool:
    """True for what a group is made of: inner joins and the filters between them."""
    while isinstance(node, Filter) and not node.cached:
        node = node.child
    return isinstance(node, Join) and node.join_type in INNER_LIKE and not node.cached


def _pruned(plan: LogicalPlan, needed: int) -> LogicalPlan:
    kept = tuple(a for a in plan.output if needed >> a.bit & 1)
    if len(kept) == len(plan.output) or not kept or isinstance(plan, Project):
        return plan
    return Project(tuple(map(reference, kept)), plan)
