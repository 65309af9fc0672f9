"""Values that many rows share: where a column is compared with one of them, or two columns have some in common.

**A constant** that is among the most common values of a column keeps its share of the rows. All other values share the
other rows evenly, and none of them is more frequent than the rarest of the most common ones (PostgreSQL's
`var_eq_const` in `selfuncs.c`).

**Two columns.** Distinct counts take all values for equally frequent. Where one of the columns is a key that is near
enough the truth: every row matches one row. Where neither is, the few values that both have often make nearly all the
rows: of two tables with half of their rows under 'unknown', every fourth pair is of these. The chance that two random
rows have the same value is the sum of the products of the shares of the values that are frequent on both sides; what is
left over is taken for evenly spread over the other values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

#: Values with their shares of the rows that are not NULL.
Heavy = tuple[tuple[object, float], ...]


def read(given: Any, filled: float) -> Heavy:
    """Heavy values as the shim sends them, whose shares are of all rows; none if they cannot be decoded.

    Args:
        given: `[{"value", "share"}, ...]`.
        filled: the fraction of the rows that are not NULL.

    >>> read([{"value": 7, "share": 0.25}, {"share": 0.1}, {"value": "x", "share": "many"}], 0.5)
    ((7, 0.5),)
    """
    if not isinstance(given, Sequence) or filled <= 0:
        return ()
    found = []
    for one in given:
        value, share = (one.get("value"), one.get("share")) if isinstance(one, Mapping) else (None, None)
        if value is not None and isinstance(share, (int, float)) and 0 < share <= 1:
            found.append((value, min(1.0, share / filled)))
    return tuple(found) if sum(share for _, share in found) <= 1.01 else ()


def share_of_value(heavy: Heavy, value: object, ndv: float, rows: float) -> float:
    """The share of the rows with one value, of those that are not NULL.

    Args:
        heavy: the most common values of the column, at least one.
        value: a number or a text.
        ndv: distinct values of the column.
        rows: of the relation: a value is in one of them at least.

    >>> kinds = ((1, 0.5), (2.0, 0.25))
    >>> share_of_value(kinds, 1.0, 27.0, 1e6), share_of_value(kinds, 3.0, 27.0, 1e6)
    (0.5, 0.01)
    >>> share_of_value((("x", 1.0),), "y", 1.0, 1e6)
    1e-06
    """
    shares = dict(heavy)
    if value in shares:
        return shares[value]
    others = max(0.0, 1.0 - sum(shares.values())) / max(1.0, ndv - len(shares))
    return max(1.0 / max(1.0, rows), min(others, *shares.values()))


def effective_ndv(domains: Iterable[float], heavy: Sequence[Heavy]) -> list[float]:
    """Of how many equally frequent values pairs of rows would meet as often as they do, for each column of a class.

    >>> half = (("unknown", 0.5),)
    >>> [round(d, 2) for d in effective_ndv([101.0, 101.0], [half, half])]  # 1 / (0.5 * 0.5 + 0.5 * 0.5 / 100)
    [3.96, 3.96]
    >>> effective_ndv([101.0, 50.0], [half, ()])
    [101.0, 50.0]
    """
    before = list(domains)
    after = list(before)
    frequent = [(i, dict(values)) for i, values in enumerate(heavy) if values]
    for n, (i, of_one) in enumerate(frequent):
        for j, of_other in frequent[n + 1 :]:
            common = of_one.keys() & of_other.keys()
            if not common:
                continue
            meeting = sum(of_one[value] * of_other[value] for value in common)
            rest = (1.0 - sum(of_one[v] for v in common)) * (1.0 - sum(of_other[v] for v in common))
            values = max(1.0, max(before[i], before[j]) - len(common))
            fewer = max(1.0, 1.0 / (meeting + max(0.0, rest) / values))
            after[i], after[j] = min(after[i], fewer), min(after[j], fewer)
    return after
