"""PushExtraPredicateThroughJoin: each relation is filtered by what an OR over several implies.

    a JOIN b ON a.k = b.k AND ((a.x = 1 AND b.y = 2) OR (a.x = 3 AND b.y = 4))
    Filter (a.x = 1 OR a.x = 3) a  JOIN  Filter (b.y = 2 OR b.y = 4) b  ON ... the same condition

The condition is kept; what follows from it (`plan.facts.or_extraction`) only makes the sides smaller. Spark does so
right before it looks for an order, so an estimate of a relation without these filters is many times too large: two
nations of twenty-five, or three of seventy kinds of customers.

Two departures from Catalyst's rule. It filters the two *sides* of a join, which depend on how the query is written;
here each relation below is filtered by what follows for it alone, however the joins are written. Spark adds its own
afterwards, and none that is there already. And only inner joins count, because only they are ordered.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyjoinopt.catalyst.support.predicate_helper import filtered
from pyjoinopt.plan.expressions import Expression, conjuncts
from pyjoinopt.plan.facts.or_extraction import extract_predicate_within, top_filters
from pyjoinopt.plan.nodes import ANTI, INNER_LIKE, LEFT, RIGHT, SEMI, Filter, Join, LogicalPlan, Project
from pyjoinopt.plan.operator_kinds import is_only_a_name
from pyjoinopt.plan.traversal import parents_of, post_order

#: Join types that keep rows of their left side as they are.
_KEEPS_LEFT = INNER_LIKE | {LEFT, SEMI, ANTI}


def push_extra_predicate_through_join(plan: LogicalPlan) -> LogicalPlan:
    """The plan with such filters on the relations of its inner joins; `plan` itself if there are none."""
    nodes = list(post_order(plan))
    parents = parents_of(nodes)
    implied: dict[int, list[Expression]] = {}
    for node in nodes:
        if not isinstance(node, Join) or node.join_type not in INNER_LIKE or node.cached:
            continue
        alternatives = [e for e in conjuncts(node.condition) if e.kind == "Or"]
        for relation in _relations(node, parents) if alternatives else ():
            found = implied.setdefault(id(relation), [])
            known = {e.key for e in top_filters(relation)} | {e.key for e in found}
            parts = [extract_predicate_within(e, relation.output_set) for e in alternatives]
            found[:0] = [e for e in parts if e is not None and e.key not in known]  # the topmost first, as Spark tests
    if not any(implied.values()):
        return plan
    done: dict[int, LogicalPlan] = {}
    for node in nodes:
        made = node if node.cached else node.with_children(tuple(done[id(c)] for c in node.children))
        done[id(node)] = filtered(implied.get(id(node), ()), made)
    return done[id(plan)]


def _relations(join: Join, parents: dict[int, list[LogicalPlan]]) -> Iterator[LogicalPlan]:
    """The relations below an inner join, through the joins, filters and names that a filter could be pushed through.

    Nothing that is read elsewhere, too: the other reader must not lose rows.
    """
    stack: list[LogicalPlan] = [join.right, join.left]
    while stack:
        node = stack.pop()
        if len(parents[id(node)]) > 1:
            continue
        below = node
        while _looked_through(below) and len(parents[id(below.children[0])]) == 1:
            (below,) = below.children
        if not isinstance(below, Join) or below.cached:
            yield node
        elif below.join_type in _KEEPS_LEFT:
            stack += [below.right, below.left] if below.join_type in INNER_LIKE else [below.left]
        elif below.join_type == RIGHT:
            stack.append(below.right)


def _looked_through(node: LogicalPlan) -> bool:
    if node.cached:
        return False
    if isinstance(node, Filter):
        return node.condition.deterministic
    return is_only_a_name(node) or (isinstance(node, Project) and node.only_attributes)
