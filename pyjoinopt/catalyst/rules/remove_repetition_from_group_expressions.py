"""RemoveRepetitionFromGroupExpressions: grouping by the same thing twice is grouping by it once.

    GROUP BY a + 1, b, 1 + a, b      groups as      GROUP BY a + 1, b

"The same" is what Catalyst calls semantically equal: `a + 1` and `1 + a`, `a < b` and `b > a`, `x.A` and `a`. Of equal
expressions the first is kept. A nondeterministic expression equals nothing, not even itself: each `rand()` draws anew.
"""

from __future__ import annotations

from pyjoinopt.catalyst.rules.remove_literal_from_group_expressions import regrouped
from pyjoinopt.plan.expressions import Expression
from pyjoinopt.plan.nodes import Aggregate, LogicalPlan
from pyjoinopt.plan.traversal import transform_down


def remove_repetition_from_group_expressions(plan: LogicalPlan) -> LogicalPlan:
    """Drop repeated expressions from every GROUP BY (Catalyst's `RemoveRepetitionFromGroupExpressions`).

    Args:
        plan: any plan; cached sub-plans are not changed.

    Returns:
        The plan, the very same object if nothing is repeated.

    >>> from pyjoinopt.plan.expressions import Attribute, reference
    >>> from pyjoinopt.plan.constructors import aggregate
    >>> from pyjoinopt.plan.nodes import relation
    >>> a, b = Attribute(0, 1, "a"), Attribute(1, 2, "b")
    >>> keys = [reference(a), reference(b), reference(a)]
    >>> remove_repetition_from_group_expressions(aggregate(keys, keys, relation("t", [a, b]))).grouping
    (a, b)
    """
    return transform_down(plan, _without_repetition)


def _without_repetition(node: LogicalPlan) -> LogicalPlan:
    if not isinstance(node, Aggregate) or node.cached:
        return node
    kept = distinct_expressions(node.grouping)
    return node if len(kept) == len(node.grouping) else regrouped(node, kept)


def distinct_expressions(listed: tuple[Expression, ...]) -> tuple[Expression, ...]:
    """The first of each set of expressions that mean the same (Catalyst's `ExpressionSet`)."""
    known: set[object] = set()
    kept = []
    for e in listed:
        meanings = _meanings(e)
        if not e.deterministic or known.isdisjoint(meanings):
            kept.append(e)
            known.update(meanings)
    return tuple(kept)


def _meanings(e: Expression) -> list[object]:
    """What may show that two expressions are equal: structure, or for the JVM's own Catalyst's `semanticEquals`."""
    by_catalyst = [("meaning", e.sem)] if e.number is not None and e.sem is not None else []
    return [e.key, *by_catalyst]
