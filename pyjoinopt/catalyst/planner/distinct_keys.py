"""Distinct keys of a plan, as Spark's size estimates compute them.

Spark takes the result of an equi-join for the product of its sides, unless one side has at most one row for each
value of its keys: then for their sum. Uniqueness is derived from the plan alone (`plan.facts.distinct_keys`); what
differs here are the keys of a join, among which Spark counts null-safe equalities, and that a setting turns all of it
off. Spark knows no keys of a WindowGroupLimit, which it adds below a filter on a rank. A plan with names is not
optimised yet and may still get one, so keys do not pass names either: a hint for a join that Spark would broadcast
anyway does no harm, but without it a join that Spark would not broadcast is shuffled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyjoinopt.catalyst.planner.equi_keys import extract_equi_keys
from pyjoinopt.plan.expressions import Expression
from pyjoinopt.plan.facts.distinct_keys import DistinctKeys, Keys, is_unique
from pyjoinopt.plan.nodes import Join, LogicalPlan
from pyjoinopt.plan.operator_kinds import NAMES


class DistinctKeyVisitor(DistinctKeys):
    """Callable: plan -> its distinct keys (Catalyst's `DistinctKeyVisitor`). Every node is looked at once.

    Args:
        conf: the session's settings; `spark.sql.optimizer.propagateDistinctKeys.enabled` is read.
    """

    keeps = DistinctKeys.keeps - NAMES - {"WindowGroupLimit"}

    def __init__(self, conf: Mapping[str, str] | None = None) -> None:
        super().__init__()
        enabled = str((conf or {}).get("spark.sql.optimizer.propagateDistinctKeys.enabled", "true"))
        self._enabled = enabled.lower() != "false"

    def __call__(self, plan: LogicalPlan) -> frozenset[Keys]:
        return super().__call__(plan) if self._enabled else frozenset()

    def compared(self, join: Join) -> tuple[Sequence[Expression], Sequence[Expression]]:
        found = extract_equi_keys(join)
        return (found.left, found.right) if found is not None else ((), ())

    def unique_side(self, join: Join) -> bool:
        """True if either side of an equi-join has no two rows with the same keys."""
        of_left, of_right = self.compared(join)
        return is_unique(self(join.left), of_left) or is_unique(self(join.right), of_right)
