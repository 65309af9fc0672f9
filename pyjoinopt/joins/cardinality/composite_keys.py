"""Classes of equal columns, and bundles of classes that are one composite key; see `graph` for what they mean."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

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


_DIGITS = ASSUMPTIONS.digits


def bundle_terms(
    classes: Sequence[dict[int, float]],
    base_rows: Sequence[float],
    unfiltered: Sequence[dict[int, float]] = (),
    is_key: Callable[[int, Sequence[int]], bool] = lambda vertex, bundle: False,
    names: Sequence[str] = (),
) -> list[Term]:
    """Corrections for classes that tie the same relations: a composite key has no more values than rows.

    Bundles of more classes come first, and a column of a relation counts in one of them. Where bundles of as many
    share columns of a relation (a row with the one before it, and with the one after it, in the same group of rows),
    those that all of them have are a key of their own; what the others add is what is left of each whole key.

    Args:
        classes: per class, vertex -> logarithm of the distinct count there.
        base_rows: unfiltered rows of each vertex.
        unfiltered: `classes` before filters.
        is_key: whether the columns of some classes are known to be a key of a vertex.
        names: of each vertex, which decide between bundles that are alike, in whatever order they are written.
    """
    full = unfiltered or classes
    terms: list[Term] = []
    taken: set[tuple[int, int]] = set()  # (class, vertex) in some bundle already

    def correct(bundle: Bundle, vertices: Sequence[int], below: dict[int, float], core: Bundle) -> dict[int, float]:
        """How many values a whole bundle has, at the vertices where it is none that another took before it.

        The classes of `core` are corrected elsewhere, to the values in `below`.
        """
        vertices = [v for v in vertices if not any((c, v) in taken for c in bundle if c not in core)]
        counts = [(base_rows[v], [math.exp(full[c][v]) for c in bundle]) for v in vertices]
        cap = math.log(key_rows(counts, [is_key(v, bundle) for v in vertices])) if counts else 0.0
        whole = {v: math.fsum(classes[c][v] for c in bundle) for v in vertices}
        capped = {v: min(cap, values) for v, values in whole.items()}
        own = [c for c in bundle if c not in core]
        if len(vertices) > 1 and len(bundle) > 1 and max(whole.values()) > cap:
            taken.update((c, v) for c in own for v in vertices)
            terms.extend(Term(-1.0, {v: classes[c][v] for v in vertices}) for c in own)
            rest = {v: values - below.get(v, math.fsum(classes[c][v] for c in core)) for v, values in capped.items()}
            terms.append(Term(1.0, {v: max(0.0, values) for v, values in rest.items()}))
        return capped

    bundles = _bundles(classes)

    def rank(bundle: Bundle) -> tuple[int, float, list[str]]:
        values = max(math.fsum(classes[c][v] for c in bundle) for v in bundles[bundle])
        return -len(bundle), -round(values, _DIGITS), sorted(names[v] for v in bundles[bundle] if names)

    for _, alike in groupby(sorted(bundles, key=rank), len):
        for rivals in _sharing(list(alike), bundles):
            core = tuple(sorted(set.intersection(*map(set, rivals)))) if len(rivals) > 1 else ()
            everyone = sorted(set().union(*(bundles[bundle] for bundle in rivals)))
            below = correct(core, everyone, {}, ()) if core else {}
            for bundle in rivals:
                correct(bundle, sorted(bundles[bundle]), below, core)
    return terms


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
    """Bundles, sorted into those that have columns of a relation in common, directly or by others."""
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
