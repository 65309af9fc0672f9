"""Where in a plan it does not matter how often a row comes: below DISTINCT, MIN and MAX, and IN.

    SELECT DISTINCT c_name FROM customer JOIN orders ON c_id = o_customer

has each name once, whether a customer has one order or a hundred. The join is *duplicate-insensitive*. That holds of
the right side of a semi or anti join, of the input of DISTINCT and of GROUP BY with no other aggregates than MIN, MAX
and those of distinct values, and of what is below these through operators that preserve it (`plan.operator_kinds`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyjoinopt.plan.expressions import walk
from pyjoinopt.plan.nodes import ANTI, EXISTENCE, INNER_LIKE, OUTER, SEMI, Aggregate, Join, LogicalPlan
from pyjoinopt.plan.operator_kinds import IGNORES_DUPLICATES

#: Functions whose value does not depend on how often a value comes.
_SETS = frozenset({"Min", "Max", "BoolAnd", "BoolOr", "BitAndAgg", "BitOrAgg"})
_JOINS = INNER_LIKE | OUTER


def duplicate_insensitive(nodes: Sequence[LogicalPlan], definitions: bool) -> Mapping[int, bool]:
    """For each node by id, whether the result is the same however often its rows come.

    Args:
        nodes: of a whole plan, children before parents.
        definitions: whether all readers of common table expressions are among them.
    """
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
