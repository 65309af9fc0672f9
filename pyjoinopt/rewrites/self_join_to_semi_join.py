"""A self-join that is only used as an existence check becomes a semi join.

    before  order IN (SELECT a.order FROM sales a JOIN sales b ON a.order = b.order AND a.store <> b.store)
    after   order IN (SELECT a.order FROM sales a LEFT SEMI JOIN sales b ON a.order = b.order AND a.store <> b.store)

An order of twelve sales makes a hundred pairs, and all of them give this one order.

Legal if

* the join is *duplicate-insensitive*: the result does not depend on how often its rows come. That holds of the right
  side of a semi or anti join, of the input of DISTINCT and of GROUP BY with no other aggregates than MIN, MAX and those
  of distinct values, and of what is below these through operators that preserve it (`plan.operator_kinds`);
* nothing above reads a column of one side;
* the condition is movable and cannot throw: Spark may move a semi join below joins that drop rows;
* the join has no hint and is not cached;
* a common table expression is insensitive for all of its readers, and no subquery or cached plan may read it.

Any such join could become a semi join, but few should: Spark builds only the right side of a semi join, and a small
table on the left of a large one is better built. So the unread side must be a copy of a table on the other side, joined
by one of its columns: both sides are equally large, and the join pairs every group of rows with itself.

Source: ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyjoinopt.plan.equi_keys import equal_columns
from pyjoinopt.plan.expressions import SUBQUERY, Attribute, conjuncts, walk
from pyjoinopt.plan.fallible.fallibility import is_movable, may_throw
from pyjoinopt.plan.nodes import (
    ANTI,
    EXISTENCE,
    INNER_LIKE,
    NO_HINT,
    OUTER,
    SEMI,
    Aggregate,
    Filter,
    Join,
    LogicalPlan,
    Project,
)  # fmt: skip
from pyjoinopt.plan.operator_kinds import IGNORES_DUPLICATES
from pyjoinopt.plan.required_columns import needed_columns
from pyjoinopt.plan.rewritten import Rewritten
from pyjoinopt.plan.traversal import post_order
from pyjoinopt.rewrites.lost_columns import without_lost_columns
from pyjoinopt.rewrites.plan_equivalence import without_aliases

#: Functions whose value does not depend on how often a value comes.
_SETS = frozenset({"Min", "Max", "BoolAnd", "BoolOr", "BitAndAgg", "BitOrAgg"})
_JOINS = INNER_LIKE | OUTER


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
    insensitive = _duplicate_insensitive(nodes, definitions)
    needed = needed_columns(plan, definitions=definitions)
    semi_right: dict[int, LogicalPlan] = {}
    for node in nodes:
        if isinstance(node, Join) and insensitive.get(id(node)) and node.join_type in INNER_LIKE:
            side = _unread_copy(node, needed[id(node)])
            if side is not None:
                semi_right[id(node)] = side
    if not semi_right:
        return Rewritten(plan)
    notes = tuple(
        f"a self-join on {n.condition} only looks for a partner: made a semi join"
        for n in nodes
        if isinstance(n, Join) and id(n) in semi_right
    )
    return Rewritten(_rebuilt(nodes, semi_right), notes)


def _duplicate_insensitive(nodes: Sequence[LogicalPlan], definitions: bool) -> Mapping[int, bool]:
    """For each node by id, whether the result is the same however often its rows come."""
    found: dict[int, bool] = {id(nodes[-1]): False}
    read: dict[object, bool] = {}
    for node in reversed(nodes):
        own, name = found[id(node)], node.info.get("cte")
        if node.kind == "CTERelationRef":
            read[name] = own and read.get(name, True)
        elif node.kind == "CTERelationDef":
            own = definitions and read.get(name, False)
        for position, child in enumerate(() if node.cached else node.children):
            loose = _preserves_duplicate_insensitivity(node, position, own)
            found[id(child)] = loose and found.get(id(child), True)
    return found


def _preserves_duplicate_insensitivity(node: LogicalPlan, position: int, own: bool) -> bool:
    """Is a child of `node` duplicate-insensitive, if `node` is (`own`) or is not?"""
    if not all(e.deterministic for e in node.expressions):
        return False
    if isinstance(node, Join):
        if node.join_type in (SEMI, ANTI, EXISTENCE):
            return True if position == 1 else own
        return own and node.join_type in _JOINS
    if isinstance(node, Aggregate):
        called = [e for listed in node.aggregates for e in walk(listed) if e.kind == "AggregateExpression"]
        return all(e.info.get("distinct") or e.info.get("fn") in _SETS for e in called)
    if node.kind == "Distinct" or node.kind in ("Intersect", "Except") and not node.info.get("all", True):
        return True
    if node.kind == "Deduplicate":  # by all columns, as `df.distinct()`: else it would choose among other rows
        return {a.bit for a in node.children[0].output} <= set(node.info.get("keys", ()))
    if node.kind == "WithCTE":
        return own and position == len(node.children) - 1
    return own and (node.kind in IGNORES_DUPLICATES or node.kind == "Union")


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


def _rebuilt(nodes: Sequence[LogicalPlan], semi_right: Mapping[int, LogicalPlan]) -> LogicalPlan:
    """The plan with semi joins, and without what read the columns that are gone."""
    done: dict[int, LogicalPlan] = {}
    narrowed: dict[object, list[int]] = {}  # common table expression -> positions of the columns it still has
    for node in nodes:
        children = tuple(done[id(child)] for child in (() if node.cached else node.children))
        side = semi_right.get(id(node))
        made: LogicalPlan = node
        if side is not None and isinstance(node, Join):
            other = node.left if side is node.right else node.right
            made = Join(done[id(other)], done[id(side)], SEMI, node.condition)
        elif node.kind == "CTERelationRef" and node.info.get("cte") in narrowed:
            output = tuple(node.output[i] for i in narrowed[node.info.get("cte")])
            made = LogicalPlan(node.kind, (), output, (), None, node.origin, {**node.info, "narrowed": True})
        elif not node.cached and any(a is not b for a, b in zip(children, node.children, strict=True)):
            made = without_lost_columns(node, children)
            if node.kind == "CTERelationDef" and made.output != node.output:
                kept = {attribute.bit for attribute in made.output}
                narrowed[node.info.get("cte")] = [i for i, a in enumerate(node.output) if a.bit in kept]
        done[id(node)] = made
    return done[id(nodes[-1])]
