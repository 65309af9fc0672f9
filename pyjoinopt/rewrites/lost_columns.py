"""Operators above a rewrite that removes columns which nobody needs.

A column that nobody needs may still be computed from, in a projection that an operator further up prunes:

    SELECT x FROM (SELECT a.x, upper(b.name) AS n, b.k FROM a LEFT JOIN b ON a.k = b.k) WHERE k IS NULL

`n` is not needed by anybody. If a rewrite removes the columns of `b`, the projection that computes `n` must lose it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyjoinopt.catalyst.support.pruned_operators import narrowed_expand, rebuild_over
from pyjoinopt.plan.nodes import Aggregate, LogicalPlan, Project
from pyjoinopt.plan.traversal import post_order

#: Makes the plan that takes a node's place, from the new plan of each node below it by id.
Replacement = Callable[[Mapping[int, LogicalPlan]], LogicalPlan]


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


def with_replacements(nodes: Sequence[LogicalPlan], replacements: Mapping[int, Replacement]) -> LogicalPlan:
    """A plan with others in the place of some nodes, and without what read the columns that are gone.

    Args:
        nodes: of the plan, children before parents.
        replacements: by the id of a node; nothing above it may need the columns that its replacement lacks.
    """
    done: dict[int, LogicalPlan] = {}
    narrowed: dict[object, list[int]] = {}  # common table expression -> positions of the columns it still has
    for node in nodes:
        children = tuple(done[id(child)] for child in (() if node.cached else node.children))
        replacement = replacements.get(id(node))
        made: LogicalPlan = node
        if replacement is not None:
            made = replacement(done)
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


def has_narrowed_tables(root: LogicalPlan) -> bool:
    """Whether common table expressions of a plan have lost columns."""
    return any(node.kind == "CTERelationRef" and node.info.get("narrowed") for node in post_order(root))


def hidden_columns(root: LogicalPlan) -> int:
    """The columns that a join USING them hides in the result of a plan, but that names may still mean.

    The names pass all operators but aggregates: a column of a frame that was joined is found below projections, too.
    """
    hidden, stack = 0, [root]
    while stack:
        node = stack.pop()
        hidden |= sum({1 << bit for bit in node.info.get("hidden") or ()})
        if not isinstance(node, Aggregate):
            stack += node.children
    return hidden
