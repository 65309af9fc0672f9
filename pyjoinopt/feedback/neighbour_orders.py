"""Orders that differ from a given one in the place of one relation: where a search by trying goes on from a good order.

    ((a ⋈ b) ⋈ c) ⋈ d      c moves:   (a ⋈ c) ⋈ b ⋈ d     a ⋈ (b ⋈ c) ⋈ d     (a ⋈ b) ⋈ (c ⋈ d)     ...

Source: the swap and 3-cycle moves of iterative improvement (Swami and Gupta, SIGMOD 1988); a move of one leaf reaches
bushy trees, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pyjoinopt.feedback.baseline import PinnedGroup, order_steps
from pyjoinopt.joins.join_tree import JoinTree, join, leaf


def neighbours(group: PinnedGroup) -> Iterator[PinnedGroup]:
    """All orders in which one relation was moved, each once, without the order itself. Some may be illegal.

    >>> abc = PinnedGroup({"a": ("a",), "b": ("b",), "c": ("c",)}, (), (("a", "b"), ("#1", "c")))
    >>> [n.order for n in neighbours(abc)]
    [(('c', 'a'), ('b', '#1')), (('b', 'c'), ('#1', 'a'))]
    """
    names = tuple(group.relations)
    tree = group.tree({name: vertex for vertex, name in enumerate(names)})
    seen = {tree.sets}
    for vertex in range(len(names)):
        rest = _without(tree, vertex)
        for place in list(rest.post_order()):
            moved = _above(rest, place, leaf(vertex))
            if moved.sets not in seen:
                seen.add(moved.sets)
                yield replace(group, order=order_steps(moved, names))


def _without(tree: JoinTree, vertex: int) -> JoinTree:
    done: list[JoinTree | None] = []
    for node in tree.post_order():
        if node.is_leaf:
            done.append(None if node.vertex == vertex else node)
            continue
        right, left = done.pop(), done.pop()
        done.append(join(left, right) if left is not None and right is not None else left or right)
    assert done[0] is not None
    return done[0]


def _above(tree: JoinTree, place: JoinTree, moved: JoinTree) -> JoinTree:
    """The tree with a relation joined right above one of its nodes."""
    done: list[JoinTree] = []
    for node in tree.post_order():
        made = node
        if not node.is_leaf:
            right, left = done.pop(), done.pop()
            made = join(left, right)
        done.append(join(made, moved) if node is place else made)
    return done[0]
