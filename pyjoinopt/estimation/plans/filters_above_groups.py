"""A filter above a GROUP BY or a UNION ALL is estimated below it, where Catalyst will push it.

    WITH total AS (
      SELECT customer, year, sum(paid) AS paid, 'store' AS channel FROM ... GROUP BY customer, year UNION ALL
      SELECT customer, year, sum(paid) AS paid, 'web'   AS channel FROM ... GROUP BY customer, year)
    SELECT * FROM total WHERE channel = 'web' AND year = 2001

The merged statistics of a union only know that there are two channels, and a filter would take half of each: but of the
first branch nothing is left, and all of the second one. Of the groups of a year there are no more than customers, as
many groups as there may be of all years.

A common table expression with several readers is not inlined in the plan that is estimated, so filters are above its
readers there, each with its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from operator import or_

from pyjoinopt.estimation.model.comparisons import and_operands
from pyjoinopt.estimation.model.relation_statistics import RelationStatistics, StatisticsOf
from pyjoinopt.estimation.plans.operators import estimate_operator, renamed
from pyjoinopt.estimation.plans.selectivity import apply_filter
from pyjoinopt.plan.common_expressions import inline_common_expressions
from pyjoinopt.plan.expressions import Attribute, Expression, conjunction, reference, substitute
from pyjoinopt.plan.facts.constant_values import has_value
from pyjoinopt.plan.nodes import Aggregate, Filter, LogicalPlan, Project
from pyjoinopt.plan.operator_kinds import ROWS_ONE_TO_ONE

#: Common table expression of a reader -> its definition, if it is known.
Definitions = Callable[[LogicalPlan], LogicalPlan | None]
#: Attribute number of a column -> what it is in the plan below.
_Meanings = dict[int, Expression]
#: Operators between a filter and where it is estimated.
_DEEPEST = 50


def filter_above_groups(node: Filter, known: StatisticsOf, definition: Definitions) -> RelationStatistics | None:
    """Statistics of a filter above groups or a union, perhaps with projections and readers between them.

    Args:
        node: the filter.
        known: statistics of the nodes below it.
        definition: see `Definitions`.

    Returns:
        None if there are none.
    """
    below: LogicalPlan | None = node.child
    while below is not None and not (below.kind == "Union" or isinstance(below, Aggregate)):
        below = _below(below, definition)
    if below is None or below.cached:
        return None
    found = _Estimator(known, definition)(and_operands(inline_common_expressions(node.condition)), node.child)
    return replace(found, unfiltered=known(node.child).base_rows)


class _Estimator:
    def __init__(self, known: StatisticsOf, definition: Definitions) -> None:
        self._known, self._definition = known, definition

    def __call__(self, conjuncts: Sequence[Expression], plan: LogicalPlan, depth: int = 0) -> RelationStatistics:
        """Statistics of a filter above a plan."""
        below = self._inputs(plan) if conjuncts and depth < _DEEPEST else ()
        if not below:
            return _apply(self._known(plan), conjuncts)
        filtered, late = [], list(conjuncts)
        for child, meanings in below:
            early, late = _split(conjuncts, meanings)
            if isinstance(plan, Aggregate):  # below it are rows, not groups
                filtered.append(_apply(self._known(child), early))
            else:
                filtered.append(self(early, child, depth + 1))
        if len(late) == len(conjuncts):
            return _apply(self._known(plan), late)
        if plan.kind == "CTERelationRef":
            return renamed(filtered[0], below[0][0].output, plan.output)
        return _apply(estimate_operator(plan, filtered, self._known), late)

    def _inputs(self, plan: LogicalPlan) -> list[tuple[LogicalPlan, _Meanings]]:
        """The plans below one through which filters are estimated, each with what the columns are there."""
        if plan.cached:
            return []
        if plan.kind == "Union":
            if any(len(branch.output) != len(plan.output) for branch in plan.children):
                return []
            return [(branch, _renamed(plan.output, branch.output)) for branch in plan.children]
        if isinstance(plan, Aggregate):
            keys = {e.key for e in plan.grouping}
            given = {a.bit: _unnamed(e) for a, e in zip(plan.output, plan.aggregates)}
            pushed = {bit: e for bit, e in given.items() if e.key in keys or has_value(e)}
            return [(plan.child, pushed)] if keys else []  # without keys there is a row of no rows
        below = _below(plan, self._definition)
        if below is None:
            return []
        if isinstance(plan, Project):
            columns = ((bit, _unnamed(e)) for bit, e in plan.columns().items())
            return [(below, {bit: e for bit, e in columns if e.kind == "AttributeReference" or has_value(e)})]
        return [(below, _renamed(plan.output, below.output))]


def _split(conjuncts: Sequence[Expression], meanings: _Meanings) -> tuple[list[Expression], list[Expression]]:
    """The conjuncts that read only columns with a meaning below, in terms of these, and the others."""
    columns = reduce(or_, (1 << bit for bit in meanings), 0)
    early = [substitute(e, meanings) for e in conjuncts if not e.references & ~columns]
    return early, [e for e in conjuncts if e.references & ~columns]


def _apply(known: RelationStatistics, conjuncts: Sequence[Expression]) -> RelationStatistics:
    condition = conjunction(conjuncts)
    return known if condition is None else apply_filter(known, condition)


def _renamed(above: Sequence[Attribute], below: Sequence[Attribute]) -> _Meanings:
    return {a.bit: reference(b) for a, b in zip(above, below)}


def _below(plan: LogicalPlan, definition: Definitions) -> LogicalPlan | None:
    """The only child of a projection or of an operator that changes no row, or what a reader reads."""
    found = definition(plan)
    if found is None and len(plan.children) == 1 and not plan.cached:
        if isinstance(plan, Project) or plan.kind in ROWS_ONE_TO_ONE:
            found = plan.children[0]
    if found is None or isinstance(plan, Project):
        return found
    return found if len(found.output) == len(plan.output) else None


def _unnamed(e: Expression) -> Expression:
    return e.children[0] if e.kind == "Alias" and e.children else e
