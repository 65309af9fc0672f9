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
3. Self-joins and aggregates over the same joins are found in one pass (`fuse_aggregates`, `pivot_self_joins`).
4. From an OR over several relations `push_extra_predicate_through_join` derives a filter for each relation.
5. Left joins of which a filter keeps only the rows without a partner become anti joins (`outer_join_as_anti_join`).

Of Catalyst's other rules a filter inferred from an equality changes no estimate (equality classes see the same); which
columns are read at all is worked out on the side (`plan.required_columns`), without projections between joins that
would have to be looked through again; limits, grouping keys and projections over unions lie outside any join group.
Spark runs these rules afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pyjoinopt.catalyst.rules.eliminate_outer_join import eliminate_outer_join
from pyjoinopt.catalyst.rules.push_down_predicates import push_down_predicates
from pyjoinopt.catalyst.rules.push_extra_predicate_through_join import push_extra_predicate_through_join
from pyjoinopt.plan.constructors import ColumnFactory
from pyjoinopt.plan.nodes import LogicalPlan
from pyjoinopt.plan.traversal import MOST_PASSES
from pyjoinopt.rewrites.existence_to_semi_joins import existence_as_semi
from pyjoinopt.rewrites.extract_common_factors import extract_common_factors
from pyjoinopt.rewrites.fuse_aggregates import fuse_aggregates
from pyjoinopt.rewrites.left_join_to_anti_join import outer_join_as_anti_join
from pyjoinopt.rewrites.pivot_self_join import pivot_self_joins
from pyjoinopt.rewrites.self_join_to_semi_join import self_join_as_semi
from pyjoinopt.rewrites.set_operations_to_joins import set_operations_as_joins
from pyjoinopt.rewrites.simplify_outer_joins import demote_outer_join

Rule = Callable[[LogicalPlan], LogicalPlan]


def run_batch(plan: LogicalPlan, rules: tuple[Rule, ...], most: int = MOST_PASSES) -> LogicalPlan:
    """Run the rules in order, again and again until a whole pass changes nothing, `most` passes at most.

    A rule that changes nothing gives the same object back, so the pass that confirms the fixed point costs one walk
    per rule.
    """
    for _ in range(most):
        before = plan
        for rule in rules:
            plan = rule(plan)
        if plan is before:
            break
    return plan


def normalise(
    plan: LogicalPlan,
    filters_null: frozenset[int] = frozenset(),
    log: list[str] | None = None,
    spared: list[str] | None = None,
    fresh: ColumnFactory | None = None,
    sensitive: int | None = None,
) -> LogicalPlan:
    """The default road up to the join groups: predicates in place, needless outer joins gone.

    Args:
        plan: an analysed plan; plans of subquery expressions are not entered.
        filters_null: see `eliminate_outer_join`.
        log: gets one sentence for every outer join that changed.
        spared: gets one sentence for every join that was found needless, or to be a simpler one.
        fresh: gives new columns, which finding such joins may need; None to look for none.
        sensitive: see `plan.facts.equality_substitution.sensitive_columns`, of the whole query; None for that of
        `plan`.

    Returns:
        The plan, the very same object if nothing changed.
    """
    eliminate = partial(eliminate_outer_join, filters_null=filters_null, log=log)
    plan = extract_common_factors(set_operations_as_joins(existence_as_semi(plan, sensitive or 0)))
    plan = run_batch(plan, (push_down_predicates, eliminate, partial(demote_outer_join, log=log, sensitive=sensitive)))
    if fresh is not None:
        once = pivot_self_joins(fuse_aggregates(plan, spared), fresh, spared)
        if once is not plan:
            plan = push_down_predicates(extract_common_factors(once))
    told = push_extra_predicate_through_join(plan)
    plan = plan if told is plan else push_down_predicates(told)
    plan = outer_join_as_anti_join(plan, log=log)
    return plan if fresh is None else self_join_as_semi(plan, spared)
