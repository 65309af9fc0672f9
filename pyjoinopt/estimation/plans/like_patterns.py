"""Which fraction of texts matches a pattern, when no text can be looked at.

Two kinds of text columns need two rules.

* **Texts that repeat** (notes, categories: fewer distinct values than half of the rows): a pattern picks some of the
  values, and what is searched for exists more often than not. So the length of a pattern means little:
  `%(producer)%` is no rarer than `%Tim%`.
* **Texts that identify** (names, titles; also texts of which no distinct count is known): the matches are texts that
  hold these letters by chance, so each further letter leaves a part of them.

        name LIKE '%Bert%'         0.1 * 0.4 ** 3 = 0.6 % of the names
        title LIKE 'Kung Fu Pa%'   0.05 * 0.4 ** 7, and no less than the least share, 0.1 %

Where the share of an equality is known, a pattern is true for no less: the texts that match hold at least one value.

Source: PostgreSQL's `like_fixed_prefix` and `patternsel` multiply 0.2 for each letter and limit the result to 0.0001.
Here it is less for both, because an estimate that is too low costs more than one that is too high.
"""

from __future__ import annotations

from pyjoinopt.estimation.model.assumptions import ASSUMPTIONS
from pyjoinopt.plan.expressions import Expression

PATTERNS = frozenset({"StartsWith", "EndsWith", "Contains", "Like", "ILike", "RLike"})
_LIKE = ("Like", "ILike")


def pattern_share(e: Expression, equal: float, repeated: bool | None = None) -> float:
    """Share of a column's texts, NULLs not counted, that match.

    Args:
        e: one of `PATTERNS`.
        equal: share of the texts that are equal to one text.
        repeated: whether many rows have the same text; None if no distinct count is known, and `equal` is a default.

    >>> from pyjoinopt.plan.expressions import Attribute, literal, reference
    >>> name = reference(Attribute(0, 1, "name", "string"))
    >>> def like(pattern, repeated=None):
    ...     return pattern_share(Expression("Like", (name, literal(pattern))), 0.0001, repeated)
    >>> [round(like(p), 4) for p in ("B%", "%B%", "%Bar%", "%Barbara Ann%", "Barbara", "%")]
    [0.05, 0.1, 0.016, 0.001, 0.0001, 1.0]
    >>> [round(like(p, True), 4) for p in ("Bar%", "%Bar%", "%Barbara Ann%", "Barbara")]
    [0.05, 0.1, 0.1, 0.0001]
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
    share = ASSUMPTIONS.pattern_prefix if prefix else ASSUMPTIONS.pattern_contains
    if not repeated:
        count = sum(map(str.isalnum, letters))
        share = max(ASSUMPTIONS.pattern_least, share * ASSUMPTIONS.pattern_letter ** max(0, count - 1))
    return share if repeated is None else max(equal, share)
