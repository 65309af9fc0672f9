"""PushPredicateThroughJoin: each conjunct to the side of a join that it reads.

A filter over a join and the join's own condition are split by the columns they read:

    join type                filter above it: goes to        its own condition: goes to
    inner, cross             left, right, the condition      left, right
    left semi                left                            left, right
    left outer, left single  left                            right
    left anti, existence     left                            right
    right outer              right                           left
    full outer               nothing                         nothing

What the table does not move remains in its place (of a left single join, whose condition must be kept whole, Spark
moves nothing). A side whose rows survive without a match can take a filter from above but must not lose rows to the
join's own condition; the padded side is the other way round.
"""

from __future__ import annotations

from pyjoinopt.catalyst.support.predicate_helper import can_evaluate_within_join, filtered, rejoined
from pyjoinopt.catalyst.support.pushdown_policy import PushdownPolicy
from pyjoinopt.plan.expressions import Expression, conjuncts
from pyjoinopt.plan.fallible import fallibility
from pyjoinopt.plan.nodes import (
    ANTI,
    EXISTENCE,
    FULL,
    INNER_LIKE,
    LEFT,
    RIGHT,
    SEMI,
    SINGLE,
    Join,
    LogicalPlan,
)  # fmt: skip

_PRESERVES_LEFT = frozenset({LEFT, SINGLE, SEMI, ANTI, EXISTENCE})
_PADS_RIGHT = frozenset({LEFT, SINGLE, ANTI, EXISTENCE})
_KNOWN = INNER_LIKE | _PRESERVES_LEFT | {RIGHT}


def filter_over_join(predicates: list[Expression], join: Join, policy: PushdownPolicy) -> LogicalPlan | None:
    """The join under a filter with these conjuncts, the conjuncts distributed; None if none of them moves."""
    if join.join_type not in _KNOWN:
        return None
    left, right, rest = _split(predicates, join, policy)
    own = [] if join.condition is None else [join.condition]
    if join.join_type in INNER_LIKE:
        within: list[Expression] = []
        outside: list[Expression] = []
        for p in rest:
            merges = _within(p, policy) and not policy.keeps_above(p, conjuncts(join.condition))
            (within if merges else outside).append(p)
        if not (left or right or within):
            return None
        joined = rejoined(join, filtered(left, join.left), filtered(right, join.right), within + own)
        return filtered(outside, joined)
    if join.join_type == RIGHT:
        if not right:
            return None
        return filtered(left + rest, rejoined(join, join.left, filtered(right, join.right), own))
    if not left:
        return None
    return filtered(right + rest, rejoined(join, filtered(left, join.left), join.right, own))


def join_condition(join: Join, policy: PushdownPolicy) -> Join:
    """The join with the one-sided conjuncts of its condition where they belong; the same object if none moves."""
    if join.condition is None or join.join_type == FULL or join.join_type not in _KNOWN:
        return join
    if policy.as_catalyst and join.join_type == SINGLE:
        return join
    left, right, rest = _split(conjuncts(join.condition), join, policy)
    if join.join_type in _PADS_RIGHT:
        left, rest = [], left + rest
    elif join.join_type == RIGHT:
        right, rest = [], right + rest
    if not (left or right) or (not rest and join.join_type in (EXISTENCE, SINGLE)):
        return join  # such a join keeps a condition
    return rejoined(join, filtered(left, join.left), filtered(right, join.right), rest)


def _within(predicate: Expression, policy: PushdownPolicy) -> bool:
    """Whether the condition of an inner join may hold a conjunct from above it."""
    if policy.as_catalyst and fallibility.is_meant_to_throw(predicate):
        return False
    return policy.joinable(predicate) and can_evaluate_within_join(predicate)


def _split(
    predicates: list[Expression], join: Join, policy: PushdownPolicy
) -> tuple[list[Expression], list[Expression], list[Expression]]:
    """(readable on the left alone, on the right alone, the rest)."""
    left: list[Expression] = []
    right: list[Expression] = []
    both: list[Expression] = []
    fixed: list[Expression] = []
    for predicate in predicates:
        reads = policy.reads(predicate)
        if not policy.movable(predicate) or fallibility.is_meant_to_throw(predicate):
            fixed.append(predicate)
        elif not reads & ~join.left.output_set and policy.to_more_rows(predicate):
            left.append(predicate)
        elif not reads & ~join.right.output_set and policy.to_more_rows(predicate):
            right.append(predicate)
        else:
            both.append(predicate)
    return left, right, both + fixed
