"""Plans as indented text, for people."""

from __future__ import annotations

from pyjoinopt.plan.expressions import describe
from pyjoinopt.plan.nodes import NO_HINT, Join, LogicalPlan, SubqueryAlias


def show(root: LogicalPlan, limit: int = 100_000) -> str:
    """The tree as indented text, one node a line.

    >>> from pyjoinopt.plan.expressions import Attribute, call, reference
    >>> from pyjoinopt.plan.nodes import Filter, relation
    >>> a = Attribute(0, 1, "a")
    >>> print(show(Filter(call("IsNotNull", reference(a)), relation("t", [a]))))
    Filter (a IS NOT NULL)
      LocalRelation t
    """
    lines: list[str] = []
    stack = [(root, 0)]
    while stack and len(lines) < limit:
        node, depth = stack.pop()
        if isinstance(node, Join):
            text = f"Join {node.join_type} {describe(node.condition) if node.condition else ''}".rstrip()
            if node.hint != NO_HINT:
                text += f" hint={node.hint}"
        elif isinstance(node, SubqueryAlias):
            text = f"SubqueryAlias {node.name}"
        elif not node.children and "rel" in node.info:
            text = f"{node.kind} {node.info['rel'].get('name', '')}"
        else:
            text = f"{node.kind} {', '.join(describe(e) for e in node.expressions)}".rstrip()
        lines.append("  " * depth + text)
        stack.extend((child, depth + 1) for child in reversed(node.children))
    return "\n".join(lines)
