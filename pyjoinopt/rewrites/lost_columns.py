"""Operators above a rewrite that removes columns which nobody needs.

A column that nobody needs may still be computed from, in a projection that an operator further up prunes:

    SELECT x FROM (SELECT a.x, upper(b.name) AS n, b.k FROM a LEFT JOIN b ON a.k = b.k) WHERE k IS NULL

`n` is not needed by anybody. If a rewrite removes the columns of `b`, the projection that computes `n` must lose it.
"""

from __future__ import annotations

from pyjoinopt.catalyst.support.pruned_operators import narrowed_expand, rebuild_over
from pyjoinopt.plan.nodes import LogicalPlan, Project


def without_lost_columns(node: LogicalPlan, children: tuple[LogicalPlan, ...]) -> LogicalPlan:
    """A node over children that may have lost columns: it loses them, too, and what it computes from them.

    Args:
        node: an operator.
        children: its new children. Nothing above may need a column that they have lost, or that is computed from it.

    Returns:
        The very same node if all children are the same.

    Raises:
        ValueError: the node is neither a projection nor an Expand, and reads a lost column.
    """
    lost = 0
    for old, new in zip(node.children, children, strict=True):
        lost |= old.output_set & ~new.output_set
    if not node.references & lost:
        return rebuild_over(node, children)
    if node.kind == "Expand" and "lists" in node.info:
        lists = node.info["lists"]
        columns = zip(node.output, zip(*lists, strict=True), strict=True)
        kept = sum(a.mask for a, listed in columns if not any(e.references & lost for e in listed))
        return rebuild_over(narrowed_expand(node, kept), children)
    if not isinstance(node, Project):
        raise ValueError(f"{node.kind} reads a column that is gone")
    return Project(tuple(e for e in node.projections if not e.references & lost), children[0])
