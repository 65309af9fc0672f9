"""The plan of an aggregate that reads groups of rows instead of rows.

    Aggregate(name; sum(x), sum(y)) - Join(f.k = d.k) - fact, dim

    Aggregate(name; sum(s), sum(y * c)) - Join(f.k = d.k) - e, dim
    e: Aggregate(k; k, sum(x) AS s, count(1) AS c) - fact

Each function is computed early on one side, or on none. Its value counts as often as the rows of all other groups, so
those sides have a column with the number of rows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import reduce
from operator import or_

from pyjoinopt.optimizer.eager_aggregation.candidates import (
    Candidate,
    Step,
    columns_of_lists,
    columns_read,
    meeting_join,
    read_positions,
)
from pyjoinopt.optimizer.eager_aggregation.second_step import counted, over_repeated_rows, over_results, product
from pyjoinopt.optimizer.eager_aggregation.split_functions import first_step, keeps_repetitions, never_null
from pyjoinopt.plan.constructors import ColumnFactory, aggregate, aggregate_call, constant, project
from pyjoinopt.plan.expressions import Attribute, Expression, reference, rewrite
from pyjoinopt.plan.nodes import Aggregate, LogicalPlan, Project
from pyjoinopt.plan.operator_kinds import is_only_a_name

#: Function -> the name of the column with its results; by these names an early aggregate is recognised later.
_RESULTS = {"Count": "early_count", "Sum": "early_sum", "Min": "early_min", "Max": "early_max"}
_NAMES = frozenset(_RESULTS.values())


def may_be_early(node: LogicalPlan) -> bool:
    """Whether a node of a query may have been added when the query was optimised before; once is enough."""
    listed = node.aggregates if isinstance(node, Aggregate) else ()
    return any(e.kind == "Alias" and e.attribute is not None and e.attribute.name in _NAMES for e in listed)


def with_early_aggregates(
    sides: Sequence[Candidate], done: Mapping[int, LogicalPlan], fresh: ColumnFactory
) -> LogicalPlan:
    """The aggregate over what it reads with the early aggregates.

    A projection on top keeps functions from being added to the upper aggregate: Spark does so for a filter with
    `count(1) > 3` right above an aggregate, and would count groups.

    Args:
        sides: a candidate, or two on the sides of a join.
        done: the id of each operator below -> what it has become.
        fresh: gives out columns.
    """
    upper, functions = sides[0].aggregate, sides[0].functions
    side_of: dict[int, int] = {}
    for number, side in enumerate(sides):
        for i in side.early:
            side_of.setdefault(i, number)
    repeated = [i for i, f in enumerate(functions) if not keeps_repetitions(f)]
    grouped = []
    for number, side in enumerate(sides):
        own = [i for i in side.early if side_of[i] == number]
        counts_rows = any(side_of.get(i) != number for i in repeated)
        grouped.append(_Grouped(side, own, counts_rows, done[id(side.plan)], fresh))
    final: dict[object, Expression] = {}
    for i, function in enumerate(functions):
        others = [one.rows for number, one in enumerate(grouped) if number != side_of.get(i) and one.rows is not None]
        times = reduce(product, others) if others else None
        if i in side_of:
            final[function.key] = grouped[side_of[i]].over_results(i, times)
        elif times is not None:
            final[function.key] = over_repeated_rows(function, times)
    listed = [_replaced(e, final) for e in upper.aggregates]
    plan = _joined(grouped, done, side_of)
    return project(upper.output, aggregate(upper.grouping, listed, plan, like=upper))


class _Grouped:
    """An early aggregate.

    Args:
        side: what is grouped.
        functions: the numbers of the functions that are computed.
        counts_rows: whether functions of other sides need the number of rows of a group.
        plan: what is grouped, rebuilt.
        fresh: gives out columns.
    """

    def __init__(
        self, side: Candidate, functions: Sequence[int], counts_rows: bool, plan: LogicalPlan, fresh: ColumnFactory
    ) -> None:
        self.side = side
        keys = [reference(a) for a in side.keys]
        listed = list(keys)
        self._results: dict[int, list[Attribute]] = {}
        for i in functions:
            self._results[i] = []
            for step in first_step(side.below[i]):
                listed.append(fresh.alias(step, _RESULTS[step.info["fn"]], not never_null(step)))
                self._results[i].append(_column(listed[-1]))
        self.rows: Expression | None = None
        if counts_rows:
            rows = aggregate_call("Count", constant(1, "int"))
            listed.append(fresh.alias(rows, _RESULTS["Count"], nullable=False))
            self.rows = counted(_column(listed[-1]), int(side.may_have_padded_rows))
        self.plan = aggregate(keys, listed, plan)

    def over_results(self, i: int, times: Expression | None) -> Expression:
        """The second step of a function."""
        padded = (self.side.padded or ())[self.side.early.index(i)]
        return over_results(self.side.functions[i], self._results[i], padded, times)


def _column(alias: Expression) -> Attribute:
    assert alias.attribute is not None
    return alias.attribute


def _joined(grouped: Sequence[_Grouped], done: Mapping[int, LogicalPlan], early: Collection[int]) -> LogicalPlan:
    """What the upper aggregate reads; the functions that are computed early have only their results there."""
    first, *others = grouped
    plans = dict(done)
    for other in others:
        join = meeting_join(first.side, other.side)
        at = next(i for i, step in enumerate(other.side.path) if step.node is join)
        below = other.side.path[at]
        plans[id(below.node.children[below.child])] = _up(other.side.path[at + 1 :], other.plan, plans, early)
    return _up(first.side.path, first.plan, plans, early)


def _up(
    path: Sequence[Step], plan: LogicalPlan, done: Mapping[int, LogicalPlan], early: Collection[int]
) -> LogicalPlan:
    """The operators of a path over a plan."""
    for step in reversed(path):
        plan = _over(step, columns_read(step, early), plan, done)
    return plan


def _over(step: Step, read: int, plan: LogicalPlan, done: Mapping[int, LogicalPlan]) -> LogicalPlan:
    """An operator over a plan that has results of functions instead of their arguments; names are left out."""
    node = step.node
    if is_only_a_name(node):
        return plan
    if isinstance(node, Project):
        picked = [e for e in node.projections if e.attribute is not None and e.attribute.mask & read]
        results = [reference(a) for a in plan.output if not a.mask & node.child.output_set]
        return Project((*picked, *results), plan)
    if node.kind == "Expand":
        return _expand(node, read, plan)
    children = [done[id(each)] for each in node.children]
    children[step.child] = plan
    return node.with_children(tuple(children))


def _expand(node: LogicalPlan, read: int, plan: LogicalPlan) -> LogicalPlan:
    """An Expand with what something above reads, and with the results of functions in each copy of a row."""
    results = [a for a in plan.output if not a.mask & node.children[0].output_set]
    listed = [columns_of_lists(node)[i] for i in read_positions(node, read)]
    copies = len(node.info["lists"])
    listed += [(reference(a),) * copies for a in results]
    lists = [tuple(column[i] for column in listed) for i in range(copies)]
    output = (*(node.output[i] for i in read_positions(node, read)), *results)
    reads = reduce(or_, (e.references for column in listed for e in column), 0)
    info = {**node.info, "narrowed": True, "lists": lists, "reads_set": reads}
    expressions = tuple(e for each in lists for e in each)
    return LogicalPlan(node.kind, (plan,), output, expressions, None, node.origin, info)


def _replaced(listed: Expression, final: Mapping[object, Expression]) -> Expression:
    """A column of the upper aggregate, over the results of the early ones."""

    def change(e: Expression) -> Expression:
        return final.get(e.key, e) if e.kind == "AggregateExpression" else e

    return rewrite(listed, change)
