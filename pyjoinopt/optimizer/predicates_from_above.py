"""What Spark moves down to a join group from filters above other operators.

    SELECT a.x, b.y, count(*) FROM a JOIN c ON a.k = c.k JOIN b ON a.k = b.k GROUP BY a.x, b.y HAVING udf(a.x, b.y)

Predicate push-down runs before the groups are found. It leaves a predicate with a Python UDF where it was written,
and so one that may fail behind it. Spark moves both of them, here below the aggregate and to the lowest join that has
`a` and `b`. In another order that join may have rows that the written order drops before, and for these the UDF was
never evaluated. So a group has to know what will arrive.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from pyjoinopt.catalyst.rules.push_predicate_through_non_join import through
from pyjoinopt.catalyst.support.pushdown_policy import PushdownPolicy
from pyjoinopt.plan.constructors import aggregate
from pyjoinopt.plan.equi_keys import equalities
from pyjoinopt.plan.expressions import PYTHON_UDF, TRUE, Expression, reference, substitute
from pyjoinopt.plan.fallible.fallibility import may_throw
from pyjoinopt.plan.lateral_joins import LATERAL, predicates_of
from pyjoinopt.plan.nodes import ANTI, SEMI, Aggregate, Filter, Join, LogicalPlan, Project
from pyjoinopt.plan.operator_kinds import HINTS
from pyjoinopt.plan.outer_references import row_references

_AS_CATALYST = PushdownPolicy(as_catalyst=True)
#: What Spark replaces by operators that predicates pass, to each of their inputs.
_SETS = frozenset({"Union", "Intersect", "Except"})
#: What Spark replaces by joins.
_BECOME_JOINS = frozenset({LATERAL, "AsOfJoin"})


def predicates_from_above(nodes: Sequence[LogicalPlan]) -> dict[int, list[Expression]]:
    """Id of a node -> what Spark moves down to it of predicates that may fail, or call a Python UDF.

    Predicates of a filter or join directly above it are among these. Where it is not clear how far Spark moves a
    predicate, it counts as moved.

    Args:
        nodes: of a plan, children before parents.
    """
    own = {id(n): found for n in nodes if not n.cached and (found := [p for p in predicates_of(n) if _counts(p)])}
    if not own:
        return {}
    definitions = {n.info.get("cte"): n for n in nodes if n.kind == "CTERelationDef"}
    arriving = _moved_down(nodes, own)
    for _ in definitions:  # one reads only those before it, so this is the longest way
        read = _read_by_references(nodes, definitions, arriving)
        arriving = _moved_down(nodes, {key: [*own.get(key, ()), *read.get(key, ())] for key in {*own, *read}})
    return arriving


def _counts(predicate: Expression) -> bool:
    return predicate.deterministic and (bool(predicate.contains & PYTHON_UDF) or may_throw(predicate))


def _moved_down(nodes: Sequence[LogicalPlan], own: Mapping[int, list[Expression]]) -> dict[int, list[Expression]]:
    arriving: dict[int, list[Expression]] = {}
    for node in reversed(nodes):
        pending = [*arriving.get(id(node), ()), *own.get(id(node), ())]
        if not pending or node.cached:
            continue
        for child, moved in zip(node.children, _below(node, pending), strict=True):
            if moved:
                arriving.setdefault(id(child), []).extend(moved)
    return arriving


def _read_by_references(
    nodes: Sequence[LogicalPlan], definitions: Mapping[object, LogicalPlan], arriving: Mapping[int, list[Expression]]
) -> dict[int, list[Expression]]:
    """Id of a definition of a common table expression -> what arrives at the references to it."""
    found: dict[int, list[Expression]] = {}
    for node in nodes:
        definition = definitions.get(node.info.get("cte")) if node.kind == "CTERelationRef" else None
        if definition is not None and id(node) in arriving:
            found.setdefault(id(definition), []).extend(_renamed(arriving[id(node)], node, definition))
    return found


def _below(node: LogicalPlan, pending: list[Expression]) -> list[list[Expression]]:
    """What arrives at each child."""
    if isinstance(node, Filter):
        return [pending]
    if isinstance(node, Join):
        return [_into_side(node, child, pending) for child in node.children]
    if node.kind in _SETS:
        return [_renamed(pending, node, child) for child in node.children]
    if node.kind in HINTS:  # Spark makes them hints of joins first
        return [pending]
    if node.kind in _BECOME_JOINS:
        return [[p for p in pending if not row_references(p) & ~child.output_set] for child in node.children]
    if node.kind in ("Deduplicate", "CTERelationDef", "WithCTE"):
        return [*([] for _ in node.children[1:]), pending]  # before the plan, WithCTE has definitions
    passage = through(deque(pending), _without_random_columns(node), _AS_CATALYST)
    moved = list(passage.below) if passage is not None else []
    return [moved if len(node.children) == 1 else [] for _ in node.children]


def _without_random_columns(node: LogicalPlan) -> LogicalPlan:
    """A nondeterministic column lets no predicate pass, but Spark removes it first where nobody reads it."""
    if isinstance(node, Project):
        return Project(tuple(e for e in node.projections if e.deterministic), node.child)
    if isinstance(node, Aggregate):
        return aggregate(node.grouping, [e for e in node.aggregates if e.deterministic], node.child)
    return node


def _into_side(join: Join, side: LogicalPlan, pending: list[Expression]) -> list[Expression]:
    """What arrives at one side, also of what Spark infers for columns that the join sets equal.

    A semi or anti join moves down its left side as a whole, and its condition with it (PushDownLeftSemiAntiJoin): what
    that reads of the right side is as good as a constant.
    """
    columns: dict[int, Expression] = {}
    for left, right, _ in equalities(join.condition):
        for one, other in ((left, right), (right, left)):
            if one.attribute is not None and other.attribute is not None and other.references & side.output_set:
                columns.setdefault(one.attribute.bit, other)
    columns = {bit: e for bit, e in columns.items() if not side.output_set >> bit & 1}
    if join.join_type in (SEMI, ANTI) and side is join.left:
        columns |= {a.bit: TRUE for a in join.right.output if not side.output_set >> a.bit & 1}
    moved = [substitute(p, columns) if columns else p for p in pending]
    return [p for p in moved if not row_references(p) & ~side.output_set]


def _renamed(predicates: Sequence[Expression], one: LogicalPlan, other: LogicalPlan) -> list[Expression]:
    """Predicates over the columns of a plan, over those of another plan in the same places."""
    columns = {a.bit: reference(b) for a, b in zip(one.output, other.output)}
    return [substitute(p, columns) for p in predicates]
