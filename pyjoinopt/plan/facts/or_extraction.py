"""What a predicate over several relations implies for one of them.

From (a.x = 1 AND b.y = 2) OR (a.x = 3 AND b.y = 4) follows a.x = 1 OR a.x = 3, and of b likewise: where the whole is
true, one of its alternatives is, and with it the part of that alternative that reads `a`. Where one alternative has no
such part, nothing follows. This is Catalyst's `extractPredicatesWithinOutputSet`, without sensitive parts: what may
fail must not be evaluated on rows on which the whole was not, and Spark would copy a discerning predicate to equal
columns (`equality_substitution`), which it does not where it extracts the part itself, after that rule.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyjoinopt.plan.expressions import Expression, call, conjuncts
from pyjoinopt.plan.facts.equality_substitution import is_sensitive
from pyjoinopt.plan.fallible import fallibility
from pyjoinopt.plan.nodes import Filter, LogicalPlan
from pyjoinopt.plan.operator_kinds import NEVER_MORE_ROWS


def extract_predicate_within(predicate: Expression, columns: int) -> Expression | None:
    """What follows from a conjunct for some columns alone; None if nothing does, or nothing that is safe to use.

    Args:
        predicate: the conjunct; of any but an OR nothing follows beyond the conjunct itself.
        columns: an attribute set, as `LogicalPlan.output_set` is.

    >>> from pyjoinopt.plan.expressions import Attribute, reference
    >>> a, b, c, d = (call("IsNull", reference(Attribute(i, i, name))) for i, name in enumerate("abcd"))
    >>> extract_predicate_within(call("Or", call("And", a, b), call("And", c, d)), 0b0101)
    ((a IS NULL) OR (c IS NULL))
    >>> extract_predicate_within(call("Or", call("And", a, b), d), 0b0101) is None
    True
    """
    if predicate.kind != "Or" or not predicate.references & columns or not predicate.references & ~columns:
        return None
    parts: list[Expression | None] = []
    steps: list[tuple[Expression, bool]] = [(predicate, False)]
    while steps:
        e, operands_done = steps.pop()
        if e.kind not in ("And", "Or"):
            parts.append(e if e.references and not e.references & ~columns else None)
        elif operands_done:
            right, left = parts.pop(), parts.pop()
            parts.append(_either(left, right) if e.kind == "Or" else _both(left, right))
        else:
            steps += [(e, True), (e.children[1], False), (e.children[0], False)]
    follows = parts[0]
    if follows is None or not fallibility.is_movable(follows) or is_sensitive(follows):
        return None
    return follows


def top_filters(plan: LogicalPlan) -> Iterator[Expression]:
    """The conjuncts that hold of every row of a plan, because its topmost operators drop rows at most."""
    while plan.kind in NEVER_MORE_ROWS and len(plan.children) == 1 and not plan.cached:
        if isinstance(plan, Filter):
            yield from conjuncts(plan.condition)
        (plan,) = plan.children


def _either(left: Expression | None, right: Expression | None) -> Expression | None:
    if left is None or right is None:
        return None
    return left if left.same(right) else call("Or", left, right)


def _both(left: Expression | None, right: Expression | None) -> Expression | None:
    if left is None or right is None:
        return right if left is None else left
    return left if left.same(right) else call("And", left, right)
