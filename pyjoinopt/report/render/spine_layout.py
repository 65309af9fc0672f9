"""The layout of a join tree along its spine, for terminals and pictures.

Join trees are deep more often than wide; drawn as usual, sixty relations take sixty levels. So the larger side of a
join is drawn straight below it, and the smaller side one step to the right:

    ⋈                   lineitem joined with everything else
    ├─ lineitem
    ⋈                   everything else: orders joined with the rest
    ├─ orders
    ⋈
    ├─ customer
    └─ nation

The path to the right is never longer than the logarithm of the number of relations (each step halves them), so sixty
relations need six steps, a left-deep order one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyjoinopt.report.model import JoinEstimate

ROOT, BRANCH, SPINE, LAST = "root", "branch", "spine", "last"
_BARS = {False: ("│ ", "├─", "└─"), True: ("| ", "+-", "`-")}


@dataclass(frozen=True, slots=True)
class Line:
    """One node of the layout.

    Attributes:
        node: number of the node: relations first, then joins, children before parents.
        depth: steps to the right.
        role: `ROOT`, `BRANCH` (a side that starts to the right of a spine), `SPINE` (the larger side, below its join),
            or `LAST` (a relation that ends a spine).
    """

    node: int
    depth: int
    role: str

    def prefix(self, ascii_only: bool = False) -> str:
        """The text before the node.

        >>> Line(0, 2, BRANCH).prefix(), Line(0, 1, SPINE).prefix(ascii_only=True)
        ('│ ├─', '| ')
        """
        bar, branch, last = _BARS[ascii_only]
        if self.role == BRANCH:
            return bar * (self.depth - 1) + branch
        return bar * self.depth + (last if self.role == LAST else "")


def outline(relations: int, joins: Sequence[tuple[int, int]]) -> list[Line]:
    """The nodes of a tree, one a line, from the top.

    Args:
        relations: how many leaves there are: nodes 0 to `relations` - 1.
        joins: the sides of each inner node, children before parents; join i is node `relations` + i, the last the root.

    >>> [(line.node, line.depth, line.role) for line in outline(3, [(0, 1), (3, 2)])]
    [(4, 0, 'root'), (2, 1, 'branch'), (3, 0, 'spine'), (0, 1, 'branch'), (1, 0, 'last')]
    """
    return outline_of([*((),) * relations, *joins])


def same_joins(joins: Sequence[JoinEstimate], others: Sequence[JoinEstimate]) -> list[bool]:
    """For each join of an order whether another order has a join of the same relations."""
    sets = {frozenset(join.relations) for join in others}
    return [frozenset(join.relations) in sets for join in joins]


def outline_of(children: Sequence[Sequence[int]]) -> list[Line]:
    """The layout of any tree, given the children of each node; the last node is the root."""
    size: list[int] = []
    for below in children:
        size.append(1 + sum(size[child] for child in below))
    lines: list[Line] = []
    stack = [Line(len(size) - 1, 0, ROOT)]
    while stack:
        line = stack.pop()
        lines.append(line)
        below = sorted(children[line.node], key=lambda child: size[child])  # sides of equal size keep their order
        if below:
            large = below.pop()
            stack.append(Line(large, line.depth, SPINE if children[large] else LAST))
            stack.extend(Line(child, line.depth + 1, BRANCH) for child in reversed(below))
    return lines
