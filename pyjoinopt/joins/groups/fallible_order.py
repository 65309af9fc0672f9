"""Predicates that may fail, written in different places, of which Spark alone knows which one it evaluates first.

    a JOIN b ON TRUE JOIN c ON 12 DIV c.k < 3 WHERE array(5, 3, 1)[c.i] > 2

Both predicates read `c` only, and Spark moves both there. It evaluates them in the order in which they arrive, so the
first one decides for which rows the second one may fail. That order depends on the plan: with two inputs the WHERE
arrives first, since a filter is moved before the condition of the join below it. With three, `ReorderJoin` collects
all conditions before any of them is moved, and the ON comes first. A projection between two joins, or a filter above
another filter, ends what it collects.

So a group in which two such predicates are evaluated at the same place keeps its order, and `push_down_predicates`
leaves them in the operators in which they were written. Predicates of one operator keep their order everywhere.

Source: Catalyst's `ReorderJoin`, `ExtractFiltersAndInnerJoins`, `PushPredicateThroughJoin`, `CombineFilters`.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyjoinopt.joins.groups.join_group import JoinGroup, Written
from pyjoinopt.plan.equi_keys import equality
from pyjoinopt.plan.expressions import SUBQUERY, Expression, conjuncts
from pyjoinopt.plan.fallible import fallibility
from pyjoinopt.util.bitset import members

#: (interval of leaf positions at which a predicate is evaluated, the operator in which it was written)
_Place = tuple[tuple[int, int], int]


def spark_decides_order(group: JoinGroup) -> bool:
    """Whether two predicates that may fail, of different operators, are evaluated at the same place."""
    found = list(_places(group))
    operators: dict[tuple[int, int], set[int]] = {}
    for place, operator in found:
        operators.setdefault(place, set()).add(operator)
    return any(len(several) > 1 for several in operators.values())


def _places(group: JoinGroup) -> Iterator[_Place]:
    lowest: _Lowest | None = None
    for reads, operator, is_whole in _fallible(group):
        positions = _positions(reads, group)
        if not positions or -1 in positions:
            continue
        start, end = min(positions), max(positions)
        if start == end:
            yield (start, end), operator
        elif not is_whole:
            lowest = lowest or _Lowest(group.written)
            yield lowest(start, end), operator


def _fallible(group: JoinGroup) -> Iterator[tuple[int, int, bool]]:
    """What each predicate that may fail reads, its operator, and whether it belongs to one join that is not inner."""
    for conjunct in group.conjuncts:
        if fallibility.may_throw(conjunct.predicate):
            parts = [conjunct.predicate] if conjunct.sides is None else conjuncts(conjunct.predicate)
            for part in parts:
                if _may_fail(part) and not _is_key(part, group):
                    yield part.references, conjunct.operator, conjunct.sides is not None
    for reads in group.guards:  # they remain above the group, in whatever order
        yield reads, -1, False


def _may_fail(e: Expression) -> bool:
    return fallibility.may_throw(e) and not fallibility.is_meant_to_throw(e)


def _is_key(e: Expression, group: JoinGroup) -> bool:
    """Whether it is an equality of two relations: Spark evaluates those before any other predicate of the join."""
    found = None if e.contains & SUBQUERY else equality(e)
    if found is None:
        return False
    left, right = (_positions(side.references, group) for side in (found.left, found.right))
    return len(left) == len(right) == 1 and left != right


def _positions(columns: int, group: JoinGroup) -> set[int]:
    return {group.owners.get(bit, -1) for bit in members(columns)}


class _Lowest:
    """The smallest part of the written order that has two positions: its first and its last one."""

    def __init__(self, written: Written) -> None:
        self._parts: list[tuple[int, int]] = []
        waiting: list[tuple[Written, bool]] = [(written, False)]
        done: list[tuple[int, int]] = []
        while waiting:
            part, expanded = waiting.pop()
            if not isinstance(part, tuple):
                done.append((part, part))
            elif expanded:
                one, other = done.pop(), done.pop()
                done.append((min(one[0], other[0]), max(one[1], other[1])))
                self._parts.append(done[-1])
            else:
                waiting += ((part, True), (part[0], False), (part[1], False))

    def __call__(self, start: int, end: int) -> tuple[int, int]:
        inside = (part for part in self._parts if part[0] <= start and end <= part[1])
        return min(inside, key=lambda part: part[1] - part[0])
