"""A join group while the walk over the plan (`find_groups`) may still extend it.

It is the one thing here that changes: to merge two groups costs the size of the smaller, so a chain of a thousand joins
takes linear time. Nothing outside this folder gets one; `closed` gives the record.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from pyjoinopt.joins.groups.join_group import Conjunct, JoinGroup, JoinInput, Written
from pyjoinopt.plan.expressions import Expression
from pyjoinopt.plan.nodes import LogicalPlan


@dataclass(eq=False, slots=True)
class OpenGroup:
    """A group in the making: the attributes of `JoinGroup`, and what only the walk needs.

    Attributes:
        start, end: interval of leaf positions that it covers.
        inlined_size: expression nodes made so far by inlining deferred columns into predicates.
        pending: projections and names above `top` that a join further up may absorb.
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
    guards: list[int] = field(default_factory=list)
    pending: list[LogicalPlan] = field(default_factory=list)
    inlined_size: int = 0

    def copy(self) -> OpenGroup:
        """An independent copy, for a sub-plan with two parents."""
        return replace(
            self, items=dict(self.items), owners=dict(self.owners), conjuncts=list(self.conjuncts),
            deferred=dict(self.deferred), pending=list(self.pending), hidden=list(self.hidden),
            padded=set(self.padded), guards=list(self.guards),
        )  # fmt: skip

    def closed(self) -> JoinGroup:
        """The group as it is now."""
        return JoinGroup(
            self.top, dict(self.items), self.written, tuple(self.conjuncts), self.attributes, self.semi_right,
            frozenset(self.padded), dict(self.owners), dict(self.deferred), tuple(self.hidden), self.crossed,
            tuple(self.guards),
        )  # fmt: skip

    @property
    def visible(self) -> int:
        """All attributes, including those of pending projections and of the right sides of semi joins."""
        mask = self.attributes | self.semi_right
        for node in self.pending:
            mask |= node.output_set
        return mask
