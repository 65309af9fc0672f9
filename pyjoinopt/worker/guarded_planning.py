"""Plans one query of a session under the guard: with our plan, with the plan without learnt row counts, or as written.

    our plan is not known to be slower than another one            -> our plan
    it is, and learnt row counts (feedback) led to another plan    -> the plan without them, if that is not slower
    it is slower than the query as written, or `guard` explores    -> as written, with the reason in the report

What was decided after earlier runs is an `Outlook` (`feedback.guard`). Subqueries are planned before the query that
contains them, and all parts of a query go together: if the first one runs as written, so do the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from pyjoinopt.config import Options
from pyjoinopt.feedback.guard import EXPLORE, OFF, fits
from pyjoinopt.feedback.learned_rows import ExpectedGroup
from pyjoinopt.feedback.planned_query import PlannedQuery
from pyjoinopt.feedback.query_store import AS_WRITTEN, QueryStore
from pyjoinopt.plan.nodes import LogicalPlan
from pyjoinopt.report.join_report import JoinReport

#: The source of row counts that `statistics_without` leaves out.
_FEEDBACK = "feedback"
_EXPLORING = "it runs as written this time, to know how long that takes (guard = explore)"


@dataclass(frozen=True)
class PlannedPart:
    """What came of one plan: the plan, its report, and the join groups to recognise when it has run."""

    plan: LogicalPlan
    report: JoinReport
    expected: tuple[ExpectedGroup, ...] = ()


@dataclass(frozen=True)
class Guarded:
    """The plan to be used.

    Attributes:
        query: what is known of the query, with this plan.
        part: the plan, its report, its groups.
        revoked: the reason to run it as written, for the log; None if there is none.
    """

    query: PlannedQuery
    part: PlannedPart
    revoked: str | None = None


#: Optimises the plan with these options.
Optimize = Callable[[Options], PlannedPart]


def guarded(
    query: PlannedQuery, store: QueryStore, options: Options, written: LogicalPlan, optimize: Optimize
) -> Guarded:
    """Choose between plans of one query by what is known of its earlier runs.

    Args:
        query: with the plan that is to be planned now as its last part.
        store: the query store.
        options: of the session.
        written: the plan as written.
        optimize: makes a plan of ours.
    """

    def use(part: PlannedPart) -> Guarded:
        return Guarded(query.with_plan(part.plan, written, _changes(part.report)), part)

    def keep(reason: str, revoked: bool) -> Guarded:
        report = JoinReport(strategy=options.strategy)
        report.refuse("the whole query", reason)
        return Guarded(query.as_written(), PlannedPart(written, report), reason if revoked else None)

    outlook, more_follows = (None, False) if options.guard == OFF else query.outlook(store)
    if outlook is None or not fits(outlook, query.bytes, more_follows):
        return use(optimize(options))
    if query.shorter and not query.held:
        return use(optimize(options))  # as the parts of the query before it
    several = more_follows or query.held
    revoked = outlook.reason(outlook.last) if several else None  # the plan of the whole query is not known yet
    if revoked is not None or (options.guard == EXPLORE and outlook.explore):
        return keep(revoked or _EXPLORING, revoked is not None and not more_follows)
    if several:
        return use(optimize(options))
    ours = optimize(options)
    plan = query.with_plan(ours.plan, written, ()).plan
    if plan not in outlook.slower or plan == AS_WRITTEN:
        return use(ours)
    if _FEEDBACK not in options.without:
        other = _without_feedback(options, optimize)
        other_plan = query.with_plan(other.plan, written, ()).plan
        if other_plan != plan and not outlook.slower.get(other_plan):
            return use(other)
    reason = outlook.reason(plan)
    return use(ours) if reason is None else keep(reason, revoked=True)


def _without_feedback(options: Options, optimize: Optimize) -> PlannedPart:
    without = ", ".join(filter(None, (options.statistics_without, _FEEDBACK)))
    return optimize(replace(options, statistics_without=without))


def _changes(report: JoinReport) -> tuple[str, ...]:
    """What was changed, without any constant of the query."""
    avoided = len(report.eliminated_outer_joins) + len(report.spared_joins)
    added = len(report.eager_aggregations) + len(report.prefilters)
    counted = ((len(report.hints), "hint"), (avoided, "avoided join"), (added, "early reduction"))
    return (*report.changes, *(f"{n} {name}{'s' * (n > 1)}" for n, name in counted if n))
