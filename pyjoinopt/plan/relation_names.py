"""What people call the relations of a join group."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from pyjoinopt.plan.nodes import Join, LogicalPlan
from pyjoinopt.plan.traversal import post_order

_COPY = re.compile(r"_\d+$")
#: Operators whose rows are others than those of their child.
_OTHER_ROWS = frozenset({"Aggregate", "Window", "Generate", "Expand"})


def relation_name(plan: LogicalPlan) -> str:
    """What people call a relation: its alias, its table, or the operator it ends in.

    Of a join it is the two names that it joins, or the first of several. `+` joins them, not `⋈`, because in an order
    such as `((a ⋈ b+c) ⋈ d)` a relation that is a join itself must differ from a join that the order makes.

    >>> from pyjoinopt.plan.nodes import relation
    >>> a, b, c = (relation(name, []) for name in "abc")
    >>> relation_name(Join(a, b)), relation_name(Join(Join(a, b), c))
    ('a+b', 'a+…')
    """
    first, *rest = islice(_names(plan), 3)
    return first if not rest else f"{first}+{rest[0] if len(rest) == 1 else '…'}"


def _names(plan: LogicalPlan) -> Iterator[str]:
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        name = getattr(node, "name", None) or (node.info.get("rel") or {}).get("name") or node.info.get("name")
        if name or not node.children or node.kind in _OTHER_ROWS:
            yield str(name or (node.kind if "rel" in node.info else node.kind.lower()))
        elif isinstance(node, Join) or len(node.children) == 1:
            waiting += reversed(node.children)
        else:
            yield node.kind.lower()


def source_names(plan: LogicalPlan) -> tuple[str, ...]:
    """What a relation reads, by the names of tables and files, which do not depend on what a query calls it.

    >>> from pyjoinopt.plan.nodes import SubqueryAlias, relation
    >>> source_names(SubqueryAlias("x", relation("orders", [])))
    ('orders',)
    """
    leaves = (node for node in post_order(plan) if not node.children or node.cached)
    return tuple(sorted(str((leaf.info.get("rel") or {}).get("name") or leaf.kind) for leaf in leaves))


def plain_name(name: str) -> str:
    """A relation's name without what depends on how the query was written: a copy's number, which of two comes first.

    >>> plain_name("orders_2"), plain_name("b+a"), plain_name("a+…") == plain_name("c+…")
    ('orders', 'a+b', True)
    """
    return "several" if "…" in name else "+".join(sorted(_COPY.sub("", part) for part in name.split("+")))


def unique_names(names: Sequence[str]) -> tuple[str, ...]:
    """Names made unique: a second `orders` becomes `orders_2`.

    >>> unique_names(["o", "o", "c"])
    ('o', 'o_2', 'c')
    """
    taken: dict[str, int] = {}
    result = []
    for name in names:
        taken[name] = count = taken.get(name, 0) + 1
        result.append(name if count == 1 else f"{name}_{count}")
    return tuple(result)
