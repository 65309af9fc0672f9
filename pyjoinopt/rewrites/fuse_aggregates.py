"""Aggregates over the same joins that are cross joined with each other are computed in one pass.

    before  SELECT * FROM (SELECT count(*) am FROM sales JOIN times ON ... WHERE hour BETWEEN 8 AND 9),
                          (SELECT count(*) pm FROM sales JOIN times ON ... WHERE hour BETWEEN 19 AND 20)
    after   SELECT count(*) FILTER (WHERE hour BETWEEN 8 AND 9) am, count(*) FILTER (WHERE hour BETWEEN 19 AND 20) pm
            FROM sales JOIN times ON ... WHERE hour BETWEEN 8 AND 9 OR hour BETWEEN 19 AND 20

An aggregate without GROUP BY gives one row whatever it reads, so the product of several is one row too. By its FILTER
each function sees the rows that it saw before.

Legal if

* the aggregates have no GROUP BY and are inputs of one region of inner joins whose conditions cannot throw;
* they read the same inner joins of the same relations (`rewrites.plan_equivalence`), apart from filters;
* the filters that they do not share read *one* relation: with filters on several the ORs would let other combinations
  through, and one pass could be more work than several;
* no filter and no argument can throw: filters are evaluated on the rows of the other aggregates, and Spark may compute
  a part that two functions share before it evaluates their filters;
* the filters that they do not share compare no floating-point numbers (`compares_floating`);
* the functions take a FILTER, are deterministic, and do not depend on the order of rows, but for rounding;
* there are at most 16 DISTINCT functions: each repeats every row.

Source: "computation reuse via fusion", N. Bruno and others, ICDE 2022. Catalyst does it for scalar subqueries only
(`MergeScalarSubqueries`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyjoinopt.catalyst.support.predicate_helper import filtered
from pyjoinopt.plan.constructors import aggregate, project
from pyjoinopt.plan.expressions import Expression, conjunction, substitute
from pyjoinopt.plan.fallible.fallibility import may_throw
from pyjoinopt.plan.nodes import Aggregate, Join, LogicalPlan
from pyjoinopt.plan.operator_kinds import without_aliases
from pyjoinopt.plan.rewritten import Rewritten
from pyjoinopt.plan.traversal import post_order, transform_down
from pyjoinopt.rewrites.filtered_aggregates import (
    MOST_DISTINCT,
    compares_floating,
    distinct_functions,
    may_be_fused,
    only_where,
    own_predicates,
    rows_of_any,
    source_of,
)
from pyjoinopt.rewrites.inner_join_region import inner_join_inputs, is_inner
from pyjoinopt.rewrites.plan_equivalence import Columns, PlanMatcher


def fuse_aggregates(plan: LogicalPlan) -> Rewritten:
    """Make one aggregate of those that are inputs of one region of inner joins and read the same rows.

    Args:
        plan: a plan with its predicates pushed down; those of the result may have to be pushed again.

    Returns:
        The plan, the very same object if there was nothing to do, and a note for every aggregate that became part of
        another one.
    """
    if sum(isinstance(node, Aggregate) and may_be_fused(node) for node in post_order(plan)) < 2:
        return Rewritten(plan)
    seen: set[int] = set()
    notes: list[str] = []

    def change(node: LogicalPlan) -> LogicalPlan:
        if not is_inner(node) or id(node) in seen:
            return node
        parts, predicates, joins = inner_join_inputs(node)
        seen.update(joins)
        if any(map(may_throw, predicates)):
            return node  # it may rely on a join that has one row or none
        fused, fusions = _fused(parts)
        notes.extend(fusions)
        if len(fused) == len(parts):
            return node
        return project(node.output, filtered(predicates, reduce(Join, fused)))

    return Rewritten(transform_down(plan, change), tuple(notes))


def _fused(parts: Sequence[LogicalPlan]) -> tuple[list[LogicalPlan], list[str]]:
    """The parts, those that are fused in the place of the first of them, and a note for each of the others."""
    result: list[LogicalPlan] = []
    notes: list[str] = []
    waiting = list(parts)
    alike = PlanMatcher()
    while waiting:
        part = waiting.pop(0)
        first = without_aliases(part)
        if not isinstance(first, Aggregate) or not may_be_fused(first):
            result.append(part)
            continue
        fusion = _Fusion(first, alike)
        waiting = [other for other in waiting if not fusion.admits(without_aliases(other))]
        notes += fusion.notes
        result.append(part if len(fusion.members) == 1 else fusion.plan())
    return result, notes


class _Fusion:
    """An aggregate, and others that read the same joins of the same relations."""

    def __init__(self, first: Aggregate, alike: PlanMatcher) -> None:
        self._alike = alike
        self._leaves, predicates = source_of(first)
        self.members: list[tuple[Aggregate, Columns]] = [(first, {})]
        self._predicates = [predicates]
        self.notes: list[str] = []

    def admits(self, other: LogicalPlan) -> bool:
        """Take in another aggregate, if that is possible."""
        if not isinstance(other, Aggregate) or not may_be_fused(other):
            return False
        leaves, predicates = source_of(other)
        columns = self._same_relations(leaves)
        if columns is None or any(map(may_throw, predicates)) or any(map(may_throw, self._predicates[0])):
            return False
        predicates_of = [*self._predicates, [substitute(p, columns) for p in predicates]]
        rests = own_predicates(self._alike, predicates_of)
        if any(map(compares_floating, rests)):
            return False
        members = [*self.members, (other, columns)]
        if not self._differ_in_one_relation(rests) or sum(distinct_functions(m) for m, _ in members) > MOST_DISTINCT:
            return False
        self.members, self._predicates = members, predicates_of
        one, first = (", ".join(column.name for column in a.output) for a in (other, self.members[0][0]))
        self.notes.append(f"{one} and {first} are computed together: they are aggregates over the same relations")
        return True

    def plan(self) -> LogicalPlan:
        """One aggregate with the columns of all."""
        rests = own_predicates(self._alike, self._predicates)
        aggregates = [
            only_where(substitute(e, columns), conjunction(rest))
            for (member, columns), rest in zip(self.members, rests, strict=True)
            for e in member.aggregates
        ]
        read = rows_of_any(self._predicates[0], rests)
        return aggregate((), aggregates, filtered(read, reduce(Join, self._leaves)))

    def _same_relations(self, leaves: Sequence[LogicalPlan]) -> Columns | None:
        """The columns of these relations in terms of the first aggregate's, if they are the same ones."""
        if len(leaves) != len(self._leaves):
            return None
        columns: Columns = {}
        free = list(self._leaves)
        for leaf in leaves:
            for mine in free:
                found = self._alike.columns(mine, leaf)
                if found is not None:
                    columns.update(found)
                    free.remove(mine)
                    break
            else:
                return None
        return columns

    def _differ_in_one_relation(self, rests: list[list[Expression]]) -> bool:
        """Do the demands that not all have read only one relation?"""
        demands = [p for rest in rests for p in rest]
        read = 0
        for p in demands:
            read |= p.references
        inside = not demands or any(not read & ~leaf.output_set for leaf in self._leaves)
        return inside and all(p.references for p in demands)
