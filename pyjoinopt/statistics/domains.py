"""How many values two or more columns share, where they are compared with `=`.

Usually one of them is a key and the others refer to it. Exact distinct counts are rare; what file footers give is a
range, and a range only bounds the count. So the columns that may be keys (no two rows are known to share a value)
are found first, and the smallest of them is taken for *the* key: every column of which only a bound is known has at
most as many values. An order line's key column spans as many numbers as there are lines, yet it has only as many
values as there are orders.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Member:
    """One column of a class of equal columns; the first three are those of `ColumnStatistics`, `rows` is unfiltered."""

    ndv: float | None
    guessed: bool
    key_values: float | None
    rows: float


def shared_domains(members: Sequence[Member]) -> list[float]:
    """Distinct values of each member, at least 1.

    >>> orders, lines = Member(1500.0, True, 1500.0, 1500.0), Member(6000.0, True, 6000.0, 6000.0)
    >>> shared_domains([orders, lines])
    [1500.0, 1500.0]
    >>> shared_domains([Member(None, True, None, 1e6), Member(25.0, False, 25.0, 25.0)])
    [25.0, 25.0]
    """
    keys = [(m.guessed, m.key_values) for m in members if m.key_values is not None]
    sure = [values for guessed, values in keys if not guessed]
    maybe = [values for _, values in keys] + [m.rows for m in members if m.ndv is None]
    largest = min(sure or maybe, default=float("inf"))
    domains = []
    for m in members:
        ndv = m.rows if m.ndv is None else m.ndv
        domains.append(max(1.0, min(ndv, largest) if m.guessed or m.ndv is None else ndv))
    return domains
