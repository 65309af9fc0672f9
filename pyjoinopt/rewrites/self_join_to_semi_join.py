"""A self-join that is only used as an existence check becomes a semi join.

    before  order IN (SELECT a.order FROM sales a JOIN sales b ON a.order = b.order AND a.store <> b.store)
    after   order IN (SELECT a.order FROM sales a LEFT SEMI JOIN sales b ON a.order = b.order AND a.store <> b.store)

An order of twelve sales makes a hundred pairs, and all of them give this one order.

Legal if

* the join is *duplicate-insensitive*: the result does not depend on how often its rows come
  (`plan.facts.duplicate_insensitivity`);
* nothing above reads a column of one side;
* the condition is movable and cannot throw: Spark may move a semi join below joins that drop rows;
* the join has no hint and is not cached;
* a common table expression is insensitive for all of its readers, and no subquery or cached plan may read it.

Any such join could become a semi join, but few should: Spark builds only the right side of a semi join, and a small
table on the left of a large one is better built (`inner_to_semi_joins` compares the costs). Here the unread side must
be a copy of a table on the other side, joined by one of its columns: both sides are equally large, and the join pairs
every group of rows with itself, so that no costs need to be compared.

Source: ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from pyjoinopt.plan.equi_keys import equal_columns
from pyjoinopt.plan.expressions import SUBQUERY, Attribute, conjuncts
from pyjoinopt.plan.facts.duplicate_insensitivity import duplicate_insensitive
from pyjoinopt.plan.fallible.fallibility import is_movable, may_throw
from pyjoinopt.plan.nodes import INNER_LIKE, NO_HINT, SEMI, Filter, Join, LogicalPlan, Project
from pyjoinopt.plan.operator_kinds import without_aliases
from pyjoinopt.plan.outer_references import has_outer_references
from pyjoinopt.plan.required_columns import needed_columns
from pyjoinopt.plan.rewritten import Rewritten
from pyjoinopt.plan.traversal import post_order
from pyjoinopt.rewrites.lost_columns import Replacement, with_replacements

NAME = "self_join_to_semi_join"


def self_join_as_semi(plan: LogicalPlan) -> Rewritten:
    """Turn self-joins that are only used as existence checks into semi joins.

    Args:
        plan: a plan with its predicates pushed down.

    Returns:
        The plan, the very same object if no join changed, and a note for every join that did.
    """
    nodes = list(post_order(plan))
    if not any(isinstance(node, Join) and node.join_type in INNER_LIKE for node in nodes):
        return Rewritten(plan)
    # What a subquery or a cached plan reads of a common table expression is not seen here.
    definitions = not any(n.cached or any(e.contains & SUBQUERY for e in n.expressions) for n in nodes)
    insensitive = duplicate_insensitive(nodes, definitions)
    needed = needed_columns(plan, definitions=definitions)
    semi_joins: dict[int, Replacement] = {}
    for node in nodes:
        if isinstance(node, Join) and insensitive.get(id(node)) and node.join_type in INNER_LIKE:
            side = _unread_copy(node, needed[id(node)])
            if side is not None and not has_outer_references(post_order(side)):
                semi_joins[id(node)] = partial(_semi_join, node, side)
    if not semi_joins:
        return Rewritten(plan)
    notes = tuple(
        f"a self-join on {n.condition} only looks for a partner: made a semi join"
        for n in nodes
        if isinstance(n, Join) and id(n) in semi_joins
    )
    return Rewritten(with_replacements(nodes, semi_joins), notes)


def _semi_join(join: Join, unread: LogicalPlan, done: Mapping[int, LogicalPlan]) -> LogicalPlan:
    other = join.left if unread is join.right else join.right
    return Join(done[id(other)], done[id(unread)], SEMI, join.condition)


def _unread_copy(join: Join, needed: int) -> LogicalPlan | None:
    """The side of an inner join whose columns are not read, if it is a copy of a table on the other side."""
    if join.hint != NO_HINT or join.cached:
        return None
    if not all(is_movable(p) and not may_throw(p) for p in conjuncts(join.condition)):
        return None  # a semi join may be moved down to rows that other joins take away
    for side, other in ((join.right, join.left), (join.left, join.right)):
        if not needed & side.output_set and _is_copy(join, side, other):
            return side
    return None


def _is_copy(join: Join, side: LogicalPlan, other: LogicalPlan) -> bool:
    """Is `side` a table that is joined with itself by some column?"""
    table = without_aliases(side)
    while isinstance(table, Filter) or (isinstance(table, Project) and table.only_attributes):
        table = without_aliases(table.child)
    number = None if table.children else table.info.get("alike")
    if number is None:
        return False
    place = {attribute.bit: i for i, attribute in enumerate(table.output)}
    copies = [node for node in post_order(other) if node.info.get("alike") == number and not node.children]
    equated = list(equal_columns(join.condition))
    return any(
        _same_place(pair, place, copy.output) or _same_place(pair[::-1], place, copy.output)
        for copy in copies
        for pair in equated
    )


def _same_place(pair: Sequence[Attribute], place: Mapping[int, int], copy: Sequence[Attribute]) -> bool:
    mine, theirs = pair
    return mine.bit in place and copy[place[mine.bit]].bit == theirs.bit
