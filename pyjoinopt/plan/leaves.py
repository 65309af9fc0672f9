"""The leaves that plans read, through common table expressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyjoinopt.plan.nodes import LogicalPlan
from pyjoinopt.plan.traversal import post_order

#: Formats of which a scan may have other rows, values and errors if it reads other columns (option `mode`).
_TEXTS = frozenset({"csv", "json", "xml"})


def leaves_of(
    plans: Sequence[LogicalPlan], definitions: Mapping[object, LogicalPlan] | None = None
) -> list[list[LogicalPlan]]:
    """The leaves, cached sub-plans among them, that each of some plans reads, also by common table expressions."""
    found = []
    for plan in plans:
        leaves: list[LogicalPlan] = []
        waiting, seen = [plan], set()
        while waiting:
            for node in post_order(waiting.pop()):
                if not node.children or node.cached:
                    leaves.append(node)
                cte = node.info.get("cte") if node.kind == "CTERelationRef" else None
                if cte is not None and definitions and cte in definitions and cte not in seen:
                    seen.add(cte)
                    waiting.append(definitions[cte])
        found.append(leaves)
    return found


def depends_on_columns(leaf: LogicalPlan) -> bool:
    """Whether the rows of a leaf may depend on which of its columns are read.

    >>> depends_on_columns(LogicalPlan("LogicalRelation", info={"rel": {"kind": "file", "format": "csv"}}))
    True
    """
    relation = leaf.info.get("rel") or {}
    format = relation.get("format")
    if relation.get("kind") == "v2":  # the name of files without a table begins with their format
        format = str(relation.get("name")).partition(" ")[0]
    return format in _TEXTS
