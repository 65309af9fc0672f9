"""Plans one query of a session under the guard: with our plan, with the plan without learnt row counts, or as written.

    our plan is not known to be slower than another one            -> our plan
    it is, and learnt row counts (feedback) led to another plan    -> the plan without them, if that is not slower
    it is slower than the query as written, or `guard` explores    -> as written, with the reason in the report

What is known are earlier runs (`feedback.guard`). Subqueries are planned before the query that contains them, and all
parts of a query go together: if the first one runs as written, so do the others. It does if all queries that begin with
this plan were slower with our plans.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter, time
from typing import Any

from pyjoinopt.config import Options
from pyjoinopt.feedback.guard import EXPLORE, OFF, LikeRuns
from pyjoinopt.feedback.learned_rows import ExpectedGroup
from pyjoinopt.feedback.planned_query import PlannedQuery
from pyjoinopt.feedback.query_store import AS_WRITTEN, QueryStore

#: The source of row counts that `statistics_without` leaves out.
_FEEDBACK = "feedback"
_EXPLORING = "it runs as written this time, to know how long that takes (guard = explore)"
#: A plan is made a second time only if there is this share more time than the first one took.
_RESERVE = 1.5


@dataclass(frozen=True)
class PlannedPart:
    """What came of one plan.

    Attributes:
        shape: a hash of the plan; `AS_WRITTEN` if it is the written one, or if nobody needs it.
        answer: what the JVM gets of it.
        deferred: writes its report, and what the UI shows beside it; the query no longer waits then.
        changes: what was changed, for people, without any constant of the query.
        expected: its join groups, to be recognised when it has run.
        seconds: that its planning took; of a cached plan, when it was made.
        is_left_out: whether settings leave the query out.
    """

    shape: str
    answer: dict[str, Any]
    deferred: Callable[[], dict[str, Any]]
    changes: tuple[str, ...] = ()
    expected: tuple[ExpectedGroup, ...] = ()
    seconds: float = 0.0
    is_left_out: bool = False

    @property
    def outcome(self) -> str:
        """What is counted of it."""
        changed = self.answer["edits"] is not None
        return "changed" if changed else "leftOut" if self.is_left_out else "unchanged"


@dataclass(frozen=True)
class Guarded:
    """The plan to be used.

    Attributes:
        query: what is known of the query, with this plan.
        part: the plan, its report, its groups.
        warning: for the log, if a plan was revoked; the same text each time.
    """

    query: PlannedQuery
    part: PlannedPart
    warning: str | None = None


#: Optimises the plan with these options.
Optimize = Callable[[Options], PlannedPart]
#: Leaves the plan as written for this reason.
Leave = Callable[[str], PlannedPart]


class GuardedPlanning:
    """The planning of one part of a query.

    Args:
        query: with the plan that is to be planned now as its last part.
        store: the query store.
        options: of the session.
        optimize: makes a plan of ours.
        leave: makes none.
        until: when the query stops waiting, by `perf_counter`.
        is_recorded: whether the run will be recorded; nothing is explored otherwise, since nobody would know of it.
    """

    def __init__(
        self, query: PlannedQuery, store: QueryStore, options: Options, optimize: Optimize, leave: Leave, until: float,
        is_recorded: bool = True,
    ) -> None:  # fmt: skip
        self._query, self._store, self._options = query, store, options
        self._optimize, self._leave, self._until = optimize, leave, until
        self._explores = options.guard == EXPLORE and is_recorded

    def run(self) -> Guarded:
        """Choose between the plans."""
        query = self._query
        if self._options.guard == OFF or not query.complete:
            return self._use(self._optimize(self._options))
        if query.shorter:  # as the parts before it
            if not query.reason_as_written:
                return self._use(self._optimize(self._options))
            if query.reason_as_written == _EXPLORING:
                self._store.explore(query.shape, query.conditions)
            return self._keep(query.reason_as_written)
        entry = self._store.entry(query.shape, query.conditions)
        own = self._runs(query.shape, query.bytes)
        reasons = [self._reason(whole, 0.0) for whole in entry.wholes]
        if entry.wholes and not own.last and all(reasons):
            return self._keep(reasons[-1], last=False)
        if entry.wholes and not own.last:
            return self._use(self._optimize(self._options))
        if self._explores and own.is_worth_exploring(entry.explored):
            self._store.explore(query.shape, query.conditions)
            return self._keep(_EXPLORING)
        return self._by_plan(own)

    def leave(self, reason: str) -> Guarded:
        """Leave this part as written for a reason that is not its time. The run is recorded; other parts may change."""
        return Guarded(self._query.with_plan(AS_WRITTEN), replace(self._leave(reason), is_left_out=True))

    def _by_plan(self, runs: LikeRuns) -> Guarded:
        """Of a query without subqueries the plan is known now."""
        ours = self._optimize(self._options)
        plan = self._id(ours)
        if not runs.is_slower_than_any(plan):
            return self._use(ours)
        if _FEEDBACK not in self._options.without and self._until - perf_counter() > _RESERVE * ours.seconds:
            without = ", ".join(filter(None, (self._options.statistics_without, _FEEDBACK)))
            other = self._optimize(replace(self._options, statistics_without=without))
            if self._id(other) != plan and not runs.is_slower_than_any(self._id(other)):
                return self._use(other)
        reason = runs.why_slower(plan)
        return self._use(ours) if reason is None else self._keep(reason)

    def _reason(self, shape: str, size: float) -> str:
        """The reason to run a query as written whose plan is not known yet: by the last plan that it had."""
        runs = self._runs(shape, size)
        slower = runs.why_slower(runs.last)
        if slower is not None or not self._explores:
            return slower or ""
        explored = self._store.entry(shape, self._query.conditions).explored
        return _EXPLORING if runs.is_worth_exploring(explored) else ""

    def _runs(self, shape: str, size: float) -> LikeRuns:
        return LikeRuns(self._store.runs(shape, self._query.conditions), size, self._query.cores, time())

    def _id(self, part: PlannedPart) -> str:
        return self._query.with_plan(part.shape).plan

    def _use(self, part: PlannedPart) -> Guarded:
        return Guarded(self._query.with_plan(part.shape, part.changes), part)

    def _keep(self, reason: str, last: bool = True) -> Guarded:
        warning = None
        if last and reason != _EXPLORING:
            warning = f"query {self._query.shape[:8]} took longer with our plan; pyjoinopt.queries() has the figures"
        return Guarded(self._query.as_written(reason), self._leave(reason), warning)
