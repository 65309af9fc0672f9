"""What follows from predicates that are known to hold.

Three kinds of conclusion:

- From `a = b`, both columns: every other predicate over `a` also holds with `b` in place of `a`, and the reverse. With
  a cast on one side, `cast(a) = b`, only `b` can be replaced, since the cast may lose what `a` was.
- From `a = 5`: every other predicate holds with 5 in place of `a` (Spark 4.3).
- From any predicate: the columns that it needs to be true are not NULL. `a + b > 5` implies it of both, because a
  null-intolerant function of NULL is NULL; of a struct only the field that is read: from `s.x > 5` follows
  `s.x IS NOT NULL`.

`<=>` is no source of replacements: a projection's alias is known by it (`x <=> a + 1`), and replacing `a` by what is
computed from it would never come to an end.

Two strings may be equal by their collation and yet differ. Then one replaces the other only as a direct operand of a
comparison by that same collation, and never a literal.

Source: Catalyst's `ConstraintHelper`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyjoinopt.plan.expressions import NULL_INTOLERANT, Attribute, Expression, call, reference, rewrite, substitute
from pyjoinopt.plan.facts.value_numbers import ExpressionSet
from pyjoinopt.util.bitset import singletons

_COMPARISONS = frozenset(
    {"EqualTo", "EqualNullSafe", "LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual"}
)
_FIELDS = frozenset({"GetStructField", "GetArrayStructFields"})


def null_intolerant_columns(predicate: Expression) -> list[Expression]:
    """Columns and struct fields that are certainly not NULL on a row where `predicate` is true.

    >>> a, b = reference(Attribute(0, 1, "a")), reference(Attribute(1, 2, "b"))
    >>> null_intolerant_columns(call("GreaterThan", a, b))
    [a, b]
    """
    found, stack = [], list(predicate.children) if predicate.kind == "IsNotNull" else [predicate]
    while stack:
        e = stack.pop()
        if e.kind == "AttributeReference" or _is_field(e):
            found.append(e)
        elif e.flags & NULL_INTOLERANT:
            stack.extend(reversed(e.children))
    return found


def _is_field(e: Expression) -> bool:
    """A column's field, or a field of that: nothing but extraction down to a column."""
    if e.kind not in _FIELDS:
        return False
    while e.kind in _FIELDS:
        e = e.children[0]
    return e.kind == "AttributeReference"


def not_null(predicates: ExpressionSet, columns: Iterable[Attribute]) -> list[Expression]:
    """IS NOT NULL for what the predicates need to be so, and for the columns, as far as it is not among them."""
    found, memo = ExpressionSet(predicates.meanings), predicates.meanings.memo
    for predicate in predicates:
        if id(predicate) not in memo:
            memo[id(predicate)] = [call("IsNotNull", column) for column in null_intolerant_columns(predicate)]
        found.update(memo[id(predicate)])
    found.update(call("IsNotNull", reference(a)) for a in columns)
    return found.without(predicates)


def replaced_by_equals(predicates: ExpressionSet, most: int) -> list[Expression]:
    """The predicates again with one column for another that equals it, those that are new; about `most` of them."""
    inferred = ExpressionSet(predicates.meanings)
    others = [p for p in predicates if p.kind != "IsNotNull"]
    readers: dict[int, list[Expression]] | None = None
    for equality in others:
        replacements = _replacements(equality)
        if not replacements:
            continue
        readers = _readers(others) if readers is None else readers
        null_safe = predicates.meanings(call("EqualNullSafe", *equality.children))
        for old, new in replacements:
            for predicate in readers.get(old.references, ()):
                if predicate is equality:
                    continue
                if predicate.kind == "EqualNullSafe" and predicates.meanings(predicate) == null_safe:
                    continue
                inferred.add(_replaced(predicates, predicate, old, new))
                if len(inferred) >= most:
                    return inferred.without(predicates)
    return inferred.without(predicates)


def _readers(predicates: Iterable[Expression]) -> dict[int, list[Expression]]:
    """Column (as a set of one) -> the predicates that read it."""
    readers: dict[int, list[Expression]] = {}
    for predicate in predicates:
        for column in singletons(predicate.references):
            readers.setdefault(column, []).append(predicate)
    return readers


def _replacements(equality: Expression) -> list[tuple[Expression, Expression]]:
    """What an equality allows to be replaced, and by what."""
    if equality.kind != "EqualTo":
        return []
    left, right = equality.children
    if left.kind == "AttributeReference" and right.kind == "AttributeReference":
        return [(left, right), (right, left)]
    if _is_cast_column(left) and right.kind == "AttributeReference":
        return [(right, left)]
    if _is_cast_column(right) and left.kind == "AttributeReference":
        return [(left, right)]
    return []


def _is_cast_column(e: Expression) -> bool:
    return e.kind == "Cast" and e.children[0].kind == "AttributeReference"


def replaced_by_literals(predicates: ExpressionSet, most: int) -> list[Expression]:
    """The predicates again with a literal for a column that equals it, those that are new; about `most` of them.

    Equalities that replace columns themselves are not changed, and neither is any `<=>`.
    """
    bindings: dict[int, tuple[Expression, Expression]] = {}
    for p in predicates:
        if p.kind == "EqualTo":
            for column, literal in (p.children, p.children[::-1]):
                if column.kind == "AttributeReference" and literal.kind == "Literal" and binary_stable(column.type):
                    bindings[column.references] = (column, literal)
                    break
    if not bindings:
        return []
    inferred = ExpressionSet(predicates.meanings)
    targets = [p for p in predicates if p.kind not in ("EqualNullSafe", "IsNotNull") and not _replacements(p)]
    for column, literal in bindings.values():
        for predicate in targets:
            if predicate.references & column.references:
                inferred.add(_replaced(predicates, predicate, column, literal))
                if len(inferred) >= most:
                    return inferred.without(predicates)
    return inferred.without(predicates)


def binary_stable(type: str) -> bool:
    """False for strings that can be equal without being the same bytes, and for what contains such strings.

    >>> binary_stable("string collate UTF8_LCASE"), binary_stable("array<string>")
    (False, True)
    """
    return " collate " not in type.lower()


def _replaced(known: ExpressionSet, predicate: Expression, old: Expression, new: Expression) -> Expression:
    """The predicate with `new` for the column `old`, made once however many nodes know both."""
    memo, key = known.meanings.memo, (id(predicate), old.references, known.meanings(new))
    if key not in memo:
        memo[key] = _replace(predicate, old, new)
    result: Expression = memo[key]
    return result


def _replace(predicate: Expression, old: Expression, new: Expression) -> Expression:
    if binary_stable(old.type) and old.attribute is not None:
        return substitute(predicate, {old.attribute.bit: new})

    def change(e: Expression) -> Expression:
        if e.kind not in _COMPARISONS or any(c.type != old.type for c in e.children):
            return e
        return e.with_children(tuple(new if c.same(old) else c for c in e.children))

    return rewrite(predicate, change)


def merged_by_or(one: Sequence[Expression], other: Sequence[Expression]) -> list[Expression]:
    """What holds of rows that come from either of two places: for each column, what is known of it there or here.

    Args:
        one, other: what holds of the rows of each place, what holds in both left out.
    """
    by_column: list[dict[int, Expression]] = []
    for predicates in (one, other):
        grouped: dict[int, Expression] = {}
        for p in predicates:
            if p.references.bit_count() == 1:
                known = grouped.get(p.references)
                grouped[p.references] = p if known is None else call("And", known, p)
        by_column.append(grouped)
    first, second = by_column
    return [call("Or", p, second[column]) for column, p in first.items() if column in second]
