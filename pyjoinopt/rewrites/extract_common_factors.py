"""Conjuncts that all alternatives of an OR share are extracted.

    before  WHERE (a.k = b.k AND a.x = 1) OR (a.k = b.k AND b.y > 2)
    after   WHERE a.k = b.k AND (a.x = 1 OR b.y > 2)

A join condition inside an OR connects no two relations, so the join group would be full of cross products. An
alternative of which nothing is left is true, and with it the whole OR.

Legal because AND and OR are distributive in three-valued logic too, if

* the shared conjunct is deterministic;
* it cannot throw: in its alternative other conjuncts may be evaluated before it.

Source: the part of Catalyst's `BooleanSimplification` that joins depend on. Spark does the rest afterwards.
"""

from __future__ import annotations

from pyjoinopt.plan.expressions import Expression, call, conjunction, conjuncts, operands
from pyjoinopt.plan.fallible import fallibility
from pyjoinopt.plan.nodes import Filter, Join, LogicalPlan
from pyjoinopt.plan.traversal import transform_up


def extract_common_factors(plan: LogicalPlan) -> LogicalPlan:
    """The plan with common factors of ORs in filters and join conditions taken out; `plan` itself if there are none."""
    return transform_up(plan, _at)


def _at(node: LogicalPlan) -> LogicalPlan:
    if not isinstance(node, (Filter, Join)) or node.cached or node.condition is None:
        return node
    predicates = conjuncts(node.condition)
    if all(e.kind != "Or" for e in predicates):
        return node
    factored = [part for e in predicates for part in factors(e)]
    if len(factored) == len(predicates) and all(a is b for a, b in zip(factored, predicates)):
        return node
    condition = conjunction(factored)
    assert condition is not None  # there was one, and nothing is lost
    if isinstance(node, Filter):
        return Filter(condition, node.child)
    return node.with_inputs(node.left, node.right, condition, node.hint)


def factors(predicate: Expression) -> list[Expression]:
    """Conjuncts that mean the same: what the alternatives of an OR share, then what is left of it, if anything.

    >>> from pyjoinopt.plan.expressions import Attribute, reference
    >>> a, b, c = (call("IsNull", reference(Attribute(i, i, name))) for i, name in enumerate("abc"))
    >>> factors(call("Or", call("And", a, b), call("And", c, a)))
    [(a IS NULL), ((b IS NULL) OR (c IS NULL))]
    """
    if predicate.kind != "Or":
        return [predicate]
    alternatives = [conjuncts(e) for e in operands(predicate, "Or")]
    shared = {e.key for e in alternatives[0]}
    for alternative in alternatives[1:]:
        shared &= {e.key for e in alternative}
    common: dict[object, Expression] = {}
    for e in alternatives[0]:
        if e.key in shared and e.deterministic and not fallibility.may_throw(e):
            common.setdefault(e.key, e)
    if not common:
        return [predicate]
    rest: Expression | None = None
    for alternative in alternatives:
        left = conjunction(e for e in alternative if e.key not in common)
        if left is None:
            return list(common.values())
        rest = left if rest is None else call("Or", rest, left)
    assert rest is not None
    return [*common.values(), rest]
