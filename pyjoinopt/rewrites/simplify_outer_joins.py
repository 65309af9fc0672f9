"""Outer joins whose padded rows some operator further up drops become narrower, wherever that operator is.

    before  (a LEFT JOIN b ON a.k = b.k) JOIN c ON b.x = c.x
    after   (a JOIN b ON a.k = b.k) JOIN c ON b.x = c.x

The second join keeps no row with b.x NULL. EliminateOuterJoin only looks at a filter directly above the outer join;
this rule propagates *strict* columns from the root: those of which some operator above drops every row that holds NULL.
An outer join whose padded side has a strict column needs no padding. Going down,

    operator            strict columns of its inputs
    inner join          those of its output, and those that its condition rejects
    left join           left: those of its output; right: those that its condition rejects
    full join           none
    semi join           left: those of its output and of its condition; right: of its condition
    anti join           left: those of its output
    filter              those of its output, and those that its condition rejects
    projection          kept columns; a column computed by null-intolerant functions makes what it reads strict
    aggregate           grouping columns
    what passes filters those of its output (`plan.operator_kinds`: aliases, views, sorts, DISTINCT, ...)
    anything else       none

Legal if

* no nondeterministic expression is between: with fewer rows below, rand() would keep others;
* no sensitive predicate reads a column of the null-supplying side: once the join is inner, the predicate sinks to the
  relation, and the join's equality copies it to the other side;
* the join's condition cannot throw, and reads no guarded column;
* the join is not cached.

Source: C. Galindo-Legaria, A. Rosenthal: *Outerjoin Simplification and Reordering for Query Optimization*, TODS 1997;
PostgreSQL's `reduce_outer_joins`. Spark gets part of the way by inferring IS NOT NULL filters and pushing them down.
"""

from __future__ import annotations

from pyjoinopt.plan.expressions import Expression, conjuncts, describe
from pyjoinopt.plan.facts.equality_substitution import null_supplied, null_supplied_by_guarded, sensitive_columns
from pyjoinopt.plan.facts.null_rejection import NULL, outcomes, rejects_nulls
from pyjoinopt.plan.fallible.fallibility import may_throw
from pyjoinopt.plan.nodes import (
    ANTI,
    CROSS,
    EXISTENCE,
    FULL,
    INNER,
    LEFT,
    OUTER,
    RIGHT,
    SEMI,
    SINGLE,
    Aggregate,
    Filter,
    Join,
    LogicalPlan,
    Project,
)  # fmt: skip
from pyjoinopt.plan.operator_kinds import PASSES_FILTERS
from pyjoinopt.plan.relation_names import relation_name
from pyjoinopt.plan.rewritten import Rewritten
from pyjoinopt.plan.traversal import post_order
from pyjoinopt.util.bitset import members

#: Strict column (bit) -> the predicate that throws its NULLs away.
Strict = dict[int, Expression]

_WORDS = {LEFT: "left", RIGHT: "right", FULL: "full", INNER: "inner"}


def demote_outer_join(plan: LogicalPlan, *, sensitive: int | None = None) -> Rewritten:
    """Give each outer join the narrowest type that gives the same rows after what is above it.

    Args:
        plan: any plan; cached sub-plans are left as they are.
        sensitive: see `sensitive_columns`, of a plan that this one is a part of; by default of this one.

    Returns:
        The plan, the very same object if no join changed, and a note for every join that did.
    """
    nodes = list(post_order(plan))
    if not any(isinstance(node, Join) and node.join_type in (LEFT, RIGHT, FULL) for node in nodes):
        return Rewritten(plan)
    if sensitive is None:
        sensitive = sensitive_columns(nodes)
    guarded = null_supplied_by_guarded(nodes, sensitive)
    strict: dict[int, Strict] = {id(plan): {}}
    types: dict[int, str] = {}
    for node in reversed(nodes):
        above = strict.get(id(node), {})
        if isinstance(node, Join):
            unchanged = node.cached or node.join_type not in OUTER or _is_guarded(node, sensitive, guarded)
            types[id(node)] = node.join_type if unchanged else _narrowest(node, above)
        for child, columns in zip(node.children, _below(node, above, types.get(id(node), "")), strict=not node.cached):
            kept = {bit: why for bit, why in columns.items() if child.output_set >> bit & 1}
            seen = strict.get(id(child))  # under a second parent: only what both throw away
            strict[id(child)] = kept if seen is None else {bit: kept[bit] for bit in seen.keys() & kept.keys()}
    changed: dict[int, str] = {}
    notes = []
    for node in nodes:
        if isinstance(node, Join) and types[id(node)] != node.join_type:
            why = next(p for bit, p in strict[id(node)].items() if _pads(node, bit))
            changed[id(node)] = types[id(node)]
            notes.append(
                f"{_WORDS[node.join_type]} join of {relation_name(node.left)} and {relation_name(node.right)} "
                f"became {_WORDS[types[id(node)]]}: {describe(why)} rejects NULLs"
            )
    return Rewritten(_with_types(plan, nodes, changed) if changed else plan, tuple(notes))


