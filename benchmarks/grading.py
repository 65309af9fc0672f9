"""Grades a join order by its C_out over true row counts.

C_out is the sum of the rows of all join results of an order. With the true count of every connected set of tables,
dynamic programming finds the cheapest order. The grade of any other order is the ratio of its C_out to the cheapest.
Values below a thousand rows count as a thousand.

Sets of tables are ints, with bit *i* for table *i*.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from pyjoinopt.joins.join_tree import JoinTree, join, leaf

#: Rows below which an order is as good as any.
FLOOR = 1000.0


def c_out(tree: JoinTree, rows: Callable[[int], float]) -> float:
    """The sum of the rows of all join results of an order.

    >>> c_out(join(join(leaf(0), leaf(1)), leaf(2)), {0b011: 50, 0b111: 7}.__getitem__)
    57.0
    """
    return math.fsum(rows(node.relations) for node in tree.post_order() if not node.is_leaf)


def cheapest(cards: Mapping[int, float]) -> float:
    """The least C_out of any order, including bushy ones, that joins only sets with known rows.

    Args:
        cards: rows of every connected set, single tables included.

    >>> cheapest({0b001: 10, 0b010: 10, 0b100: 10, 0b011: 50, 0b110: 3, 0b111: 7})
    10.0
    """
    best: dict[int, float] = {}
    for whole in sorted(cards, key=int.bit_count):
        if not whole & (whole - 1):
            best[whole] = 0.0
            continue
        least, part = math.inf, (whole - 1) & whole
        while part > whole ^ part:  # each pair once
            if part in best and whole ^ part in best:
                least = min(least, best[part] + best[whole ^ part])
            part = (part - 1) & whole
        best[whole] = least + cards[whole]
    return best[max(cards)]


def times_worse(cost: float, least: float) -> float:
    """The ratio of a cost to the least cost, with a minimum for both.

    >>> times_worse(50_000, 10), times_worse(999, 3)
    (50.0, 1.0)
    """
    return max(cost, FLOOR) / max(least, FLOOR)


def as_written(tables: Sequence[int], connected: Callable[[int, int], bool]) -> JoinTree:
    """The written order: of the tables that a predicate connects to the joined ones, always the first.

    >>> as_written([0, 1, 2], lambda joined, table: {0b001, 0b100} >= {joined, table} or joined & 0b100 > 0)
    ((0 ⋈ 2) ⋈ 1)
    """
    rest = list(tables)
    tree = leaf(rest.pop(0))
    while rest:
        vertex = next((v for v in rest if connected(tree.relations, 1 << v)), rest[0])
        rest.remove(vertex)
        tree = join(tree, leaf(vertex))
    return tree


class Summary(NamedTuple):
    """Geometric mean, median, 90th percentile and maximum of factors."""

    mean: float
    median: float
    p90: float
    most: float


def summary(factors: Iterable[float]) -> Summary:
    """The summary of factors that are all greater than 0.

    >>> summary([1.0, 1.0, 4.0, 256.0])
    Summary(mean=5.656854249492381, median=2.5, p90=256.0, most=256.0)
    """
    ordered = sorted(factors)
    mean = math.exp(math.fsum(map(math.log, ordered)) / len(ordered))
    middle = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
    return Summary(mean, middle, percentile(ordered, 0.9), ordered[-1])


def share_of_best(factors: Sequence[float]) -> float:
    """The share of factors that are 1 except for rounding: optimal orders.

    >>> share_of_best([1.0, 1.0 + 1e-12, 1.5, 9.0])
    0.5
    """
    return sum(factor <= 1.0 + 1e-9 for factor in factors) / len(factors)


def percentile(ordered: Sequence[float], share: float) -> float:
    """The value below which this share of the values is.

    >>> percentile([1.0, 2.0, 3.0, 4.0], 0.5)
    3.0
    """
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def q_error(estimate: float, truth: float) -> float:
    """The factor by which an estimate is too high or too low; both sides count as at least one row.

    >>> q_error(10, 1000), q_error(1000, 10), q_error(0.1, 0)
    (100.0, 100.0, 1.0)
    """
    estimate, truth = max(1.0, estimate), max(1.0, truth)
    return max(estimate / truth, truth / estimate)
