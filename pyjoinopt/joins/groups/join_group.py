"""What a join group is made of: items, predicates, and the order in which they were written."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Union

from pyjoinopt.plan.expressions import Expression
from pyjoinopt.plan.nodes import INNER, LogicalPlan


@dataclass(eq=False, slots=True)
class JoinInput:
    """A sub-plan that the group orders as a whole, and the columns to compute on top of it, innermost first."""

    plan: LogicalPlan
    columns: list[Expression] = field(default_factory=list)


@dataclass(frozen=True, eq=False, slots=True)
class Conjunct:
    """A predicate of the group and the interval [start, end) of leaf positions that stood below it.

    The whole condition of a left, full, semi or anti join is one: `join_type` says which, and `sides` are the intervals
    of its left and right side. Of a semi or anti join `right` is the position of the item that it looks into, and
    `subquery` is that of the join.
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
        items: leaf position -> item; `written` is the tree of positions as the query has it.
        conjuncts: all predicates.
        start, end: interval of leaf positions that it covers.
        attributes: every attribute visible inside it, hidden and computed ones too.
        semi_right: attributes of the right sides of its semi and anti joins, which nothing above can see.
        padded: positions of the items whose columns an outer join of the region fills up with NULLs.
        owners: attribute bit -> position of the item that produces it.
        late: attribute bit -> alias computed on top of the group, in an order in which each can be computed.
        hidden: bits of columns that a USING join hid from `*`, still reachable by name.
        crossed: whether a cross join was asked for.
        inlined_size: parts of the predicates in which late columns are written out.
        pending: nodes above `top` that a join further up may look through.
        guards: sets of attributes that predicates above the group read which may fail.
    """

    top: LogicalPlan
    items: dict[int, JoinInput]
    written: Written
    start: int
    end: int
    attributes: int
    owners: dict[int, int]
    conjuncts: list[Conjunct] = field(default_factory=list)
    late: dict[int, Expression] = field(default_factory=dict)
    hidden: list[int] = field(default_factory=list)
    semi_right: int = 0
    padded: set[int] = field(default_factory=set)
    crossed: bool = False
    pending: list[LogicalPlan] = field(default_factory=list)
    inlined_size: int = 0
    guards: list[int] = field(default_factory=list)

    def copy(self) -> JoinGroup:
        """An independent copy, for a sub-plan that stands under two parents."""
        items = {position: JoinInput(item.plan, list(item.columns)) for position, item in self.items.items()}
        return replace(
            self, items=items, owners=dict(self.owners), conjuncts=list(self.conjuncts), late=dict(self.late),
            pending=list(self.pending), hidden=list(self.hidden), padded=set(self.padded), guards=list(self.guards),
        )  # fmt: skip

    @property
    def visible(self) -> int:
        """All attributes, those of pending projections and of what semi joins look into included."""
        mask = self.attributes | self.semi_right
        for node in self.pending:
            mask |= node.output_set
        return mask
