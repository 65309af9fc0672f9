"""Which columns of each operator are not NULL in any row that is kept above it.

`a JOIN (SELECT k, sum(v) FROM b GROUP BY k) ON a.k = k` keeps no group whose key is NULL, and Spark filters these rows
out below the aggregate. What reaches the joins there is fewer rows, which estimates want to know before Spark does it.

A column goes down where Catalyst pushes a filter on it down: through projections that keep it, aggregates that group
by it, windows that partition by it, and to the sides of a join that the join does not preserve for others.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyjoinopt.plan.expressions import Expression, conjuncts
from pyjoinopt.plan.facts.inference import null_intolerant_columns
from pyjoinopt.plan.nodes import (
    ANTI,
    FULL,
    INNER_LIKE,
    LEFT,
    RIGHT,
    SEMI,
    Aggregate,
    Filter,
    Join,
    LogicalPlan,
    Project,
)  # fmt: skip
from pyjoinopt.plan.operator_kinds import PASSES_FILTERS
from pyjoinopt.plan.traversal import post_order


def never_null_above(root: LogicalPlan) -> Mapping[int, int]:
    """For each node (by id) those of its columns that no row holds a NULL in which anything above it keeps."""
    order = list(post_order(root))
    found: dict[int, int] = {id(root): 0}
    for node in reversed(order):
        own = found.get(id(node), 0)
        for child, columns in zip(node.children, _below(node, own), strict=True):
            columns = 0 if node.cached else columns & child.output_set
            found[id(child)] = found[id(child)] & columns if id(child) in found else columns
    return found


def _below(node: LogicalPlan, own: int) -> list[int]:
    """The same for each child of a node, other columns than the child's among them."""
    if isinstance(node, Join):
        return _below_join(node, own)
    if isinstance(node, Filter):
        return [own | _not_null(node.condition)]
    if isinstance(node, Project):
        return [_sources(node.projections, own)]
    if isinstance(node, Aggregate):
        grouped = sum({e.attribute.mask for e in node.grouping if e.attribute is not None})
        return [_sources(node.aggregates, own) & grouped]
    if node.kind == "Window":
        first, partitions, _ = node.info.get("parts") or (0, 0, 0)
        listed = node.expressions[first : first + partitions]
        return [own & sum({e.attribute.mask for e in listed if e.attribute is not None})]
    return [own if node.kind in PASSES_FILTERS else 0] * len(node.children)


def _below_join(node: Join, own: int) -> list[int]:
    compared = _not_null(node.condition)
    left = own if node.join_type in INNER_LIKE | {LEFT, SEMI, ANTI} else 0
    right = own if node.join_type in INNER_LIKE | {RIGHT} else 0
    if node.join_type in INNER_LIKE | {SEMI, RIGHT}:
        left |= compared
    if node.join_type not in (FULL, RIGHT):
        right |= compared
    return [left, right]


def _not_null(condition: Expression | None) -> int:
    found = 0
    for conjunct in conjuncts(condition):
        for e in null_intolerant_columns(conjunct):
            if e.kind == "AttributeReference" and e.attribute is not None:
                found |= e.attribute.mask
    return found


def _sources(listed: tuple[Expression, ...], own: int) -> int:
    """The columns below that a list of columns and aliases gives as columns of `own`."""
    found = 0
    for e in listed:
        source = e.children[0] if e.kind == "Alias" else e
        if e.attribute is not None and e.attribute.mask & own and source.kind == "AttributeReference":
            found |= source.references
    return found
