"""The record of one SQL execution."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyjoinopt.eventlog.physical_plan import PlanNode
from pyjoinopt.eventlog.planned_scans import PlannedScan
from pyjoinopt.eventlog.reported_relations import ReportedRelation
from pyjoinopt.eventlog.stages import Stage


@dataclass(frozen=True)
class Application:
    """The application that a log is of.

    Attributes:
        id: such as `app-20260101120000-0001`; the name of the log if it has none.
        name: as `spark.app.name` has it.
        spark: version of Spark.
        log: name of the log.
    """

    id: str = ""
    name: str = ""
    spark: str = ""
    log: str = ""


@dataclass(frozen=True, eq=False)
class Execution:
    """One SQL execution as it ran.

    Attributes:
        application: that ran it.
        id: its number in the application.
        description: as the SQL page of Spark's web interface shows it.
        started: milliseconds since 1970.
        seconds: from start to end; None if its end is not in the log.
        error: why it failed; "" if it did not.
        plan: the last plan, with the values of its metrics.
        first_plan: the plan before adaptive execution changed it, without values.
        stages: id -> what its tasks did.
        settings: see `settings.KEPT`.
        planned: the relations that Spark's optimizer saw; empty if the log does not have their statistics.
        reported: the relations in reports of pyjoinopt that were in the log before the execution ended.
    """

    application: Application
    id: int
    description: str
    started: float
    seconds: float | None
    error: str
    plan: PlanNode
    first_plan: PlanNode
    stages: Mapping[int, Stage] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    planned: tuple[PlannedScan, ...] = ()
    reported: tuple[ReportedRelation, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether it came to its end without an error, so that its counts are of all rows."""
        return self.seconds is not None and not self.error

    @property
    def task_ms(self) -> float:
        """Milliseconds of all its tasks on executors."""
        return sum(stage.run_ms for stage in self.stages.values())
