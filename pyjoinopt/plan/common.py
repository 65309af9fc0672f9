"""Common expressions written out.

`x BETWEEN 1 AND 5` arrives from Spark 4 as `With(ref >= 1 AND ref <= 5, ref := x)`, so that `x` is computed once.
Whoever asks what a predicate means reads it in its long form; the JVM keeps the short one.
"""

from __future__ import annotations

from pyjoinopt.plan.expressions import UNEVALUABLE, Expression, rewrite, walk

#: Functions that an analysed plan keeps by name around what they stand for, their only child.
_STAND_FOR = frozenset({"Between", "NullIf", "IfNull", "Nvl", "Nvl2"})


def written_out(predicate: Expression) -> Expression:
    """The predicate with BETWEEN and its like replaced by what they stand for, common expressions written out.

    A common expression is left as it is where more than one could be meant.
    """
    if not predicate.contains & UNEVALUABLE or not any(e.kind == "With" for e in walk(predicate)):
        return predicate

    def change(e: Expression) -> Expression:
        if e.kind in _STAND_FOR and len(e.children) == 1:
            return e.children[0]
        if e.kind != "With" or len(e.children) != 2 or any(inner.kind == "With" for inner in walk(e.children[0])):
            return e
        child, definition = e.children
        return rewrite(child, lambda r: definition.children[0] if r.kind == "CommonExpressionRef" else r)

    return rewrite(predicate, change)
