"""What an early aggregate costs, and what it saves, in the units of the cost model.

Compared is the work from the plan that may be grouped up to the result of the aggregate above: rows that are handed
through joins, shuffled, sorted or built into hash tables, and grouped. With the early aggregate all of these become
fewer by one factor, groups to rows, and the early aggregate is added.

**An aggregate** groups the rows of each task first, then what all tasks have. So the rows that it shuffles are fewer
only if rows of one task share a group. Rows are taken to be spread over the tasks at random, but for those that are
stored together: the lines of an order are read by one task, so it has one row for them (`estimation.plans.runs`). Rows
that are partitioned by some of its keys are not shuffled at all.

**A shuffle** is replaced, not added, if the early aggregate groups by just the keys of the shuffled join above it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from pyjoinopt.catalyst.planner.join_selection import SHUFFLED_HASH, SORT_MERGE
from pyjoinopt.cost.constants import Constants
from pyjoinopt.estimation.model.relation_statistics import StatisticsOf, row_width, type_size
from pyjoinopt.estimation.plans.runs import shared_run
from pyjoinopt.optimizer.eager_aggregation.candidates import Candidate, Step, pads
from pyjoinopt.optimizer.eager_aggregation.partitioning import (
    UNKNOWN,
    OperatorOf,
    Partitioning,
    after_join,
    columns_of,
    join_keys,
    partitioning_of,
    satisfies,
)
from pyjoinopt.optimizer.eager_aggregation.split_functions import is_hashed
from pyjoinopt.plan.constructors import aggregate
from pyjoinopt.plan.expressions import Attribute, Expression, reference
from pyjoinopt.plan.nodes import Filter, Join, LogicalPlan, attribute_set
from pyjoinopt.util.bitset import members

#: [exchanges] What an early aggregate costs whatever it reads: generated code of two more operators is compiled, some
#: tenths of a second. Ours, from TPC-DS 38, 74 and 87 at scale 1, where it took 0.1 to 0.5 s more than it saved.
_COMPILED = 4.0
#: [tasks] that read a plan at least.
_LEAST_TASKS = 16
#: [bytes] that a task reads (spark.sql.files.maxPartitionBytes).
_BYTES_OF_TASK = float(128 << 20)


@dataclass(frozen=True)
class Price:
    """The work with and without an early aggregate.

    Attributes:
        rows, groups: that the early aggregate reads and gives.
        before, after: the work up to the upper aggregate's result.
        shuffled: whether a join between is shuffled, so that fewer rows are written and sorted.
        counted: whether it is known how many values each of the keys has.
    """

    rows: float
    groups: float
    before: float
    after: float
    shuffled: bool
    counted: bool


@dataclass(frozen=True)
class _Rows:
    """Rows on their way up: how many, how wide, how partitioned."""

    number: float
    width: float
    partitioning: Partitioning


class Pricing:
    """Prices of early aggregates.

    Args:
        estimate: statistics of any sub-plan.
        operator: Spark's choice for a join.
        constants: of the cost model.
    """

    def __init__(self, estimate: StatisticsOf, operator: OperatorOf, constants: Constants) -> None:
        self._estimate = estimate
        self._operator = operator
        self._constants = constants

    def rows_of_group(self, candidate: Candidate) -> float:
        """How many rows a group has on average; the work above does not become less by a larger factor."""
        return max(1.0, self._estimate(candidate.plan).rows) / self._groups(candidate)

    def _groups(self, candidate: Candidate) -> float:
        """The groups of the early aggregate, at least 1."""
        keys = [reference(a) for a in candidate.keys]
        known = self._estimate(candidate.plan)
        return max(1.0, min(known.rows, self._estimate(aggregate(keys, keys, candidate.plan)).rows))

    def __call__(self, candidate: Candidate) -> Price:
        """The price of a candidate."""
        known = self._estimate(candidate.plan)
        rows, groups = max(1.0, known.rows), self._groups(candidate)
        partitioning = partitioning_of(candidate.plan, self._operator)
        functions = [candidate.below[i] for i in candidate.early]
        read = candidate.read | reduce(or_, (f.references for f in functions), 0)
        plain = _Rows(rows, row_width(_some(candidate.plan, read), known.columns), partitioning)
        width = row_width(candidate.keys, known.columns) + _size(functions)
        by = attribute_set(candidate.keys)
        run = shared_run(known.column(a.bit) for a in candidate.keys)
        added = _COMPILED * self._constants.shuffle + self._grouping(plain, by, groups, width, functions, run)
        found = _Rows(groups, width, partitioning)
        if not satisfies(partitioning, by):
            found = _Rows(groups, found.width, (by,))
        joins = [step.node for step in candidate.path if isinstance(step.node, Join)]
        return Price(
            rows,
            groups,
            self._above(candidate, plain, 1.0, early=False),
            added + self._above(candidate, found, groups / rows, early=True),
            shuffled=any(self._operator(join).name in (SORT_MERGE, SHUFFLED_HASH) for join in joins),
            counted=all(known.column(a.bit).ndv is not None for a in candidate.keys),
        )

    def _width(self, candidate: Candidate, step: Step, early: bool) -> float:
        """Bytes of a row of an operator between, as far as something above reads it.

        Args:
            candidate: what is grouped.
            step: the operator.
            early: whether it has the results of functions instead of their arguments.
        """
        functions = [step.functions[i] for i in candidate.early]
        read, columns = candidate.read_of(step), self._estimate(step.node).columns
        if early:
            return row_width(_some(step.node, read), columns) + _size(functions)
        return row_width(_some(step.node, read | reduce(or_, (f.references for f in functions), 0)), columns)

    def _above(self, candidate: Candidate, rows: _Rows, share: float, *, early: bool) -> float:
        """The work of the operators between, and of the upper aggregate.

        Args:
            candidate: what is grouped.
            rows: that the lowest of these operators reads.
            share: the part of the estimated rows that there are.
            early: whether they come out of the early aggregate.
        """
        work = 0.0
        for step in reversed(candidate.path):
            if isinstance(step.node, Join):
                done, partitioning = self._joining(step.node, step, rows)
                work += done
                number = share * self._estimate(step.node).rows
                if pads(step):  # each row of the other side remains, with partners or without
                    number = max(number, self._estimate(step.node.children[1 - step.child]).rows)
                rows = _Rows(number, self._width(candidate, step, early), partitioning)
                work += number
            elif isinstance(step.node, Filter):
                rows = _Rows(share * self._estimate(step.node).rows, rows.width, rows.partitioning)
            elif step.node.kind == "Expand":
                number = rows.number * len(step.node.info["lists"])
                rows = _Rows(number, self._width(candidate, step, early), UNKNOWN)
                work += number
        upper = candidate.aggregate
        groups = min(rows.number, self._estimate(upper).rows)
        width = row_width(upper.output, self._estimate(upper).columns)
        by, below = columns_of(upper.grouping), self._estimate(upper.child)
        run = 1.0 if early or not by else shared_run(below.column(bit) for bit in members(by))
        return work + self._grouping(rows, by, groups, width, candidate.functions, run)

    def _joining(self, join: Join, step: Step, rows: _Rows) -> tuple[float, Partitioning]:
        """What a join costs one side, and how its result is partitioned."""
        c, operator = self._constants, self._operator(join)
        side = ("left", "right")[step.child]
        result = after_join(join, operator, UNKNOWN if operator.build == side else rows.partitioning)
        work = rows.number
        if operator.build == side and operator.name not in (SORT_MERGE, SHUFFLED_HASH):
            work += rows.number * (c.broadcast_row + rows.width * c.broadcast_byte)
        if operator.name in (SORT_MERGE, SHUFFLED_HASH):
            keys = join_keys(join)[step.child]
            if not keys or keys not in rows.partitioning:
                work += self._shuffle(rows.number, rows.width)
            if operator.name == SORT_MERGE:
                work += rows.number * c.sorted_row
            elif operator.build == side:
                work += rows.number * c.hashed_row
        return work, result

    def _grouping(
        self, rows: _Rows, by: int, groups: float, width: float, functions: Sequence[Expression], run: float
    ) -> float:
        """What an aggregate costs.

        Args:
            rows: that it reads.
            by: the columns that it groups by; none if there is none, or if one is computed.
            groups, width: rows of its result, and their bytes.
            functions: what it computes.
            run: rows after each other that are of one group, on average.
        """
        c = self._constants
        row = c.hashed_row if all(map(is_hashed, functions)) else c.hashed_row + c.sorted_row
        if satisfies(rows.partitioning, by):
            return rows.number * row + groups
        shuffled = self._groups_of_tasks(rows, groups, run)
        return (rows.number + shuffled) * row + self._shuffle(shuffled, width)

    def _groups_of_tasks(self, rows: _Rows, groups: float, run: float) -> float:
        """The groups of all tasks together, each of which groups its own rows."""
        tasks = max(_LEAST_TASKS, rows.number * rows.width / _BYTES_OF_TASK)
        in_each = groups * -math.expm1(-rows.number / run / tasks / max(1.0, groups))
        return min(rows.number, max(groups, tasks * in_each))

    def _shuffle(self, rows: float, width: float) -> float:
        c = self._constants
        return c.shuffle + rows * (1.0 + c.shuffled_row + width * c.shuffled_byte)


def _some(plan: LogicalPlan, read: int) -> list[Attribute]:
    return [a for a in plan.output if a.mask & read]


def _size(functions: Sequence[Expression]) -> float:
    """Bytes of the results of functions."""
    return sum(type_size(f.type) for f in functions)
