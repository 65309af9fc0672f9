"""What a join group consists of: inputs, predicates, and the order in which they were written."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Union

from pyjoinopt.plan.expressions import Expression
from pyjoinopt.plan.nodes import INNER, LogicalPlan


@dataclass(eq=False, slots=True)
class JoinInput:
    """A sub-plan that the group joins as a whole, and the columns to compute on top of it, innermost first."""

    plan: LogicalPlan
    columns: list[Expression] = field(default_factory=list)


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
    """

    predicate: Expression
    start: int
    end: int
    join_type: str = INNER
    right: int | None = None
    sides: tuple[tuple[int, int], tuple[int, int]] | None = None
    subquery: int | None = None


#: The order as written: a leaf position, or a pair of these.
Written = Union[int, tuple["Written", "Written"]]  # noqa: UP007


@dataclass(eq=False, slots=True)
class JoinGroup:
    """A join group in the making; `top` is its highest join or filter.

    Attributes:
        items: leaf position -> input; `written` is the tree of positions as the query has it.
        conjuncts: all predicates.
        start, end: interval of leaf positions that it covers.
        attributes: every attribute visible inside it, hidden and computed ones too.
        semi_right: attributes of the right sides of its semi and anti joins, which nothing above can see.
        padded: positions of the inputs whose columns an outer join of the group fills up with NULLs.
        owners: attribute bit -> position of the input that produces it.
        deferred: attribute bit -> alias computed on top of the group, in an order in which each can be computed.
        hidden: bits of columns that a USING join hid from `*`, still reachable by name.
        crossed: whether the query has an explicit CROSS JOIN.
        inlined_size: expression nodes made so far by inlining deferred columns into predicates.
        pending: projections and names above `top` that a join further up may absorb.
        guards: sets of attributes that are read by predicates above the group which may throw.
    """

    top: LogicalPlan
    items: dict[int, JoinInput]
    written: Written
    start: int
    end: int
    attributes: int
    owners: dict[int, int]
    conjuncts: list[Conjunct] = field(default_factory=list)
    deferred: dict[int, Expression] = field(default_factory=dict)
    hidden: list[int] = field(default_factory=list)
    semi_right: int = 0
    padded: set[int] = field(default_factory=set)
    crossed: bool = False
    pending: list[LogicalPlan] = field(default_factory=list)
    inlined_size: int = 0
    guards: list[int] = field(default_factory=list)

    def copy(self) -> JoinGroup:
        """An independent copy, for a sub-plan with two parents."""
        items = {position: JoinInput(item.plan, list(item.columns)) for position, item in self.items.items()}
        return replace(
            self, items=items, owners=dict(self.owners), conjuncts=list(self.conjuncts), deferred=dict(self.deferred),
            pending=list(self.pending), hidden=list(self.hidden), padded=set(self.padded), guards=list(self.guards),
        )  # fmt: skip

    @property
    def visible(self) -> int:
        """All attributes, including those of pending projections and of the right sides of semi joins."""
        mask = self.attributes | self.semi_right
        for node in self.pending:
            mask |= node.output_set
        return mask
