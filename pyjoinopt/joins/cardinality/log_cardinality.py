"""What a set of relations adds up to: the logarithm of its rows, and the width of one.

A search asks for sets that are one relation larger than one it has asked for before, over and over. So sums are
remembered, and of a larger set only what the new relation adds is worked out: its own share, the terms that it is in,
and the factors that it completes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pyjoinopt.joins.cardinality.composite_keys import Term


class Sum(NamedTuple):
    """Of a set: the logarithm of its rows, and the bytes of a row."""

    log_rows: float
    width: float


class _Term(NamedTuple):
    """A minimum over the relations of a set: `sign` times the smallest of their values, of those in `touched`."""

    sign: float
    touched: int
    ascending: list[tuple[float, int]]

    def of(self, relations: int) -> float:
        for value, bit in self.ascending:
            if bit & relations:
                return self.sign * value
        return 0.0


class Sums:
    """The sums of sets of relations.

    Args:
        base: per relation its own share.
        terms: minima that sets take part in.
        widths: per relation the bytes of its part of a row.
    """

    #: Bytes of a row that has no column.
    NO_COLUMN = 8.0

    def __init__(self, base: Sequence[float], terms: Sequence[Term], widths: Sequence[float]) -> None:
        self._base = base
        self._widths = list(widths)
        self._terms = [
            _Term(term.sign, sum(1 << v for v in term.values), sorted((x, 1 << v) for v, x in term.values.items()))
            for term in terms
        ]
        self._terms_of = [[term for term in self._terms if term.touched >> v & 1] for v in range(len(base))]
        self.factors: list[tuple[int, float]] = []  # (vertices that complete it, logarithm)
        self._known: dict[int, Sum] = {}

    def without_columns(self, vertex: int) -> None:
        """A relation gives no column to any result."""
        self._widths[vertex] = 0.0
        self._known.clear()

    def factor(self, required: int, value: float) -> None:
        """Sets that have all of `required` have `value` in their sum."""
        self.factors.append((required, value))
        self._known.clear()

    def __call__(self, relations: int, added: int = 0) -> Sum:
        """The sum of a set; quicker if `added` is a relation of it (as a set), and the rest's sum is known."""
        found = self._known.get(relations)
        if found is None:
            before = None if added & (added - 1) else self._known.get(relations ^ added)
            found = self._whole(relations) if before is None else self._larger(before, relations, added)
            self._known[relations] = found
        return found

    def _larger(self, before: Sum, relations: int, added: int) -> Sum:
        vertex, rest = added.bit_length() - 1, relations ^ added
        total = before.log_rows + self._base[vertex]
        for term in self._terms_of[vertex]:
            total += term.of(relations) - term.of(rest)
        for required, value in self.factors:
            if required & added and not required & ~relations:
                total += value
        return Sum(total, before.width + self._widths[vertex])

    def _whole(self, relations: int) -> Sum:
        total, width, rest = 0.0, self.NO_COLUMN, relations
        while rest:
            low = rest & -rest
            vertex = low.bit_length() - 1
            total += self._base[vertex]
            width += self._widths[vertex]
            rest ^= low
        for term in self._terms:
            if term.touched & relations:
                total += term.of(relations)
        for required, value in self.factors:
            if not required & ~relations:
                total += value
        return Sum(total, width)
