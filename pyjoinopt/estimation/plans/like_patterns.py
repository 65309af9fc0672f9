"""Which fraction of texts matches a pattern, when no text can be looked at.

What is searched for exists more often than not, so the length of a pattern means little: `%(producer)%` is no rarer
than `%Tim%`. A pattern is true for no less than an equality is: the texts that match it hold at least one value.
"""

from __future__ import annotations

from pyjoinopt.estimation.model.assumptions import ASSUMPTIONS
from pyjoinopt.plan.expressions import Expression

PATTERNS = frozenset({"StartsWith", "EndsWith", "Contains", "Like", "ILike", "RLike"})
_LIKE = ("Like", "ILike")


def pattern_share(e: Expression, equal: float) -> float:
    """Share of a column's texts, NULLs not counted, that match.

    Args:
        e: one of `PATTERNS`.
        equal: share of the texts that are equal to one text.

    >>> from pyjoinopt.plan.expressions import Attribute, literal, reference
    >>> name = reference(Attribute(0, 1, "name", "string"))
    >>> def like(pattern): return pattern_share(Expression("Like", (name, literal(pattern, "string"))), 0.001)
    >>> [round(like(p), 3) for p in ("Bar%", "%Bar%", "Barbara", "%")]
    [0.05, 0.1, 0.001, 1.0]
    """
    text = e.children[1].value if len(e.children) > 1 else None
    prefix = e.kind == "StartsWith"
    if e.kind == "RLike" or not isinstance(text, str):
        return ASSUMPTIONS.pattern_prefix if prefix else ASSUMPTIONS.pattern_contains
    letters = text
    if e.kind in _LIKE:
        letters = text.replace("%", "").replace("_", "")
        if letters == text:
            return equal
        if not text.strip("%"):
            return 1.0
        prefix = text[0] not in "%_"
    if not letters:
        return 1.0
    return max(equal, ASSUMPTIONS.pattern_prefix if prefix else ASSUMPTIONS.pattern_contains)
