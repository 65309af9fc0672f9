"""What a rewrite gives back: the plan, and a sentence for each change that a report mentions."""

from __future__ import annotations

from typing import NamedTuple

from pyjoinopt.plan.nodes import LogicalPlan


class Rewritten(NamedTuple):
    """A plan after a rewrite.

    Attributes:
        plan: the very same object if nothing changed.
        notes: one sentence for each change, in the order in which they were made.
    """

    plan: LogicalPlan
    notes: tuple[str, ...] = ()
