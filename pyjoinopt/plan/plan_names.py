"""Short names of sub-plans, for what a rule tells people."""

from __future__ import annotations

from pyjoinopt.plan.nodes import LogicalPlan


def plan_name(plan: LogicalPlan, most: int = 3) -> str:
    """The alias or table that a sub-plan is known by; several for a join, joined by `⋈`.

    >>> from pyjoinopt.plan.nodes import Join, relation
    >>> plan_name(Join(relation("o", []), relation("c", [])))
    'o ⋈ c'
    """
    names: list[str] = []
    stack = [plan]
    while stack:
        node = stack.pop()
        if node.kind == "SubqueryAlias":
            names.append(str(getattr(node, "name", "")))
        elif not node.children:
            names.append(str(node.info.get("rel", {}).get("name") or node.kind))
        else:
            stack.extend(reversed(node.children))
        if len(names) > most:
            return " ⋈ ".join([*names[:most], "…"])
    return " ⋈ ".join(names)
