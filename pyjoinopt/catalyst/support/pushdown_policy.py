"""Which predicates may be moved, and what a group of them becomes on its way down: shared by the parts of push-down.

Two manners. *Faithful* moves what Catalyst moves: whatever is deterministic. The *safe* manner, for plans that users
get back, leaves Python UDFs and references to outer queries where they were written, puts no subquery into a join's
condition, and never lets a predicate that may fail (a cast or a division under ANSI) meet a row that it did not meet
before: on such a row it would raise an error that the query as written does not raise.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from pyjoinopt.plan.expressions import Expression
from pyjoinopt.plan.fallible import fallibility
from pyjoinopt.plan.outer_references import row_references

#: Catalyst's three rules that push-down is made of, by name.
COMBINE, NON_JOIN, JOIN = "CombineFilters", "PushPredicateThroughNonJoin", "PushPredicateThroughJoin"
PARTS = frozenset({COMBINE, NON_JOIN, JOIN})


@dataclass(slots=True)
class PushdownResult:
    """Conjuncts that pass a node (in terms of what is below it), those that remain above, whether any was changed."""

    below: deque[Expression]
    above: list[Expression]
    changed: bool = False


@dataclass(frozen=True, slots=True)
class PushdownPolicy:
    """How to move.

    Attributes:
        as_catalyst: move whatever Catalyst moves.
        avoid_double_evaluation: see `push_down_predicates`.
        parts: which of the three rules run.
    """

    as_catalyst: bool = False
    avoid_double_evaluation: bool = True
    parts: frozenset[str] = PARTS

    def movable(self, predicate: Expression) -> bool:
        """Whether it may be moved at all, wherever to."""
        if self.as_catalyst:
            return predicate.deterministic
        return fallibility.is_movable(predicate) or fallibility.has_movable_subquery(predicate)

    def joinable(self, predicate: Expression) -> bool:
        """Whether a join's condition may hold it, as far as this policy decides."""
        return predicate.deterministic if self.as_catalyst else fallibility.is_movable(predicate)

    def to_more_rows(self, predicate: Expression) -> bool:
        """Whether it may be evaluated on rows that do not reach it as the query is written."""
        return self.as_catalyst or not fallibility.may_throw(predicate)

    def keeps_above(self, predicate: Expression, others: Iterable[Expression]) -> bool:
        """Whether a predicate must not be merged with those of the operator below it: which one of two that may fail
        comes first depends on the plan (`joins.groups.fallible_order`).
        """
        return not self.to_more_rows(predicate) and any(not self.to_more_rows(other) for other in others)

    def reads(self, predicate: Expression) -> int:
        """The attributes that it reads of its row."""
        return row_references(predicate)
