"""Stages of joins in which one task worked much longer than the others (skew), or memory was short (spill)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from pyjoinopt.advice.finding import Finding
from pyjoinopt.advice.operators import pipeline_stages
from pyjoinopt.advice.physical_joins import joins_of
from pyjoinopt.advice.relation_names import name_of
from pyjoinopt.eventlog.execution import Execution
from pyjoinopt.eventlog.stages import Stage
from pyjoinopt.report.render.number_format import memory, times

#: The longest task of a skewed stage takes so many times as long as the median one, and so many milliseconds more.
_TIMES, _LONGER = 5.0, 30_000
_TASKS = 4
#: [bytes] Less on disk is not worth a remark.
_SPILLED = 1 << 28


@dataclass(frozen=True)
class Skew(Finding):
    """One task of a stage with a join takes much longer than the others.

    Attributes:
        stage: its id.
        median_ms, longest_ms: run times of its tasks.
        median_read, largest_read: bytes that its tasks read from shuffles.
    """

    kind: ClassVar[str] = "skew"
    stage: int = 0
    median_ms: float = 0.0
    longest_ms: float = 0.0
    median_read: float = 0.0
    largest_read: float = 0.0


@dataclass(frozen=True)
class Spill(Finding):
    """Tasks of a stage with a join wrote to disk, because memory was short.

    Attributes:
        stage: its id.
        bytes: on disk.
    """

    kind: ClassVar[str] = "spill"
    stage: int = 0
    bytes: float = 0.0


def uneven_work(execution: Execution) -> Iterator[Skew | Spill]:
    """Skew and spill in the stages of an execution's joins, each stage once."""
    seen: set[int] = set()
    for join in joins_of(execution.plan):
        where = f"{name_of(join.left)} {join.sign} {name_of(join.right)}"
        for number in sorted(pipeline_stages(join.node) - seen):
            seen.add(number)
            stage = execution.stages.get(number)
            if stage is not None:
                yield from _of_stage(stage, where)


def _of_stage(stage: Stage, where: str) -> Iterator[Skew | Spill]:
    longer = stage.longest_ms - stage.median_ms
    if stage.tasks >= _TASKS and longer >= _LONGER and stage.longest_ms >= _TIMES * stage.median_ms:
        by_rows = stage.largest_read >= _TIMES * max(stage.median_read, 1.0)
        cause = (
            f"it read {memory(stage.largest_read)} instead of {memory(stage.median_read)}: look for a frequent key"
            if by_rows
            else "although it read about as much as the others: look at the rows of its key, or at its machine"
        )
        factor = times(stage.longest_ms / max(stage.median_ms, 1.0))
        yield Skew(
            where, f"the longest task took {stage.longest_ms / 1000:.0f} s, {factor} the median; {cause}",
            seconds=longer / 1000, certainty=0.5, surer="the counts of the most frequent keys", stage=stage.id,
            median_ms=stage.median_ms, longest_ms=stage.longest_ms, median_read=stage.median_read,
            largest_read=stage.largest_read,
        )  # fmt: skip
    if stage.spilled >= _SPILLED:
        yield Spill(
            where, f"{memory(stage.spilled)} were written to disk because memory was short: fewer rows before this "
            "join, more partitions or more memory avoid that", certainty=0.5, stage=stage.id, bytes=stage.spilled,
            surer="a run with more memory",
        )  # fmt: skip
