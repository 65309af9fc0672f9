"""Which columns a plan computes with: of a wide table only these are worth knowing about.

A column that is only passed upwards decides nothing. What counts is everything below a predicate, a key, an alias or
any other expression, and whatever an operator compares as a whole row or passes on under a new identity.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyjoinopt.plan.nodes import Aggregate, LogicalPlan, Project
from pyjoinopt.plan.operator_kinds import COMPARES_ROWS

#: Operators that read values only to put rows in order.
_ORDERS = frozenset({"Sort", "Window"})


def needed_columns(nodes: Iterable[LogicalPlan]) -> int:
    """The set of attributes that some node computes with.

    >>> from pyjoinopt.plan.expressions import Attribute, call, reference
    >>> from pyjoinopt.plan.nodes import Filter, relation
    >>> a, b = Attribute(0, 0, "a"), Attribute(1, 1, "b")
    >>> kept = Filter(call("IsNotNull", reference(b)), relation("t", [a, b]))
    >>> bin(needed_columns([Project((reference(a), reference(b)), kept), kept]))
    '0b10'
    """
    needed = 0
    for node in nodes:
        if isinstance(node, Project):
            for expression in node.expressions:
                if expression.kind != "AttributeReference":
                    needed |= expression.references
        else:
            needed |= node.references
        if node.kind in COMPARES_ROWS:
            for child in node.children:
                needed |= child.output_set
        for bit in node.info.get("keys") or ():
            needed |= 1 << bit
    return needed


def counted_columns(nodes: Iterable[LogicalPlan]) -> int:
    """The set of attributes whose different values matter: those that predicates, keys and aliases are made of.

    What is only added up or sorted by is not among them.

    >>> from pyjoinopt.plan.expressions import Attribute, call, reference
    >>> from pyjoinopt.plan.nodes import relation
    >>> a, b = Attribute(0, 0, "a"), Attribute(1, 1, "b")
    >>> total = call("AggregateExpression", call("Sum", reference(b)))
    >>> bin(counted_columns([Aggregate((reference(a),), (total,), relation("t", [a, b]), ())]))
    '0b1'
    """
    listed = list(nodes)
    counted = 0
    for node in listed:
        if isinstance(node, Aggregate):
            for expression in node.grouping:
                counted |= expression.references
    return counted | needed_columns(n for n in listed if not isinstance(n, Aggregate) and n.kind not in _ORDERS)
