"""Taking conditions apart: the operands of an AND, and comparisons of a column with a constant."""

from __future__ import annotations

from pyjoinopt.estimation.model.literals import column_of, is_constant
from pyjoinopt.estimation.model.monotone_functions import unwrapped
from pyjoinopt.plan.expressions import EQUALITIES, MIRRORED, Attribute, Expression

LISTS = frozenset({"In", "InSet"})
#: Types of text, as they begin.
TEXT = ("string", "varchar", "char")


def and_operands(e: Expression) -> list[Expression]:
    """The operands of an AND chain; BETWEEN is one more AND, which Spark 4 wraps."""
    found: list[Expression] = []
    stack = [e]
    while stack:
        part = stack.pop()
        if part.kind == "And" or wraps_and(part):
            stack.extend(reversed(part.children))
        else:
            found.append(part)
    return found


def wraps_and(e: Expression) -> bool:
    """True of a BETWEEN that holds the AND it is replaced by."""
    return e.kind == "Between" and len(e.children) == 1


def comparison(e: Expression) -> tuple[Attribute, str, Expression] | None:
    """(column, kind, constant) of a comparison of a column with a constant, the column on the left.

    If the column is cast to another type, the constant is one of the column's own type.
    """
    found = comparisons(e)
    return found[0] if len(found) == 1 else None


def comparisons(e: Expression) -> list[tuple[Attribute, str, Expression]]:
    """The same; two of them, which both hold, if an equality is with a whole range of the column's values."""
    if e.kind not in MIRRORED and e.kind not in EQUALITIES:
        return []
    for side, constant, kind in zip(e.children, reversed(e.children), (e.kind, MIRRORED.get(e.kind, e.kind))):
        if is_constant(constant) and side.references:
            attribute = column_of(side)
            return unwrapped(side, kind, constant) if attribute is None else [(attribute, kind, constant)]
    return []


def names(e: Expression) -> bool:
    """True if the texts that a predicate keeps are written out in it.

    >>> from pyjoinopt.plan.expressions import call, literal, reference
    >>> names(call("EqualTo", reference(Attribute(0, 1, "country", "string")), literal("us", "string")))
    True
    """
    if e.kind in LISTS:
        attribute = column_of(e.children[0])
    else:
        simple = comparison(e) if e.kind in EQUALITIES else None
        attribute = simple[0] if simple else None
    return attribute is not None and attribute.type.startswith(TEXT)
