"""What a join ordering rule did to one group of joins."""

from __future__ import annotations

from dataclasses import dataclass

from pyjoinopt.plan.expressions import Expression
from pyjoinopt.plan.nodes import LogicalPlan


@dataclass(frozen=True, slots=True, eq=False)
class ReorderedGroup:
    """One group of inner joins that a rule ordered.

    Attributes:
        relations: the sub-plans that were joined, in the order written.
        predicates: the conjuncts that join them.
        before, after: the group's plan; `after is before` if the order was right already.
        rows_before, bytes_before: summed sizes of the intermediate results as written; None if they were not estimated.
        rows_after, bytes_after: the same of the plan that was chosen.
        pairs: how many joins of two sub-plans were built and compared.
    """

    relations: tuple[LogicalPlan, ...]
    predicates: tuple[Expression, ...]
    before: LogicalPlan
    after: LogicalPlan
    rows_before: int | None = None
    bytes_before: int | None = None
    rows_after: int | None = None
    bytes_after: int | None = None
    pairs: int = 0
