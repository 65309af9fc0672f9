"""PushDownPredicates: every conjunct as far down as it may go.

Three Catalyst rules in one walk from the root: adjacent filters are merged (`combine_filters`), a filter passes
operators with one child and unions (`push_predicate_through_non_join`), and a filter over a join and the join's own
condition are split by the columns they read (`push_predicate_through_join`). Each opens the way for the others; done
in one walk, a filter at the top of a chain of joins is at its table after a single pass.

    SELECT * FROM (SELECT a, b + 1 AS c FROM t) JOIN u ON a = d WHERE c > 5 AND e = 1

    Filter (c > 5 AND e = 1)                Join (a = d)
      Join (a = d)                            Project a, b + 1 AS c
        Project a, b + 1 AS c     becomes       Filter (b + 1 > 5)
          t                                       t
        u                                     Filter (e = 1)
                                                u
"""

from __future__ import annotations

from collections import deque

from pyjoinopt.catalyst.rules.combine_filters import Combined
from pyjoinopt.catalyst.rules.push_predicate_through_join import filter_over_join, join_condition
from pyjoinopt.catalyst.rules.push_predicate_through_non_join import pushed_into_branches, through
from pyjoinopt.catalyst.support.predicate_helper import filtered
from pyjoinopt.catalyst.support.pushdown_policy import COMBINE, JOIN, NON_JOIN, PARTS, PushdownPolicy
from pyjoinopt.plan.expressions import Expression, conjuncts
from pyjoinopt.plan.nodes import Filter, Join, LogicalPlan
from pyjoinopt.plan.traversal import transform_down


def push_down_predicates(
    plan: LogicalPlan, *, as_catalyst: bool = False, avoid_double_evaluation: bool = True,
    parts: frozenset[str] = PARTS,
) -> LogicalPlan:  # fmt: skip
    """Move filters and one-sided join conditions towards the leaves.

    Args:
        plan: any plan; cached sub-plans are left as they are, and no filter is pushed into one.
        as_catalyst: move whatever Catalyst moves. By default Python UDFs and outer references are not moved, and what
            may fail is not evaluated on rows that it did not meet.
        avoid_double_evaluation: a conjunct over a computed column remains above the projection that computes it if that
            is costly (Spark 4.2's `spark.sql.optimizer.avoidDoubleFilterEval`).
        parts: which of Catalyst's three rules run, by name.

    Returns:
        The plan, the very same object if nothing moved.
    """
    policy = PushdownPolicy(as_catalyst, avoid_double_evaluation, parts)

    def at(node: LogicalPlan) -> LogicalPlan:
        if node.cached:
            return node
        if isinstance(node, Join):
            return join_condition(node, policy) if JOIN in parts else node
        return _descend(node, policy) if isinstance(node, Filter) else node

    return transform_down(plan, at)


def _descend(top: Filter, policy: PushdownPolicy) -> LogicalPlan:
    """Carry the conjuncts of `top` down until nothing lets them pass; pick up other filters on the way.

    One descent instead of one step a pass: on a tower of two thousand filters that is the difference between linear
    and quadratic time.
    """
    pending = deque(conjuncts(top.condition))
    combined = Combined()
    passed: list[tuple[LogicalPlan | None, list[Expression]]] = []
    lowest: Filter | None = top  # the filter that has exactly the conjuncts `pending`, over `below`
    below = top.child
    while not below.cached and below.kind != "Union":
        if (COMBINE if isinstance(below, Filter) else NON_JOIN) not in policy.parts:
            break
        if isinstance(below, Filter):
            passage = combined.with_lower(pending, below, policy)
            if passage is None:
                break
            lowest = None if passage.changed else below
            passed.append((None, passage.above))
        else:
            passage = through(pending, below, policy)
            if passage is None or not passage.below:
                break
            if passage.above or passage.changed:
                combined.forget()
            lowest = None
            passed.append((below, passage.above))
        pending = passage.below
        below = below.children[0]
    result = _rest(pending, lowest, below, policy)
    for node, above in reversed(passed):
        result = filtered(above, result if node is None else node.with_children((result,)))
    return result


def _rest(pending: deque[Expression], lowest: Filter | None, below: LogicalPlan, policy: PushdownPolicy) -> LogicalPlan:
    """What becomes of conjuncts that got as far as `below`."""
    if isinstance(below, Join) and not below.cached:
        split = filter_over_join(list(pending), below, policy) if JOIN in policy.parts else None
        if split is not None:
            return split
    elif below.kind == "Union" and not below.cached and NON_JOIN in policy.parts:
        passage = through(pending, below, policy)
        if passage is not None and passage.below:
            return filtered(passage.above, pushed_into_branches(passage.below, below))
    return lowest if lowest is not None else filtered(list(pending), below)
