"""What an exchange, a broadcast and an aggregate cost, in the units of the cost model.

**An aggregate** groups the rows of each task first, then what all tasks have. So the rows that it shuffles are fewer
only if rows of one task share a group. Rows are taken to be spread over the tasks at random, but for those that are
stored together: the lines of an order are read by one task, so it has one row for them (`estimation.plans.runs`). Rows
that are partitioned by some of its keys are not shuffled at all.

A row costs less the fewer groups a task has: a table of few groups stays in the processor's caches.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from pyjoinopt.cost.constants import Constants
from pyjoinopt.optimizer.partitioning import Partitioning, satisfies

#: [exchanges] What another aggregate costs whatever it reads: generated code of two more operators is compiled, some
#: tenths of a second. Ours, from TPC-DS 38, 74 and 87 at scale 1, where it took 0.1 to 0.5 s more than it saved.
_COMPILED = 4.0
#: [tasks] that read a plan at least.
_LEAST_TASKS = 16
#: [bytes] that a task reads (spark.sql.files.maxPartitionBytes).
_BYTES_OF_TASK = float(128 << 20)
#: The part of `hashed_row` that a row costs which is added to a group in a table of few groups, and the groups of a
#: table that is as slow as any: `benchmarks/aggregates.py`.
_SMALL_TABLE, _LARGE_TABLE = 0.1, 1.2e6


@dataclass(frozen=True)
class Rows:
    """Rows on their way up: how many, how wide [bytes], how partitioned."""

    number: float
    width: float
    partitioning: Partitioning


@dataclass(frozen=True)
class OperatorWork:
    """The work of single operators.

    Attributes:
        constants: of the cost model.
    """

    constants: Constants

    @property
    def compiled(self) -> float:
        """What it costs to compile the code of another aggregate."""
        return _COMPILED * self.constants.shuffle

    def shuffle(self, rows: float, width: float) -> float:
        """What an exchange costs."""
        c = self.constants
        return c.shuffle + rows * (1.0 + c.shuffled_row + width * c.shuffled_byte)

    def broadcast(self, rows: float, width: float) -> float:
        """What it costs to collect, build and send a table."""
        c = self.constants
        return c.broadcast + rows * (c.broadcast_row + width * c.broadcast_byte)

    def grouping(self, rows: Rows, by: int, groups: float, width: float, run: float, sorts: bool = False) -> float:
        """What an aggregate costs.

        Args:
            rows: that it reads.
            by: the columns that it groups by; none if there is none, or if one is computed.
            groups, width: rows of its result, and their bytes.
            run: rows after each other that are of one group, on average.
            sorts: whether it sorts rows, as it cannot hash its functions.
        """
        tasks = _tasks(rows)
        if satisfies(rows.partitioning, by):
            return rows.number * self._grouped_row(groups / tasks, sorts) + groups
        shuffled = groups_of_tasks(rows, groups, run)
        first = rows.number * self._grouped_row(shuffled / tasks, sorts)
        return first + self.shuffle(shuffled, width) + shuffled * self._grouped_row(groups / _LEAST_TASKS, sorts)

    def _grouped_row(self, groups: float, sorts: bool) -> float:
        """What a row costs in a table of so many groups."""
        c = self.constants
        share = min(1.0, _SMALL_TABLE + (1.0 - _SMALL_TABLE) * math.sqrt(groups / _LARGE_TABLE))
        return share * c.hashed_row + (c.sorted_row if sorts else 0.0)


def groups_of_tasks(rows: Rows, groups: float, run: float) -> float:
    """The groups of all tasks together, each of which groups its own rows."""
    tasks = _tasks(rows)
    in_each = groups * -math.expm1(-rows.number / run / tasks / max(1.0, groups))
    return min(rows.number, max(groups, tasks * in_each))


def _tasks(rows: Rows) -> float:
    return max(_LEAST_TASKS, rows.number * rows.width / _BYTES_OF_TASK)
