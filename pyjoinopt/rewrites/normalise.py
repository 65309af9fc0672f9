"""The rewrites that run before join groups are looked for, in what order, and why.

1. `set_operations_as_joins` runs once: INTERSECT and EXCEPT over joins become semi and anti joins, which a join group
   can take in; so do the existence joins of frames that were optimised before (`existence_as_semi`).
   `extract_common_factors` takes out of ORs what all their alternatives demand, which may be what joins the tables.
2. Three rules run in turn until nothing changes. `push_down_predicates` puts every conjunct where it belongs, so that a
   relation's own filters count when its rows are estimated, and a join's condition holds what connects its sides.
   `eliminate_outer_join` turns outer joins into inner ones where a filter allows it, because inner joins can be
   ordered freely. What it uncovers is filters that may move further, hence the loop: a filter that stopped at a left
   join passes it once the join is inner, and may then reach the next outer join. `demote_outer_join` does the same for
   outer joins that an inner join or a filter further up makes needless.
3. Aggregates over the same joins, and rows of one common table expression that are joined with each other, are
   computed in one pass (`fuse_aggregates`, `pivot_self_joins`). What all readers of a common table expression keep of
   it is filtered where it is defined (`filter_common_tables`).
4. From an OR over several relations `push_extra_predicate_through_join` derives a filter for each relation.
5. Left joins of which a filter keeps only the rows without a partner become anti joins (`outer_join_as_anti_join`),
   self-joins that only look for a partner semi joins (`self_join_as_semi`).

Of Catalyst's other rules a filter inferred from an equality changes no estimate (equality classes see the same); which
columns are read at all is worked out on the side (`plan.required_columns`), without projections between joins that
would have to be looked through again; limits, grouping keys and projections over unions are outside any join group.
Spark runs these rules afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from pyjoinopt.catalyst.rules.eliminate_outer_join import eliminate_outer_join
from pyjoinopt.catalyst.rules.push_down_predicates import push_down_predicates
from pyjoinopt.catalyst.rules.push_extra_predicate_through_join import push_extra_predicate_through_join
from pyjoinopt.plan.constructors import ColumnFactory
from pyjoinopt.plan.nodes import LogicalPlan
from pyjoinopt.plan.rewritten import Rewritten
from pyjoinopt.plan.spark_defaults import MAX_ITERATIONS
from pyjoinopt.plan.traversal import Change
from pyjoinopt.rewrites import self_join_to_semi_join
from pyjoinopt.rewrites.existence_to_semi_joins import existence_as_semi
from pyjoinopt.rewrites.extract_common_factors import extract_common_factors
from pyjoinopt.rewrites.filter_common_tables import filter_common_tables
from pyjoinopt.rewrites.fuse_aggregates import fuse_aggregates
from pyjoinopt.rewrites.left_join_to_anti_join import outer_join_as_anti_join
from pyjoinopt.rewrites.pivot_self_join import pivot_self_joins
from pyjoinopt.rewrites.set_operations_to_joins import set_operations_as_joins
from pyjoinopt.rewrites.simplify_outer_joins import demote_outer_join

Rule = Callable[[LogicalPlan], Rewritten]


@dataclass(frozen=True)
class RewriteContext:
    """What rewrites need beside the plan.

    Attributes:
        filters_null: see `eliminate_outer_join`.
        fresh: makes new columns, which avoiding a join may need; None to avoid none.
        sensitive: see `plan.facts.equality_substitution.sensitive_columns`, of the whole query; None for that of the
            plan.
    """

    filters_null: frozenset[int] = frozenset()
    fresh: ColumnFactory | None = None
    sensitive: int | None = None


class Rewrite(NamedTuple):
    """One step.

    Attributes:
        name: by which it can be switched off (`spark.pyjoinopt.rewritesWithout`); "" for one that cannot.
        run: the same plan if there is nothing to rewrite.
        then: names of earlier rewrites that run again where it has changed something; "" pushes predicates down.
        avoids: whether its notes are about joins that it avoids, not about outer joins that it eliminates.
    """

    name: str
    run: Callable[[LogicalPlan, RewriteContext], Rewritten]
    then: tuple[str, ...] = ()
    avoids: bool = False


class Normalised(NamedTuple):
    """What `normalise` gives back.

    Attributes:
        plan: the very same object if nothing changed.
        outer_joins: one sentence for every outer join that changed.
        avoided: one sentence for every join that was found needless, or to be a simpler one.
    """

    plan: LogicalPlan
    outer_joins: tuple[str, ...] = ()
    avoided: tuple[str, ...] = ()


def _eliminate_outer_joins(plan: LogicalPlan, context: RewriteContext) -> Rewritten:
    eliminate = partial(eliminate_outer_join, filters_null=context.filters_null)
    simplify = partial(demote_outer_join, sensitive=context.sensitive)
    return run_batch(plan, (without_notes(push_down_predicates), eliminate, simplify))


def _fuse(plan: LogicalPlan, context: RewriteContext) -> Rewritten:
    return Rewritten(plan) if context.fresh is None else fuse_aggregates(plan)


def _pivot(plan: LogicalPlan, context: RewriteContext) -> Rewritten:
    return Rewritten(plan) if context.fresh is None else pivot_self_joins(plan, context.fresh)


def _filter_common_tables(plan: LogicalPlan, context: RewriteContext) -> Rewritten:
    return Rewritten(plan if context.fresh is None else filter_common_tables(plan))


def _semi(plan: LogicalPlan, context: RewriteContext) -> Rewritten:
    return Rewritten(plan) if context.fresh is None else self_join_to_semi_join.self_join_as_semi(plan)


#: In the order in which they run.
REWRITES: tuple[Rewrite, ...] = (
    Rewrite("existence_to_semi_joins", lambda plan, c: Rewritten(existence_as_semi(plan, c.sensitive or 0))),
    Rewrite("set_operations_to_joins", lambda plan, c: Rewritten(set_operations_as_joins(plan))),
    Rewrite("extract_common_factors", lambda plan, c: Rewritten(extract_common_factors(plan))),
    Rewrite("", lambda plan, c: Rewritten(push_down_predicates(plan))),
    Rewrite("simplify_outer_joins", _eliminate_outer_joins),
    Rewrite("fuse_aggregates", _fuse, ("extract_common_factors", ""), avoids=True),
    Rewrite("pivot_self_join", _pivot, ("extract_common_factors", ""), avoids=True),
    Rewrite("filter_common_tables", _filter_common_tables, ("extract_common_factors", "")),
    Rewrite("push_extra_predicate", lambda plan, c: Rewritten(push_extra_predicate_through_join(plan)), ("",)),
    Rewrite("left_join_to_anti_join", lambda plan, c: outer_join_as_anti_join(plan)),
    Rewrite(self_join_to_semi_join.NAME, _semi, avoids=True),
)


def without_notes(rule: Change) -> Rule:
    """A rule that makes no notes, for `run_batch`."""
    return lambda plan: Rewritten(rule(plan))


def run_batch(plan: LogicalPlan, rules: tuple[Rule, ...], most: int = MAX_ITERATIONS) -> Rewritten:
    """Run the rules in order, again and again until a whole pass changes nothing, `most` passes at most.

    A rule that changes nothing gives the same object back, so the pass that confirms the fixed point costs one walk
    per rule.
    """
    notes: list[str] = []
    for _ in range(most):
        before = plan
        for rule in rules:
            plan, made = rule(plan)
            notes += made
        if plan is before:
            break
    return Rewritten(plan, tuple(notes))


def normalise(
    plan: LogicalPlan, context: RewriteContext = RewriteContext(), without: Collection[str] = ()
) -> Normalised:
    """The plan in which join groups are looked for: predicates in place, needless joins gone.

    Args:
        plan: an analysed plan; plans of subquery expressions are not entered.
        context: what rewrites need beside the plan.
        without: names of rewrites that are switched off.

    Returns:
        The plan, the very same object if nothing changed, and notes for a report.
    """
    rewrites = {rewrite.name: rewrite for rewrite in REWRITES if rewrite.name not in without}
    outer_joins: list[str] = []
    avoided: list[str] = []
    for rewrite in rewrites.values():
        before = plan
        plan, notes = rewrite.run(plan, context)
        (avoided if rewrite.avoids else outer_joins).extend(notes)
        for name in rewrite.then if plan is not before else ():
            plan = rewrites[name].run(plan, context).plan if name in rewrites else plan
    return Normalised(plan, tuple(outer_joins), tuple(avoided))
