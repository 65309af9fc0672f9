"""The logarithm of the rows of a set of relations, and the width of its rows, as sums over the relations.

A search needs sets that are one relation larger than a set that it needed before, over and over. So sums are memoised,
and for a larger set only the contribution of the new relation is computed: its own rows, the terms that it is in, and
the factors that it completes, and what samples of joins correct.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from typing import NamedTuple

from pyjoinopt.joins.cardinality.composite_keys import Term
from pyjoinopt.joins.cardinality.join_synopses import SynopsisCorrection
from pyjoinopt.util.bitset import members

#: Bytes of a row that has no column.
NO_COLUMN = 8.0


class Factor(NamedTuple):
    """What a set's rows are multiplied with once it is complete.

    Attributes:
        tes: the vertices that complete it.
        log: the logarithm of the factor.
    """

    tes: int
    log: float


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


class LogCardinality:
    """The sums of sets of relations. Immutable but for its memo.

    Args:
        base: per relation its own share of the logarithm.
        terms: minima over relations.
        widths: per relation the bytes of its part of a row.
        factors: of predicates, joins and row counts that are known to be true.

    Attributes:
        factors: these.
        corrections: those of `with_correction`.
    """

    def __init__(
        self, base: Sequence[float], terms: Sequence[Term], widths: Sequence[float], factors: Iterable[Factor] = ()
    ) -> None:
        self._base, self._widths = base, widths
        self._terms = [
            _Term(term.sign, sum(1 << v for v in term.values), sorted((x, 1 << v) for v, x in term.values.items()))
            for term in terms
        ]
        # Of each relation: the sign of each of its terms, its own value there, and those of all relations.
        self._terms_of: list[list[tuple[float, float, list[tuple[float, int]]]]] = [[] for _ in base]
        for of, term in zip(terms, self._terms):
            for vertex, own in of.values.items():
                self._terms_of[vertex].append((term.sign, own, term.ascending))
        self.factors = tuple(factors)
        self.corrections: tuple[SynopsisCorrection, ...] = ()
        self._factors_of: list[list[Factor]] = [[] for _ in base]
        for factor in self.factors:
            for vertex in members(factor.tes):
                self._factors_of[vertex].append(factor)
        self._corrections_of: list[list[SynopsisCorrection]] = [[] for _ in base]
        self._known: dict[int, Sum] = {}

    def with_factor(self, factor: Factor) -> LogCardinality:
        """The sums with one more factor."""
        larger = copy(self)
        larger.factors, larger._known = (*self.factors, factor), {}
        larger._factors_of = list(self._factors_of)
        for vertex in members(factor.tes):
            larger._factors_of[vertex] = [*self._factors_of[vertex], factor]
        return larger

    def with_correction(self, correction: SynopsisCorrection) -> LogCardinality:
        """The sums with one more correction."""
        larger = copy(self)
        larger.corrections = (*self.corrections, correction)
        larger._known = {of: found for of, found in self._known.items() if not of & correction.center}
        larger._corrections_of = list(self._corrections_of)
        for vertex in members(correction.touched):
            larger._corrections_of[vertex] = [*self._corrections_of[vertex], correction]
        return larger

    def __call__(self, relations: int, added: int = 0) -> Sum:
        """The sum of a set; faster if `added` is a relation of it (as a set), and the rest's sum is known."""
        found = self._known.get(relations)
        if found is None:
            before = None if added & (added - 1) else self._known.get(relations ^ added)
            found = self._whole(relations) if before is None else self._larger(before, relations, added)
            self._known[relations] = found
        return found

    def log_factor(self, relation: int) -> float | None:
        """Logarithm of what the rows of a set that this relation is joined with are multiplied with.

        None if that depends on the set: the relation is in more than one predicate, in a class of more than two, or is
        corrected.
        """
        factors, terms = self._factors_of[relation], self._terms_of[relation]
        if len(factors) + len(terms) != 1 or self._corrections_of[relation]:
            return None
        if factors:
            return self._base[relation] + factors[0].log
        ((sign, own, ascending),) = terms
        if len(ascending) != 2:
            return None
        other = next(value for value, bit in ascending if bit != 1 << relation)
        return self._base[relation] + sign * (min(own, other) - other)

    def _larger(self, before: Sum, relations: int, added: int) -> Sum:
        vertex, rest = added.bit_length() - 1, relations ^ added
        total = before.log_rows + self._base[vertex]
        for sign, own, ascending in self._terms_of[vertex]:
            for value, bit in ascending:
                if bit & rest:
                    if own < value:
                        total += sign * own - sign * value
                    break
            else:
                total += sign * own
        for tes, log in self._factors_of[vertex]:
            if not tes & ~relations:
                total += log
        for correction in self._corrections_of[vertex]:
            if correction.center & relations:
                total += correction(relations) - correction(rest)
        return Sum(total, before.width + self._widths[vertex])

    def _whole(self, relations: int) -> Sum:
        total, width, rest = 0.0, NO_COLUMN, relations
        while rest:
            low = rest & -rest
            vertex = low.bit_length() - 1
            total += self._base[vertex]
            width += self._widths[vertex]
            rest ^= low
        for term in self._terms:
            if term.touched & relations:
                total += term.of(relations)
        for tes, log in self.factors:
            if not tes & ~relations:
                total += log
        for correction in self.corrections:
            if correction.center & relations:
                total += correction(relations)
        return Sum(total, width)
