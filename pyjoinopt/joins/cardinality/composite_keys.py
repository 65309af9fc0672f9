"""Classes of equal columns, and bundles of classes that are one composite key; `estimator` explains what they mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol

from pyjoinopt.estimation.model.assumptions import ASSUMPTIONS
from pyjoinopt.estimation.plans.composite_key_rows import key_rows
from pyjoinopt.util.disjoint_sets import DisjointSets

#: Numbers of classes, ascending.
Bundle = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Term:
    """A class (sign +1: its minimum comes back) or the correction for a bundle (sign -1 for its classes)."""

    sign: float
    values: dict[int, float]  # vertex -> logarithm of its distinct count


class KnownKeys(Protocol):
    """What is known of the keys of relations."""

    def is_key(self, vertex: int, classes: Sequence[int]) -> bool:
        """Whether the columns of some classes are known to be a key of a vertex."""


_DIGITS = ASSUMPTIONS.digits


class CompositeKeys:
    """Corrections for classes that connect the same relations: a composite key has no more values than rows.

    Bundles of more classes come first, and a column of a relation counts in one of them. Bundles of equally many
    classes may share columns of a relation: a row joined with the one before it and with the one after it, in the same
    group of rows. Then the classes that all of them have are a key of their own, and what the others add is what is
    left of each whole key.

    Args:
        classes: per class, vertex -> logarithm of the distinct count there.
        base_rows: unfiltered rows of each vertex.
        unfiltered: `classes` before filters.
        keys: which columns are known to be keys.
        names: of each vertex; they decide between bundles that are alike, in whatever order the query was written.
    """

    def __init__(
        self,
        classes: Sequence[dict[int, float]],
        base_rows: Sequence[float],
        unfiltered: Sequence[dict[int, float]] = (),
        keys: KnownKeys | None = None,
        names: Sequence[str] = (),
    ) -> None:
        self._classes, self._unfiltered, self._base_rows = classes, unfiltered or classes, base_rows
        self._keys, self._names = keys, names
        self._bundles = _bundles(classes)

    def terms(self) -> list[Term]:
        """The corrections."""
        terms: list[Term] = []
        taken: frozenset[tuple[int, int]] = frozenset()
        for _, alike in groupby(sorted(self._bundles, key=self._rank), len):
            for rivals in _sharing(list(alike), self._bundles):
                core = tuple(sorted(set.intersection(*map(set, rivals)))) if len(rivals) > 1 else ()
                below: dict[int, float] = {}
                if core:
                    everyone = sorted(set().union(*(self._bundles[bundle] for bundle in rivals)))
                    first = self._take(core, everyone, {}, (), taken)
                    taken, below = taken | first.taken, first.values
                    terms += first.terms
                for bundle in rivals:
                    each = self._take(bundle, sorted(self._bundles[bundle]), below, core, taken)
                    taken |= each.taken
                    terms += each.terms
        return terms

    def _take(
        self,
        bundle: Bundle,
        vertices: Sequence[int],
        below: dict[int, float],
        core: Bundle,
        taken: frozenset[tuple[int, int]],
    ) -> _Taken:
        """How many values a whole bundle has, at the vertices where no other bundle took one of its columns before.

        Args:
            bundle: the classes.
            vertices: those that all of them connect.
            below: the values of the classes of `core`.
            core: classes that are corrected elsewhere.
            taken: (class, vertex) in some bundle already.
        """
        classes = self._classes
        vertices = [v for v in vertices if not any((c, v) in taken for c in bundle if c not in core)]
        counts = [(self._base_rows[v], [math.exp(self._unfiltered[c][v]) for c in bundle]) for v in vertices]
        keys = [self._keys is not None and self._keys.is_key(v, bundle) for v in vertices]
        cap = math.log(key_rows(counts, keys)) if counts else 0.0
        whole = {v: math.fsum(classes[c][v] for c in bundle) for v in vertices}
        capped = {v: min(cap, values) for v, values in whole.items()}
        own = [c for c in bundle if c not in core]
        if len(vertices) < 2 or len(bundle) < 2 or max(whole.values()) <= cap:
            return _Taken(capped)
        rest = {v: values - below.get(v, math.fsum(classes[c][v] for c in core)) for v, values in capped.items()}
        terms = [Term(-1.0, {v: classes[c][v] for v in vertices}) for c in own]
        terms.append(Term(1.0, {v: max(0.0, values) for v, values in rest.items()}))
        return _Taken(capped, tuple(terms), frozenset((c, v) for c in own for v in vertices))

    def _rank(self, bundle: Bundle) -> tuple[int, float, list[str]]:
        vertices = self._bundles[bundle]
        values = max(math.fsum(self._classes[c][v] for c in bundle) for v in vertices)
        return -len(bundle), -round(values, _DIGITS), sorted(self._names[v] for v in vertices if self._names)


@dataclass(frozen=True)
class _Taken:
    """What one bundle gives.

    Attributes:
        values: vertex -> logarithm of the distinct values of the whole bundle there.
        terms: the corrections.
        taken: the columns that count in it, as (class, vertex).
    """

    values: dict[int, float]
    terms: tuple[Term, ...] = ()
    taken: frozenset[tuple[int, int]] = frozenset()


def _bundles(classes: Sequence[dict[int, float]]) -> dict[Bundle, set[int]]:
    """The classes that some two vertices share, if there are two or more, and all vertices that share them so."""
    of_vertex: dict[int, list[int]] = {}
    for c, values in enumerate(classes):
        for vertex in values:
            of_vertex.setdefault(vertex, []).append(c)
    bundles: dict[Bundle, set[int]] = {}
    for vertex, own in of_vertex.items():
        for other, shared in _shared(vertex, own, classes).items():
            bundles.setdefault(tuple(sorted(shared)), set()).update((vertex, other))
    return bundles


def _sharing(alike: list[Bundle], members: dict[Bundle, set[int]]) -> list[list[Bundle]]:
    """Bundles, grouped by whether they have columns of a relation in common, directly or through others."""
    groups = DisjointSets[object]()
    for bundle in alike:
        for c in bundle:
            for v in members[bundle]:
                groups.union(frozenset(bundle), (c, v))
    place = {frozenset(bundle): i for i, bundle in enumerate(alike)}
    return [[alike[i] for i in sorted(place[key] for key in group if key in place)] for group in groups.groups()]


def _shared(vertex: int, own: Sequence[int], classes: Sequence[dict[int, float]]) -> dict[int, list[int]]:
    """Later vertices that share two classes or more with this one, and which."""
    if len(own) < 2:
        return {}
    seen: dict[int, list[int]] = {}
    for c in own:
        for other in classes[c]:
            if other > vertex:
                seen.setdefault(other, []).append(c)
    return {other: shared for other, shared in seen.items() if len(shared) > 1}
