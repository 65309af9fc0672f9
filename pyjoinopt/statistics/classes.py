"""Classes of equal columns, and bundles of classes that are one composite key; see `graph` for what they mean."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Term:
    """A class (sign +1: its minimum comes back) or the correction for a bundle (sign -1 for its classes)."""

    sign: float
    values: dict[int, float]  # vertex -> logarithm of its distinct count


def bundle_terms(classes: Sequence[dict[int, float]], base_rows: Sequence[float]) -> list[Term]:
    """Corrections for classes that tie the same relations: a composite key has no more values than rows.

    Args:
        classes: per class, vertex -> logarithm of the distinct count there.
        base_rows: unfiltered rows of each vertex.
    """
    of_vertex: dict[int, list[int]] = {}
    for c, values in enumerate(classes):
        for vertex in values:
            of_vertex.setdefault(vertex, []).append(c)
    bundles: dict[tuple[int, ...], set[int]] = {}
    for vertex, own in of_vertex.items():
        for other, shared in _shared(vertex, own, classes).items():
            bundles.setdefault(tuple(sorted(shared)), set()).update((vertex, other))
    terms: list[Term] = []
    taken: set[tuple[int, int]] = set()  # (class, vertex) in a larger bundle already
    for bundle, members in sorted(bundles.items(), key=lambda item: -len(item[0])):
        vertices = sorted(v for v in members if not any((c, v) in taken for c in bundle))
        if len(vertices) < 2:
            continue
        cap = math.log(min(base_rows[v] for v in vertices))
        whole = {v: sum(classes[c][v] for c in bundle) for v in vertices}
        if max(whole.values()) > cap:
            taken.update((c, v) for c in bundle for v in vertices)
            terms += [Term(-1.0, {v: classes[c][v] for v in vertices}) for c in bundle]
            terms.append(Term(1.0, {v: min(cap, x) for v, x in whole.items()}))
    return terms


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


class DisjointSets:
    """Disjoint sets of keys, in the order in which they were first seen."""

    def __init__(self) -> None:
        self._parent: dict[object, object] = {}

    def _root(self, key: object) -> object:
        parent = self._parent.setdefault(key, key)
        while parent != key:
            self._parent[key] = grand = self._parent[parent]
            key, parent = parent, grand
        return key

    def union(self, a: object, b: object) -> None:
        """Put the groups of two keys together."""
        one, two = self._root(a), self._root(b)
        if one != two:
            self._parent[two] = one

    def groups(self) -> Iterable[list[object]]:
        """The groups."""
        found: dict[object, list[object]] = {}
        for key in self._parent:
            found.setdefault(self._root(key), []).append(key)
        return found.values()
