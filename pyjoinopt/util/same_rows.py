"""Compares two results as multisets of rows, in any order.

Values are equal as in Spark SQL's grouping: NULL equals NULL, NaN equals NaN, and -0.0 equals 0.0. Floats may differ by
a tolerance, because a sum depends on the order of its addends, and another join order adds in another order.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

#: Relative and absolute tolerance of floats.
TOLERANCE = (1e-9, 1e-9)

Row = Sequence[Any]
_NAN = ("float", "nan")


def unmatched_rows(
    left: Iterable[Row], right: Iterable[Row], tolerance: tuple[float, float] = TOLERANCE
) -> tuple[list[Row], list[Row]]:
    """The rows of each side that have no partner on the other one, each in its own order.

    Args:
        left, right: rows; values may be nested lists, tuples and dicts.
        tolerance: relative and absolute tolerance of floats, as of `math.isclose`.

    >>> unmatched_rows([(1, 0.1 + 0.2), (2, None)], [(2, None), (1, 0.3)])
    ([], [])
    >>> unmatched_rows([(1,), (1,), (2,)], [(1,), (3,)])
    ([(1,), (2,)], [(3,)])
    """
    lefts, rights = list(left), list(right)
    partners: dict[Hashable, list[int]] = defaultdict(list)
    for position in range(len(rights) - 1, -1, -1):
        partners[_plain(rights[position])].append(position)
    rest: list[int] = []
    taken: set[int] = set()
    for position, row in enumerate(lefts):
        equal = partners.get(_plain(row))
        if equal:
            taken.add(equal.pop())
        else:
            rest.append(position)
    others = [position for position in range(len(rights)) if position not in taken]
    if rest and others and any(tolerance):
        rest, others = _without_close(lefts, rest, rights, others, tolerance)
    return [lefts[position] for position in rest], [rights[position] for position in others]


def same_rows(left: Iterable[Row], right: Iterable[Row], tolerance: tuple[float, float] = TOLERANCE) -> bool:
    """Whether two results have the same rows equally often.

    >>> same_rows([(float("nan"), 0.0)], [(float("nan"), -0.0)]), same_rows([(1,)], [(1,), (1,)])
    (True, False)
    """
    return unmatched_rows(left, right, tolerance) == ([], [])


def _plain(value: Any) -> Hashable:
    """A hashable form of a value, equal for values that are equal in Spark; True is not 1."""
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, float):
        return _NAN if math.isnan(value) else value
    if isinstance(value, dict):
        return ("map", frozenset((_plain(key), _plain(item)) for key, item in value.items()))
    if isinstance(value, (list, tuple)):
        return ("list", *map(_plain, value))
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    return value if isinstance(value, Hashable) else repr(value)


def _without_close(
    left: Sequence[Row], lefts: list[int], right: Sequence[Row], rights: list[int], tolerance: tuple[float, float]
) -> tuple[list[int], list[int]]:
    """What is left after rows were paired whose floats are close and whose other values are equal.

    Rows are candidates if all values but their floats are equal. Among the candidates, sorted by their first float,
    each row takes the first that is close enough.
    """
    buckets: dict[Hashable, list[tuple[float, int]]] = defaultdict(list)
    for position in rights:
        key, floats = _split(right[position])
        insort(buckets[key], (floats[0] if floats else 0.0, position))
    alone, taken = [], set()
    for position in sorted(lefts, key=lambda p: (_split(left[p])[1] or [0.0])[0]):
        key, floats = _split(left[position])
        candidates = buckets.get(key, [])
        first = floats[0] if floats else 0.0
        reach = _reach(first, tolerance)
        at = bisect_left(candidates, (first - reach, -1))
        while at < len(candidates) and candidates[at][0] <= first + reach:
            if _close(floats, _split(right[candidates[at][1]])[1], tolerance):
                taken.add(candidates.pop(at)[1])
                break
            at += 1
        else:
            alone.append(position)
    return sorted(alone), [position for position in rights if position not in taken]


def _reach(value: float, tolerance: tuple[float, float]) -> float:
    """No float further away from this one is close to it."""
    relative, absolute = tolerance
    if not math.isfinite(value):
        return 0.0
    return max(absolute, relative * abs(value) / (1 - relative) if relative < 1 else math.inf)


def _split(row: Row) -> tuple[Hashable, list[float]]:
    """A row without its floats, and its floats; the floats among a map's values in the order of its keys."""
    floats: list[float] = []

    def exact(value: Any) -> Hashable:
        if isinstance(value, float) and not math.isnan(value):
            floats.append(value)
            return ("float",)
        if isinstance(value, (list, tuple)):
            return ("list", *map(exact, value))
        if isinstance(value, dict):
            items = sorted(((_plain(key), item) for key, item in value.items()), key=lambda pair: repr(pair[0]))
            return ("map", *((key, exact(item)) for key, item in items))
        return _plain(value)

    return exact(tuple(row)), floats


def _close(left: Sequence[float], right: Sequence[float], tolerance: tuple[float, float]) -> bool:
    relative, absolute = tolerance
    return all(math.isclose(a, b, rel_tol=relative, abs_tol=absolute) for a, b in zip(left, right))
