"""Which divisors are certainly not zero: what lets a division in ANSI mode be evaluated on any row.

A divisor is not zero if its interval leaves zero out (`ranges`), or where a CASE around it tests it: `CASE WHEN n > 0
THEN total / n END` evaluates the division only where `n > 0` holds. Conjuncts of a filter are no such guard, as Spark
is free to evaluate any of them first. What is divided by NULL is NULL, so "not zero" may mean NULL here.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from pyjoinopt.plan import limits
from pyjoinopt.plan.expressions import MIRRORED, NEGATED, Expression
from pyjoinopt.plan.facts.constant_values import is_fixed
from pyjoinopt.plan.fallible.value_ranges import FLOATING, STANDS_FOR_CHILD, range_of, scale_of

#: Keys of expressions that are not zero where an expression is evaluated.
NonZeroKeys = frozenset[object]
NO_KEYS: NonZeroKeys = frozenset()

_DENIED = NEGATED | {"EqualTo": "Differs"}
#: Comparison -> signs of constants for which it implies that what is compared is not zero.
_APART = {
    "GreaterThan": (0, 1), "GreaterThanOrEqual": (1,), "LessThan": (-1, 0), "LessThanOrEqual": (-1,),
    "EqualTo": (-1, 1), "EqualNullSafe": (-1, 1), "Differs": (0,),
}  # fmt: skip
_CHOICES = frozenset({"If", "CaseWhen", "NullIfResult"})


def not_zero(e: Expression, known: NonZeroKeys, deep: int = limits.OPERAND_DEPTH) -> bool:
    """True if the value is certainly not zero, or NULL.

    Args:
        e: a divisor.
        known: what is not zero where it is evaluated.
        deep: how far to look into it.
    """
    if e.key in known:
        return True
    if e.kind == "TypedNullLiteral":
        return True
    if is_fixed(e):
        return e.value is None or (isinstance(e.value, (int, float, Decimal)) and e.value != 0)
    values = range_of(e)
    if values is not None and not values.low <= 0 <= values.high:
        return True
    if deep <= 0:
        return False
    if e.kind in _CHOICES:
        return all(not_zero(value, there, deep - 1) for value, there in _results(e, known))
    if e.kind == "Cast" and _keeps_zero_apart(e) or e.kind in STANDS_FOR_CHILD and len(e.children) == 1:
        return not_zero(e.children[0], known, deep - 1)
    return e.kind == "Coalesce" and all(not_zero(c, known, deep - 1) for c in e.children)


def operands_with_nonzero(e: Expression, known: NonZeroKeys) -> Iterator[tuple[Expression, NonZeroKeys]]:
    """The operands of an expression, each with what is not zero where it is evaluated.

    Args:
        e: the expression.
        known: what is not zero where it is evaluated itself.
    """
    if e.kind not in ("If", "CaseWhen"):
        yield from ((child, known) for child in e.children)
        return
    conditions, values = _branches(e)
    for i, value in enumerate(values):
        if i < len(conditions):
            yield conditions[i], known
        holds = known.union(_apart_from_zero(conditions[i], True)) if i < len(conditions) else known
        yield value, holds
        if i < len(conditions):
            known = known.union(_apart_from_zero(conditions[i], False))


def _results(e: Expression, known: NonZeroKeys) -> Iterator[tuple[Expression, NonZeroKeys]]:
    """What an IF, a CASE or a NULLIF may give, each with what is not zero there."""
    if e.kind == "NullIfResult":  # whose value is computed before its condition, and given if that is not true
        condition, value = e.children
        return iter([(value, known.union(_apart_from_zero(condition, False)))])
    values = {id(value) for value in _branches(e)[1]}
    return ((child, there) for child, there in operands_with_nonzero(e, known) if id(child) in values)


def _branches(e: Expression) -> tuple[list[Expression], list[Expression]]:
    """Conditions and values of an IF or a CASE; one value more if there is an ELSE."""
    paired = len(e.children) // 2 * 2
    return list(e.children[:paired:2]), [*e.children[1:paired:2], *e.children[paired:]]


def _apart_from_zero(condition: Expression, holds: bool) -> Iterator[object]:
    """Keys of what is not zero, or NULL, where a condition is true; if it does not hold, where it is false or NULL."""
    stack = [condition]
    while stack:
        e = stack.pop()
        if e.kind == ("And" if holds else "Or"):
            stack += e.children
        elif e.kind == "Not" and holds:  # what is false is not true
            yield from _apart_from_zero(e.children[0], False)
        elif len(e.children) == 2:
            left, right = e.children
            for value, kind, other in ((left, e.kind, right), (right, MIRRORED.get(e.kind, e.kind), left)):
                sign = _sign(other)
                if sign is not None and sign in _APART.get(kind if holds else _DENIED.get(kind, ""), ()):
                    yield from _keys(value)


def _keys(value: Expression) -> Iterator[object]:
    """The value's and, as zero is zero in every type, those of numbers that it is a cast of."""
    if not value.deterministic:
        return
    yield value.key
    while value.kind == "Cast" and _is_number(value.type) and _is_number(value.children[0].type):
        value = value.children[0]
        yield value.key


def _keeps_zero_apart(cast: Expression) -> bool:
    """True if the cast makes zero of nothing else: it keeps all digits behind the point."""
    own, below = scale_of(cast.type), scale_of(cast.children[0].type)
    if cast.type in FLOATING:
        return below is not None or cast.children[0].type in FLOATING and cast.type == "double"
    return own is not None and below is not None and own >= below


def _sign(e: Expression) -> int | None:
    """Whether a constant is below zero (-1), zero (0) or above (1); None if it is no number or not known."""
    constant = e
    while constant.kind == "Cast" and not is_fixed(constant):
        constant = constant.children[0]
    if not is_fixed(constant) or not isinstance(constant.value, (int, float, Decimal)):
        return None
    values = range_of(e)
    if values is None and e.type in FLOATING:  # to which a cast keeps the sign
        return None if constant.value != constant.value else (constant.value > 0) - (constant.value < 0)
    return (values.low > 0) - (values.low < 0) if values is not None and values.low == values.high else None


def _is_number(type: str) -> bool:
    return type in FLOATING or scale_of(type) is not None
