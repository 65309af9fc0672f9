"""What an early aggregate costs, and what it saves, in the units of the cost model.

Compared is the work from the plan that may be grouped up to the result of the aggregate above: rows that are handed
through joins, shuffled, sorted or built into hash tables, and grouped. With the early aggregate all of these become
fewer by one factor, groups to rows, and the early aggregate is added.

**A shuffle** is replaced, not added, if the early aggregate groups by just the keys of the shuffled join above it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from pyjoinopt.catalyst.planner.join_selection import SHUFFLED_HASH, SORT_MERGE
from pyjoinopt.estimation.model.relation_statistics import StatisticsOf, row_width, type_size
from pyjoinopt.estimation.plans.runs import shared_run
from pyjoinopt.optimizer.eager_aggregation.candidates import Candidate, Step, columns_read, pads
from pyjoinopt.optimizer.eager_aggregation.split_functions import is_hashed
from pyjoinopt.optimizer.operator_work import OperatorWork, Rows
from pyjoinopt.optimizer.partitioning import (
    UNKNOWN,
    OperatorOf,
    Partitioning,
    after_join,
    columns_of,
    join_keys,
    partitioning_of,
    satisfies,
)
from pyjoinopt.plan.constructors import aggregate
from pyjoinopt.plan.expressions import Attribute, Expression, reference
from pyjoinopt.plan.nodes import Filter, Join, LogicalPlan, attribute_set
from pyjoinopt.util.bitset import members


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


class Pricing:
    """Prices of early aggregates.

    Args:
        estimate: statistics of any sub-plan.
        operator: Spark's choice for a join.
        work: what single operators cost.
    """

    def __init__(self, estimate: StatisticsOf, operator: OperatorOf, work: OperatorWork) -> None:
        self._estimate = estimate
        self._operator = operator
        self._constants = work.constants
        self._work = work

    def rows_of_group(self, candidate: Candidate) -> float:
        """How many rows a group has on average; the work above does not become less by a larger factor."""
        return max(1.0, self._estimate(candidate.plan).rows) / self._groups(candidate)

    def _groups(self, candidate: Candidate) -> float:
        """The groups of the early aggregate, at least 1."""
        keys = [reference(a) for a in candidate.keys]
        known = self._estimate(candidate.plan)
        return max(1.0, min(known.rows, self._estimate(aggregate(keys, keys, candidate.plan)).rows))

    def __call__(self, candidate: Candidate, up_to: Join | None = None) -> Price:
        """The price of a candidate.

        Args:
            candidate: what is grouped.
            up_to: one of the joins between, if only the work up to what this one reads is compared.
        """
        known = self._estimate(candidate.plan)
        rows, groups = max(1.0, known.rows), self._groups(candidate)
        partitioning = partitioning_of(candidate.plan, self._operator)
        functions = [candidate.below[i] for i in candidate.early]
        read = candidate.read | reduce(or_, (f.references for f in functions), 0)
        plain = Rows(rows, row_width(_some(candidate.plan, read), known.columns), partitioning)
        width = row_width(candidate.keys, known.columns) + _results_size(candidate)
        by = attribute_set(candidate.keys)
        run = shared_run(known.column(a.bit) for a in candidate.keys)
        added = self._work.compiled + self._work.grouping(plain, by, groups, width, run, _sorts(functions))
        found = Rows(groups, width, partitioning)
        if not satisfies(partitioning, by):
            found = Rows(groups, found.width, (by,))
        joins = [step.node for step in _lowest(candidate.path, up_to) if isinstance(step.node, Join)]
        return Price(
            rows,
            groups,
            self._above(candidate, plain, 1.0, up_to, early=False),
            added + self._above(candidate, found, groups / rows, up_to, early=True),
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
        read, columns = columns_read(step, candidate.early), self._estimate(step.node).columns
        if early:
            return row_width(_some(step.node, read), columns) + _results_size(candidate)
        return row_width(_some(step.node, read | reduce(or_, (f.references for f in functions), 0)), columns)

    def _above(self, candidate: Candidate, rows: Rows, share: float, up_to: Join | None, *, early: bool) -> float:
        """The work of the operators between, and of the upper aggregate.

        Args:
            candidate: what is grouped.
            rows: that the lowest of these operators reads.
            share: the part of the estimated rows that there are.
            up_to: the join at which this ends, if any; only what it reads is counted of it.
            early: whether they come out of the early aggregate.
        """
        work = 0.0
        for step in reversed(candidate.path):
            if isinstance(step.node, Join):
                done, partitioning = self._joining(step.node, step, rows)
                work += done
                if step.node is up_to:
                    return work
                number = share * self._estimate(step.node).rows
                if pads(step):  # each row of the other side remains, with partners or without
                    number = max(number, self._estimate(step.node.children[1 - step.child]).rows)
                rows = Rows(number, self._width(candidate, step, early), partitioning)
                work += number
            elif isinstance(step.node, Filter):
                rows = Rows(share * self._estimate(step.node).rows, rows.width, rows.partitioning)
            elif step.node.kind == "Expand":
                number = rows.number * len(step.node.info["lists"])
                rows = Rows(number, self._width(candidate, step, early), UNKNOWN)
                work += number
        upper = candidate.aggregate
        groups = min(rows.number, self._estimate(upper).rows)
        width = row_width(upper.output, self._estimate(upper).columns)
        by, below = columns_of(upper.grouping), self._estimate(upper.child)
        run = 1.0 if early or not by else shared_run(below.column(bit) for bit in members(by))
        return work + self._work.grouping(rows, by, groups, width, run, _sorts(candidate.functions))

    def _joining(self, join: Join, step: Step, rows: Rows) -> tuple[float, Partitioning]:
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
                work += self._work.shuffle(rows.number, rows.width)
            if operator.name == SORT_MERGE:
                work += rows.number * c.sorted_row
            elif operator.build == side:
                work += rows.number * c.hashed_row
        return work, result


def _some(plan: LogicalPlan, read: int) -> list[Attribute]:
    return [a for a in plan.output if a.mask & read]


def _results_size(candidate: Candidate) -> float:
    """Bytes of the results of functions, and of the number of rows where others need it."""
    counted = type_size("bigint") if candidate.counts_rows else 0.0
    return counted + sum(type_size(candidate.below[i].type) for i in candidate.early)


def _lowest(path: Sequence[Step], last: Join | None) -> Sequence[Step]:
    """The part of a path from a join down."""
    at = next((i for i, step in enumerate(path) if step.node is last), 0)
    return path[at:]


def _sorts(functions: Sequence[Expression]) -> bool:
    """Whether an aggregate with these functions sorts rows, as it cannot hash them."""
    return not all(map(is_hashed, functions))
