"""What the tasks of a stage did: totals, and how unevenly the work was spread."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

#: A task's value falls into a bucket whose limits differ by this factor, so a median is off by 5 % at most.
_STEP = math.log(1.1)


@dataclass(frozen=True)
class Stage:
    """One stage, all its attempts together.

    Attributes:
        id: of the stage.
        tasks: that ended.
        run_ms: milliseconds of all tasks on executors.
        spilled: bytes that were written to disk because memory was short.
        shuffle_read, shuffle_written: bytes.
        median_ms, longest_ms: of the tasks' run times.
        median_read, largest_read: of the bytes that a task read from shuffles.
    """

    id: int
    tasks: int = 0
    run_ms: float = 0.0
    spilled: float = 0.0
    shuffle_read: float = 0.0
    shuffle_written: float = 0.0
    median_ms: float = 0.0
    longest_ms: float = 0.0
    median_read: float = 0.0
    largest_read: float = 0.0


class Spread:
    """Median and largest of many values, in memory that does not grow with their number.

    >>> spread = Spread()
    >>> for value in (10, 10, 10, 1000):
    ...     spread.add(value)
    >>> round(spread.median), spread.largest
    (10, 1000)
    """

    __slots__ = ("_buckets", "count", "largest")

    def __init__(self) -> None:
        self._buckets: dict[int, int] = {}
        self.count = 0
        self.largest = 0.0

    def add(self, value: float) -> None:
        """Count one value, which is not negative."""
        bucket = round(math.log(value) / _STEP) if value >= 1 else -1
        self._buckets[bucket] = self._buckets.get(bucket, 0) + 1
        self.count += 1
        self.largest = max(self.largest, value)

    @property
    def median(self) -> float:
        """The median, within 5 %; 0 if there are no values."""
        left = self.count // 2
        for bucket in sorted(self._buckets):
            left -= self._buckets[bucket]
            if left < 0:
                return math.exp(bucket * _STEP) if bucket >= 0 else 0.0
        return 0.0


@dataclass
class StageTotals:
    """The totals of a stage while its events are read; `done` makes the record."""

    id: int
    run_ms: float = 0.0
    spilled: float = 0.0
    read: float = 0.0
    written: float = 0.0
    durations: Spread = field(default_factory=Spread)
    reads: Spread = field(default_factory=Spread)

    def add_task(self, run_ms: float, spilled: float, read: float, written: float) -> None:
        """Count a task: milliseconds, and bytes spilled, read and written."""
        self.run_ms += run_ms
        self.spilled += spilled
        self.read += read
        self.written += written
        self.durations.add(run_ms)
        self.reads.add(read)

    def done(self) -> Stage:
        """The record of what was counted."""
        return Stage(
            self.id, self.durations.count, self.run_ms, self.spilled, self.read, self.written,
            self.durations.median, self.durations.largest, self.reads.median, self.reads.largest,
        )  # fmt: skip
