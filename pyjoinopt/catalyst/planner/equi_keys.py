"""The keys by which a join can hash or sort its sides.

A join compares every pair of rows unless its condition holds an equality with one side of the `=` made of the left
input's columns and the other of the right's. Such a pair of expressions is a *key*: rows can be brought together by
its value, and only the rest of the condition is tested pair by pair.

    a JOIN b ON a.x + 1 = b.y AND a.z < b.z          keys (a.x + 1, b.y), rest a.z < b.z

`a <=> b` holds for two NULLs as well, which no hash table or merge finds. It becomes two ordinary keys: the values
with NULL replaced by some default, and whether they were NULL. An equality with a constant is no key: one side of it
reads no column.

NOT IN is the odd one: `a NOT IN (SELECT b)` keeps rows where `a = b OR (a = b) IS NULL` holds for no `b`. No
equality ties the sides, but with a single column a hash table and two special cases (NULL in it, NULL looked up)
answer it. That is a *null-aware anti join*.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyjoinopt.plan.equi_keys import Equality, equi_key, over_sides
from pyjoinopt.plan.expressions import DETERMINISTIC, FOLDABLE, Expression, call, conjunction, conjuncts
from pyjoinopt.plan.nodes import ANTI, Join


@dataclass(frozen=True, slots=True)
class EquiKeys:
    """The keys of an equi-join.

    Attributes:
        left, right: key expressions over either input, pair by pair.
        condition: the predicates that are no keys, None for none.
    """

    left: tuple[Expression, ...]
    right: tuple[Expression, ...]
    condition: Expression | None = None


def extract_equi_keys(join: Join) -> EquiKeys | None:
    """The keys of a join, None if it is not an equi-join (Catalyst's `ExtractEquiJoinKeys`).

    >>> from pyjoinopt.plan.expressions import Attribute, reference
    >>> from pyjoinopt.plan.nodes import relation
    >>> a, b = Attribute(0, 1, "a"), Attribute(1, 2, "b")
    >>> x, y = reference(a), reference(b)
    >>> condition = call("And", call("EqualTo", y, x), call("LessThan", x, y))
    >>> extract_equi_keys(Join(relation("s", [a]), relation("t", [b]), "Inner", condition))
    EquiKeys(left=(a,), right=(b,), condition=(a < b))
    >>> extract_equi_keys(Join(relation("s", [a]), relation("t", [b]), "Inner", call("EqualNullSafe", x, y))).left
    (coalesce(a, default), (a IS NULL))
    """
    left: list[Expression] = []
    right: list[Expression] = []
    others = []
    for predicate in conjuncts(join.condition):
        key = _key(predicate, join)
        if key is None:
            others.append(predicate)
        elif key.null_safe:
            left += [_without_null(key.left), call("IsNull", key.left)]
            right += [_without_null(key.right), call("IsNull", key.right)]
        else:
            left.append(key.left)
            right.append(key.right)
    return EquiKeys(tuple(left), tuple(right), conjunction(others)) if left else None


def null_aware_anti_keys(join: Join) -> tuple[Expression, Expression] | None:
    """The columns of a NOT IN, left and right; None if the join is none over a single column.

    Catalyst's `ExtractSingleColumnNullAwareAntiJoin`, apart from its setting.
    """
    either = join.condition
    if join.join_type != ANTI or either is None or either.kind != "Or":
        return None
    equality, unknown = either.children
    if equality.kind != "EqualTo" or unknown.kind != "IsNull" or unknown.children[0].kind != "EqualTo":
        return None
    if not _means_the_same(equality, unknown.children[0]):
        return None
    key = over_sides(equality, join.left.output_set, join.right.output_set)
    return None if key is None else (key.left, key.right)


def _key(predicate: Expression, join: Join) -> Equality | None:
    """An equality over both sides. Only one with `=` needs a column of either; `a <=> 3` is a key to Catalyst."""
    sides = join.left.output_set, join.right.output_set
    return over_sides(predicate, *sides) if predicate.kind == "EqualNullSafe" else equi_key(predicate, *sides)


def _without_null(e: Expression) -> Expression:
    default = Expression("Literal", type=e.type, flags=DETERMINISTIC | FOLDABLE, text="default")
    return Expression("Coalesce", (e, default), e.type, e.flags & DETERMINISTIC)


def _means_the_same(one: Expression, other: Expression) -> bool:
    return one.deterministic and other.deterministic and one.same(other)
