"""Common expressions inlined.

`x BETWEEN 1 AND 5` arrives from Spark 4 as `With(ref >= 1 AND ref <= 5, ref := x)`, so that `x` is computed once.
Rules and estimates read the long form of a predicate; the JVM keeps the short one.
"""

from __future__ import annotations

from pyjoinopt.plan import limits
from pyjoinopt.plan.expressions import UNEVALUABLE, Expression, rewrite, walk

#: Functions that an analysed plan keeps by name around their definition, their only child.
_REPLACED_BY_CHILD = frozenset({"Between", "NullIf", "IfNull", "Nvl", "Nvl2"})


def inline_common_expressions(predicate: Expression) -> Expression:
    """The predicate with BETWEEN and its like replaced by their definitions, common expressions inlined.

    A reference means the definition with its id in the nearest `With` around it. Where an id is not unique, or the
    result would be very long, the `With` is kept.
    """
    if not predicate.contains & UNEVALUABLE:
        return predicate
    if predicate.inlined is None:
        predicate.inlined = _inlined(predicate)
    return predicate.inlined


def _inlined(predicate: Expression) -> Expression:
    if not any(e.kind == "With" for e in walk(predicate)):
        return predicate

    def change(e: Expression) -> Expression:
        if e.kind in _REPLACED_BY_CHILD and len(e.children) == 1:
            return e.children[0]
        if e.kind != "With":
            return e
        child, *definitions = e.children
        meant = {d.info.get("id"): d.children[0] for d in definitions}
        if len(meant) < len(definitions) or not _short(child, meant):
            return e
        return rewrite(child, lambda r: meant.get(r.info.get("id"), r) if r.kind == "CommonExpressionRef" else r)

    return rewrite(predicate, change)


def _short(child: Expression, meant: dict[int | None, Expression]) -> bool:
    """Would the definitions fit in? Not below a `With` that was kept and defines one of the same ids."""
    sizes = {id: sum(1 for _ in walk(definition)) for id, definition in meant.items()}
    length = 0
    for e in walk(child):
        id = e.info.get("id")
        if e.kind == "CommonExpressionDef" and id in meant:
            return False
        length += sizes.get(id, 1) if e.kind == "CommonExpressionRef" else 1
        if length > limits.COMMON_EXPRESSIONS:
            return False
    return True
