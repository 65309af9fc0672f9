"""CombineFilters: a filter over a filter is one filter.

    Filter (b > 2 AND a > 1)              Filter (a > 1 AND b > 2)
      Filter (a > 1)             becomes    t
        t

The conjuncts of the lower filter come first, since they were evaluated first; those of the upper one that repeat them
are dropped. A conjunct that is meant to fail (`raise_error`) is kept in a filter of its own above, so that it sees only
the rows that passed. Over a nondeterministic filter nothing is merged: which rows it lets through depends on which
rows it sees.
"""

from __future__ import annotations

from collections import deque

from pyjoinopt.catalyst.support.pushdown_policy import PushdownPolicy, PushdownResult
from pyjoinopt.plan.expressions import Expression, conjuncts
from pyjoinopt.plan.fallible import fallibility
from pyjoinopt.plan.nodes import Filter


class Combined:
    """The conjuncts of a filter on its way down, merged with those of each filter below it.

    The keys of all of them are remembered, so that a tower of filters costs no more than the number of its conjuncts.
    """

    def __init__(self) -> None:
        self._known: set[object] | None = None

    def forget(self) -> None:
        """The conjuncts have been changed or some have been left behind."""
        self._known = None

    def with_lower(
        self, pending: deque[Expression], lower: Filter, policy: PushdownPolicy
    ) -> PushdownResult | None:
        """Merge `pending` into the lower filter; None if none of it may be merged.

        Returns:
            `below` has the conjuncts of both; `changed` is true if any is new to the lower filter.
        """
        if not lower.condition.deterministic:
            return None
        own = conjuncts(lower.condition)
        above = [p for p in pending if _remains(p) or policy.keeps_above(p, own)]
        if len(above) == len(pending):
            return None
        if self._known is None or above:
            self._known = {p.key for p in pending}
        repeats = {p.key for p in own}
        if above or repeats & self._known or len(self._known) < len(pending):
            kept = []
            remaining = {id(predicate) for predicate in above}
            for predicate in pending:
                if id(predicate) not in remaining and predicate.key not in repeats:
                    repeats.add(predicate.key)
                    kept.append(predicate)
            pending.clear()
            pending.extend(kept)
        fresh = bool(pending)
        pending.extendleft(reversed(own))
        self._known.update(repeats)
        return PushdownResult(pending, above, fresh)


def _remains(predicate: Expression) -> bool:
    return not predicate.deterministic or fallibility.is_meant_to_throw(predicate)
