"""The equalities of a condition, and which of them are keys of a join.

    a JOIN b ON a.x + 1 = b.y AND a.z < b.z AND b.k <=> a.k AND a.u = 3

has the equalities (a.x + 1, b.y), (b.k, a.k) null-safe, and (a.u, 3). The first two are *equi-keys*: one operand reads
columns of one side only, the other of the other side only. As keys they are (a.x + 1, b.y) and (a.k, b.k): the left
side's operand first.

Catalyst's `ExtractEquiJoinKeys`, which also turns a null-safe equality into two ordinary keys, is
`catalyst.planner.equi_keys`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pyjoinopt.plan.expressions import EQUALITIES, Attribute, Expression, conjuncts
from pyjoinopt.plan.nodes import Join


class Equality(NamedTuple):
    """An equality: `left = right`, or `left <=> right` if it is null-safe (two NULLs are equal)."""

    left: Expression
    right: Expression
    null_safe: bool = False

    @property
    def deterministic(self) -> bool:
        """True if both operands are."""
        return self.left.deterministic and self.right.deterministic


def equality(predicate: Expression) -> Equality | None:
    """The operands of an equality as they are written; None for any other predicate."""
    if predicate.kind not in EQUALITIES:
        return None
    left, right = predicate.children
    return Equality(left, right, predicate.kind == "EqualNullSafe")


def equalities(condition: Expression | None) -> Iterator[Equality]:
    """The equalities among the conjuncts of a condition, in their order."""
    for predicate in conjuncts(condition):
        found = equality(predicate)
        if found is not None:
            yield found


def over_sides(predicate: Expression, left: int, right: int) -> Equality | None:
    """An equality with one operand over either side, the left side's first; an operand may read no column.

    Args:
        predicate: any predicate.
        left, right: attributes of the sides, as bits.
    """
    found = equality(predicate)
    if found is None:
        return None
    one, other, null_safe = found
    if not one.references & ~left and not other.references & ~right:
        return found
    if not one.references & ~right and not other.references & ~left:
        return Equality(other, one, null_safe)
    return None


def equi_key(predicate: Expression, left: int, right: int) -> Equality | None:
    """An equality between the sides, the left side's operand first; each operand reads a column of its side.

    >>> from pyjoinopt.plan.expressions import Attribute, call, literal, reference
    >>> a, b = Attribute(0, 1, "a"), Attribute(1, 2, "b")
    >>> equi_key(call("EqualTo", reference(b), reference(a)), a.mask, b.mask)
    Equality(left=a, right=b, null_safe=False)
    >>> equi_key(call("EqualTo", literal(3, "int"), reference(a)), a.mask, b.mask) is None
    True
    """
    found = over_sides(predicate, left, right)
    return found if found is not None and found.left.references and found.right.references else None


def equi_keys(condition: Expression | None, left: int, right: int) -> Iterator[Equality]:
    """The equi-keys among the conjuncts of a condition, in their order; arguments as of `equi_key`."""
    for predicate in conjuncts(condition):
        found = equi_key(predicate, left, right)
        if found is not None:
            yield found


def hash_keys(join: Join) -> list[tuple[Expression, Expression]]:
    """The keys of a join that bring each row the same partners every time: equi-keys without `<=>` and `rand()`."""
    keys = equi_keys(join.condition, join.left.output_set, join.right.output_set)
    return [(key.left, key.right) for key in keys if not key.null_safe and key.deterministic]


def equal_columns(condition: Expression | None) -> Iterator[tuple[Attribute, Attribute]]:
    """The pairs of columns that a condition compares with `=`, without casts, as they are written.

    >>> from pyjoinopt.plan.expressions import Attribute, call, literal, reference
    >>> a, b = Attribute(0, 1, "a"), Attribute(1, 2, "b")
    >>> condition = call("And", call("EqualTo", reference(b), reference(a)), call("EqualTo", reference(a), literal(3)))
    >>> [(one.name, other.name) for one, other in equal_columns(condition)]
    [('b', 'a')]
    """
    for left, right, null_safe in equalities(condition):
        if not null_safe and left.kind == right.kind == "AttributeReference":
            assert left.attribute is not None and right.attribute is not None
            yield left.attribute, right.attribute
