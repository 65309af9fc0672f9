"""Disjoint sets that grow together (union-find), for equality classes and connected parts."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class DisjointSets(Generic[T]):
    """Every key that was named is in one set.

    >>> sets = DisjointSets()
    >>> [sets.union(a, b) for a, b in ("ab", "cd", "bc", "ad")]
    [True, True, True, False]
    >>> sets.union("x", "y"), sets.groups()
    (True, [['a', 'b', 'c', 'd'], ['x', 'y']])
    """

    def __init__(self) -> None:
        self._parent: dict[T, T] = {}
        self._members: dict[T, list[T]] = {}

    def _root(self, key: T) -> T:
        if key not in self._parent:
            self._parent[key], self._members[key] = key, [key]
        parent = self._parent[key]
        while parent != key:
            self._parent[key] = grand = self._parent[parent]
            key, parent = parent, grand
        return key

    def union(self, a: T, b: T) -> bool:
        """Merge the set of `b` into that of `a`; False if they are one already."""
        one, other = self._root(a), self._root(b)
        if one == other:
            return False
        self._parent[other] = one
        self._members[one] += self._members.pop(other)
        return True

    def groups(self) -> list[list[T]]:
        """The sets, by the key that was named first; in each the members in the order in which they joined it."""
        return [self._members[root] for root in dict.fromkeys(map(self._root, list(self._parent)))]
