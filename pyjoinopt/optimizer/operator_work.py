"""The costs of an exchange, a broadcast and a hash aggregate, in the units of the cost model.

**An aggregate** groups the rows of each task first, then what all tasks have. So the rows that it shuffles are fewer
only if rows of one task share a group. Rows are taken to be spread over the tasks at random, but for those that are
stored together: the lines of an order are read by one task, so it has one row for them (`estimation.plans.runs`). Rows
that are partitioned by some of its keys are not shuffled at all.

The cost of a row grows with the number of groups in its task: a small hash map fits the processor's caches.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from pyjoinopt.cost.constants import Constants
from pyjoinopt.optimizer.partitioning import Partitioning, satisfies

#: [exchanges] What another aggregate costs whatever it reads: generated code of two more operators is compiled, some
#: tenths of a second. Ours, from TPC-DS 38, 74 and 87 at scale 1, where it took 0.1 to 0.5 s more than it saved.
_COMPILED = 4.0
#: [bytes] What a task reads at least and at most (spark.sql.files.openCostInBytes, spark.sql.files.maxPartitionBytes).
_LEAST_OF_TASK, _MOST_OF_TASK = float(4 << 20), float(128 << 20)
#: The export's key for the tasks into which Spark divides what is small; and how many, where that is not known.
PARALLELISM, _PARALLELISM = "pyjoinopt.parallelism", 16.0
#: The share of `hashed_row` that it costs to update a group of a small hash map; and the groups of a hash map at which
#: the whole of it is reached. Measured by `benchmarks/aggregates.py`.
_SMALL_MAP_SHARE, _LARGE_MAP = 0.1, 1.2e6


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
        parallelism: into how many tasks Spark divides what is small.
    """

    constants: Constants
    parallelism: float = _PARALLELISM

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
        tasks = self._tasks(rows)
        if satisfies(rows.partitioning, by):
            return rows.number * self._grouped_row(groups / tasks, sorts, run) + groups
        shuffled = self.groups_of_tasks(rows, groups, run)
        first = rows.number * self._grouped_row(shuffled / tasks, sorts, run)
        return first + self.shuffle(shuffled, width) + shuffled * self._grouped_row(groups / self.parallelism, sorts)

    def _grouped_row(self, groups: float, sorts: bool, run: float = 1.0) -> float:
        """The cost of a row in a hash map of so many groups; only the first row of a run has to find its group."""
        c = self.constants
        share = min(1.0, _SMALL_MAP_SHARE + (1.0 - _SMALL_MAP_SHARE) * math.sqrt(groups / _LARGE_MAP) / run)
        return share * c.hashed_row + (c.sorted_row if sorts else 0.0)

    def groups_of_tasks(self, rows: Rows, groups: float, run: float) -> float:
        """The groups of all tasks together, each of which groups its own rows."""
        tasks = self._tasks(rows)
        in_each = groups * -math.expm1(-rows.number / run / tasks / max(1.0, groups))
        return min(rows.number, max(groups, tasks * in_each))

    def _tasks(self, rows: Rows) -> float:
        """As many as Spark makes for files of so many bytes (FilePartition.maxSplitBytes)."""
        size = rows.number * rows.width
        return max(1.0, size / min(_MOST_OF_TASK, max(_LEAST_OF_TASK, size / self.parallelism)))


def parallelism_of(conf: Mapping[str, str]) -> float:
    """Into how many tasks Spark divides what is small.

    Args:
        conf: Spark's configuration, and what the export knows of the cluster.

    >>> parallelism_of({"pyjoinopt.parallelism": "48"}), parallelism_of({})
    (48.0, 16.0)
    """
    return float(conf.get(PARALLELISM, _PARALLELISM))