def _is_guarded(join: Join, sensitive: int, guarded: int) -> bool:
    """True if an inner join in the place of an outer one could make a predicate fail, or keep other rows.

    * A sensitive predicate on the null-supplying side sinks to the relation once the join is inner, and the join's
      equality copies it to the other side.
    * A fallible conjunct of the join's own condition is tested pair by pair; of an inner join Spark pushes it down.
    * An inner join's condition rejects NULLs: Spark would turn a guarded outer join below it into an inner one.
    """
    if null_supplied(join) & sensitive:
        return True
    return join.condition is not None and (may_throw(join.condition) or bool(join.condition.references & guarded))


def _with_types(plan: LogicalPlan, nodes: list[LogicalPlan], changed: dict[int, str]) -> LogicalPlan:
    done: dict[int, LogicalPlan] = {}
    for node in nodes:
        new = node if node.cached else node.with_children(tuple(done[id(child)] for child in node.children))
        if isinstance(new, Join) and id(node) in changed:
            new = new.with_type(changed[id(node)])
        done[id(node)] = new
    return done[id(plan)]


def _narrowest(join: Join, strict: Strict) -> str:
    left = any(join.left.output_set >> bit & 1 for bit in strict)
    right = any(join.right.output_set >> bit & 1 for bit in strict)
    match join.join_type:
        case "LeftOuter":
            return INNER if right else LEFT
        case "RightOuter":
            return INNER if left else RIGHT
        case "FullOuter":
            return INNER if left and right else LEFT if left else RIGHT if right else FULL
    return join.join_type


def _pads(join: Join, bit: int) -> bool:
    """True if the column is on a side that the join pads."""
    on_left = bool(join.left.output_set >> bit & 1)
    return join.join_type == FULL or on_left == (join.join_type == RIGHT)


def _below(node: LogicalPlan, above: Strict, join_type: str) -> tuple[Strict, ...]:
    """Strict columns of each child; columns that a child does not have are dropped by the caller."""
    if node.cached:
        return ()
    if isinstance(node, (Filter, Join)) and node.condition is not None and not node.condition.deterministic:
        return tuple({} for _ in node.children)  # with other rows below, rand() keeps others
    if isinstance(node, Join):
        return _below_join(node, above, join_type)
    if isinstance(node, Filter):
        return ({**above, **_rejected(node.condition)},)
    if isinstance(node, Project):
        return (_through_projection(node, above),)
    if isinstance(node, Aggregate):
        return ({bit: why for bit, why in above.items() if bit in _grouped(node)},)
    if node.kind in PASSES_FILTERS:
        return (above,)
    return tuple({} for _ in node.children)


def _below_join(node: Join, above: Strict, join_type: str) -> tuple[Strict, Strict]:
    own = _rejected(node.condition)
    match join_type:
        case t if t in (INNER, CROSS):
            return {**above, **own}, {**above, **own}
        case t if t == LEFT or t == SINGLE:
            return above, own
        case t if t == RIGHT:
            return own, above
        case t if t == SEMI:
            return {**above, **own}, own
        case t if t in (ANTI, EXISTENCE):
            return above, {}
    return {}, {}


def _rejected(condition: Expression | None) -> Strict:
    """The columns for which NULL is never kept by a condition, with the conjunct that sees to it."""
    found: Strict = {}
    for predicate in conjuncts(condition):
        for bit in members(predicate.references):
            if bit not in found and rejects_nulls(predicate, 1 << bit):
                found[bit] = predicate
    return found


def _through_projection(node: Project, above: Strict) -> Strict:
    below: Strict = {}
    if not all(e.deterministic for e in node.projections):
        return below  # with other rows below, rand() gives other values
    for e in node.projections:
        if e.attribute is None or e.attribute.bit not in above:
            continue
        why = above[e.attribute.bit]
        if e.kind == "AttributeReference":
            below[e.attribute.bit] = why
        elif e.kind == "Alias":
            below |= {bit: why for bit in members(e.references) if outcomes(e, 1 << bit) == NULL}
    return below


def _grouped(node: Aggregate) -> set[int]:
    """Grouping columns that the output has under the same id."""
    return {g.attribute.bit for g in node.grouping if g.kind == "AttributeReference" and g.attribute is not None}
