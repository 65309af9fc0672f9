"""A join order: a binary tree over the vertices of a join graph.

Vertex *i* of the graph is bit *i* of an int; every tree knows the set it covers. The left side is the one that is
streamed or comes first in text, the right one is built where an operator makes the difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

State = TypeVar("State")


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

    @property
    def sets(self) -> frozenset[int]:
        """The sets that its nodes cover: they identify an order, whichever way round its joins are.

        >>> join(leaf(0), join(leaf(1), leaf(2))).sets == join(join(leaf(2), leaf(1)), leaf(0)).sets
        True
        """
        return frozenset(tree.relations for tree in self.post_order())

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
        """The order as text; `sign` is how to write the join of two sets.

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


def build_tree(
    whole: State, halves: Callable[[State], int | tuple[State, State]], bytes_of: Callable[[int], float]
) -> JoinTree:
    """The tree that a search has found, from what it wrote down of each part.

    Args:
        whole: where to begin.
        halves: the vertex that a part is, or the two parts that it is made of.
        bytes_of: the size of a set; the smaller half becomes the right one, which is built.

    >>> build_tree((0, 2), lambda at: at[0] if at[0] == at[1] else ((at[0], at[1] - 1), (at[1], at[1])), float)
    (2 ⋈ (1 ⋈ 0))
    """
    done: list[JoinTree] = []
    stack: list[tuple[State, bool]] = [(whole, False)]
    while stack:
        part, expanded = stack.pop()
        if expanded:
            right, left = done.pop(), done.pop()
            smaller_left = bytes_of(left.relations) < bytes_of(right.relations)
            done.append(join(right, left) if smaller_left else join(left, right))
            continue
        found = halves(part)
        if isinstance(found, int):
            done.append(leaf(found))
        else:
            stack += [(part, True), (found[1], False), (found[0], False)]
    return done[0]


def leaf(vertex: int) -> JoinTree:
    """One relation."""
    return JoinTree(1 << vertex, None, None, vertex)


def join(left: JoinTree, right: JoinTree) -> JoinTree:
    """The join of two disjoint trees."""
    return JoinTree(left.relations | right.relations, left, right)
