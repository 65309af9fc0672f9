"""What a join group consists of: inputs, predicates, and the order in which they were written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Union

from pyjoinopt.plan.expressions import Expression
from pyjoinopt.plan.nodes import INNER, LogicalPlan


@dataclass(frozen=True, eq=False, slots=True)
class JoinInput:
    """A sub-plan that the group joins as a whole, and the columns to compute on top of it, innermost first."""

    plan: LogicalPlan
    columns: tuple[Expression, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class Conjunct:
    """A predicate of the group, and the interval [start, end) of leaf positions below it as written.

    Attributes:
        predicate: one conjunct, or the whole condition of a left, full, semi or anti join.
        start, end: the interval.
        join_type: inner, or the type of that join.
        right: of a semi or anti join the leaf position of its right side.
        sides: of a left, full, semi or anti join the intervals of its left and right side.
        subquery: of a semi or anti join that has to be built as an IN or EXISTS: which.
        operator: identifies the join or filter in which it was written.
    """

    predicate: Expression
    start: int
    end: int
    join_type: str = INNER
    right: int | None = None
    sides: tuple[tuple[int, int], tuple[int, int]] | None = None
    subquery: int | None = None
    operator: int = 0


#: The order as written: a leaf position, or a pair of these.
Written = Union[int, tuple["Written", "Written"]]  # noqa: UP007


@dataclass(frozen=True, eq=False, slots=True)
class JoinGroup:
    """A join group; `top` is its highest join or filter.

    Attributes:
        top: see above.
        items: leaf position -> input; `written` is the tree of positions as the query has it.
        written: see `items`.
        conjuncts: all predicates.
        attributes: every attribute visible inside it, hidden and computed ones too.
        semi_right: attributes of the right sides of its semi and anti joins, which nothing above can see.
        padded: positions of the inputs whose columns an outer join of the group fills up with NULLs.
        owners: attribute bit -> position of the input that produces it.
        deferred: attribute bit -> alias computed on top of the group, in an order in which each can be computed.
        hidden: bits of columns that a USING join hid from `*`, still reachable by name.
        crossed: whether the query has an explicit CROSS JOIN.
        guards: sets of attributes that are read by predicates above the group which may throw.
    """

    top: LogicalPlan
    items: Mapping[int, JoinInput]
    written: Written
    conjuncts: tuple[Conjunct, ...]
    attributes: int
    semi_right: int
    padded: frozenset[int]
    owners: Mapping[int, int]
    deferred: Mapping[int, Expression]
    hidden: tuple[int, ...]
    crossed: bool
    guards: tuple[int, ...]
