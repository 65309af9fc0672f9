"""A join order: a binary tree over the vertices of a join graph.

Vertex *i* of the graph is bit *i* of an int; every tree knows the set it covers. The left side is the one that is
streamed or comes first in text, the right one the build side where an operator makes the difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence


class JoinTree:
    """A leaf (`vertex`) or a join of two disjoint trees. Never changed after it is made."""

    __slots__ = ("relations", "left", "right", "vertex")

    def __init__(self, relations: int, left: JoinTree | None, right: JoinTree | None, vertex: int = -1) -> None:
        self.relations = relations
        self.left = left
        self.right = right
        self.vertex = vertex

    @property
    def is_leaf(self) -> bool:
        return self.left is None

    def post_order(self) -> Iterator[JoinTree]:
        """Every node, children first, left before right, without recursion."""
        stack: list[tuple[JoinTree, bool]] = [(self, False)]
        while stack:
            tree, expanded = stack.pop()
            if expanded or tree.left is None or tree.right is None:
                yield tree
            else:
                stack += [(tree, True), (tree.right, False), (tree.left, False)]

    def renumbered(self, vertex: Sequence[int]) -> JoinTree:
        """The same shape with vertex i called `vertex[i]`."""
        done: list[JoinTree] = []
        for tree in self.post_order():
            if tree.is_leaf:
                done.append(leaf(vertex[tree.vertex]))
            else:
                right = done.pop()
                done.append(join(done.pop(), right))
        return done[0]

    def show(self, names: Sequence[str], sign: Callable[[int, int], str] | None = None) -> str:
        """The order as text; `sign` tells how to write the join of two sets.

        >>> join(join(leaf(0), leaf(2)), leaf(1)).show("abc", lambda left, right: "⋉" if right == 0b10 else "⋈")
        '((a ⋈ c) ⋉ b)'
        """
        texts: list[str] = []
        for tree in self.post_order():
            if tree.is_leaf:
                texts.append(names[tree.vertex])
            else:
                right = texts.pop()
                sides = (part.relations for part in (tree.left, tree.right) if part is not None)
                texts.append(f"({texts.pop()} {'⋈' if sign is None else sign(*sides)} {right})")
        return texts[0]

    def __repr__(self) -> str:
        return self.show([str(i) for i in range(self.relations.bit_length())])


def leaf(vertex: int) -> JoinTree:
    """One relation."""
    return JoinTree(1 << vertex, None, None, vertex)


def join(left: JoinTree, right: JoinTree) -> JoinTree:
    """The join of two disjoint trees."""
    return JoinTree(left.relations | right.relations, left, right)
