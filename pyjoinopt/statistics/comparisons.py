"""Taking conditions apart: the operands of an AND, and comparisons of a column with a constant."""

from __future__ import annotations

from pyjoinopt.plan.expressions import MIRRORED, Attribute, Expression
from pyjoinopt.statistics.constants import column_of, is_constant

EQUALITIES = frozenset({"EqualTo", "EqualNullSafe"})
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
    """True of a BETWEEN that holds the AND it stands for."""
    return e.kind == "Between" and len(e.children) == 1


def comparison(e: Expression) -> tuple[Attribute, str, Expression] | None:
    """(column, kind, constant) of a comparison of a column with a constant, the column on the left."""
    if e.kind not in MIRRORED and e.kind not in EQUALITIES:
        return None
    left, right = e.children
    if is_constant(right) and (attribute := column_of(left)) is not None:
        return attribute, e.kind, right
    if is_constant(left) and (attribute := column_of(right)) is not None:
        return attribute, MIRRORED.get(e.kind, e.kind), left
    return None


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
