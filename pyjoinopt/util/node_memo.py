"""What was worked out for an object, by its identity.

Nodes of plans are equal only if they are the same object, and an id is free again once its object is gone. So a memo by
ids keeps its objects alive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

N = TypeVar("N")
T = TypeVar("T")


class NodeMemo(Generic[N, T]):
    """Object -> value.

    >>> memo, node = NodeMemo(), []
    >>> memo[node] = 7
    >>> node in memo, [] in memo, memo[node], memo.get([])
    (True, False, 7, None)
    """

    __slots__ = ("_values", "_alive")

    def __init__(self) -> None:
        self._values: dict[int, T] = {}
        self._alive: list[N] = []

    def __contains__(self, node: N) -> bool:
        return id(node) in self._values

    def __getitem__(self, node: N) -> T:
        return self._values[id(node)]

    def __setitem__(self, node: N, value: T) -> None:
        self._values[id(node)] = value
        self._alive.append(node)

    def get(self, node: N) -> T | None:
        """The value, None if there is none."""
        return self._values.get(id(node))

    def filled(self, root: N, below: Callable[[N], Iterable[N]], compute: Callable[[N], T]) -> T:
        """The value of `root`, after those of all that is below it were computed, without recursion.

        >>> memo = NodeMemo()
        >>> memo.filled(((), ((),)), lambda node: node, lambda node: 1 + sum(memo[child] for child in node))
        4
        """
        values, stack = self._values, [root]
        while stack:
            node = stack[-1]
            if id(node) in values:
                stack.pop()
            elif missing := [child for child in below(node) if id(child) not in values]:
                stack.extend(missing)
            else:
                stack.pop()
                values[id(node)] = compute(node)
                self._alive.append(node)
        return values[id(root)]
