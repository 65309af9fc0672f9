"""Which columns of each operator are read at all: Spark prunes the others, so they have no width."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from pyjoinopt.plan.nodes import Aggregate, Join, LogicalPlan, Project
from pyjoinopt.plan.operator_kinds import COMPARES_ROWS
from pyjoinopt.plan.traversal import post_order

#: What holds common table expressions, what defines one, what reads one.
_DEFINING = frozenset({"WithCTE", "CTERelationDef", "CTERelationRef"})
#: Operators that need all columns of their input whatever is read of their result.
_WHOLE = COMPARES_ROWS | {"Deduplicate", "WithCTE"}


@lru_cache(maxsize=4)  # several rooms need the columns of one plan
def needed_columns(root: LogicalPlan, projections: bool = True, definitions: bool = False) -> Mapping[int, int]:
    """For each node (by id) those of its columns that anything above it, or the result, reads.

    Args:
        root: a whole plan; all its columns are needed.
        projections: count on projections being pruned too; otherwise they read whatever they list.
        definitions: count on common table expressions being pruned to what is read of them in `root`, too.
    """
    order = list(post_order(root))
    required = {id(node): 0 for node in order}
    required[id(root)] = root.output_set
    read: dict[object, int] = {}  # common table expression -> positions of its columns
    for node in reversed(order):
        own = required[id(node)]
        if definitions and node.kind in _DEFINING:
            _through_definitions(node, required, read)
            continue
        if isinstance(node, Project) and not projections:
            reads = node.references
        elif isinstance(node, Project):
            reads = 0
            for e, attribute in zip(node.expressions, node.output):
                if attribute.mask & own:
                    reads |= e.references
        elif node.kind == "Expand" and "lists" in node.info:
            reads = 0
            for listed in node.info["lists"]:
                for e, attribute in zip(listed, node.output):
                    if attribute.mask & own:
                        reads |= e.references
        elif isinstance(node, Aggregate):  # count(*) reads no column at all
            reads = node.references
        elif node.kind in _WHOLE or len(node.children) == 1 and not node.children[0].output_set & node.output_set:
            reads = -1
        elif isinstance(node, Join):
            reads = own | node.references | node.early_reads
        else:
            reads = own | node.references
        for child in () if node.cached else node.children:
            required[id(child)] |= reads & child.output_set
    return required


def _through_definitions(node: LogicalPlan, required: dict[int, int], read: dict[object, int]) -> None:
    """Propagate what is read of a common table expression; readers come before definitions, from the top."""
    own, name = required[id(node)], node.info.get("cte")
    if node.kind == "CTERelationRef":
        read[name] = read.get(name, 0) | sum(1 << i for i, a in enumerate(node.output) if a.mask & own)
    elif node.kind == "CTERelationDef":
        (child,) = node.children
        required[id(child)] |= sum(a.mask for i, a in enumerate(child.output) if read.get(name, 0) >> i & 1)
    else:
        required[id(node.children[-1])] |= own
