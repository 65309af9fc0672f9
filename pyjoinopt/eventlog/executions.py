"""SQL executions, gathered from the events of one log.

An execution has ended, as in Spark's own listener, when its end event and those of all its jobs were read. Then it
becomes a record, and all that was kept of it is dropped, so memory does not grow with the length of a log. Three things
keep the work small:

* events of other kinds are passed over by their name, and events of tasks by the id of their stage, before anything is
  parsed. Of a task's event a regular expression reads six numbers;
* of an execution's plans only the first and the last are parsed, when it ends;
* the rows of operators come from the totals of completed stages. Spark writes there the value of the accumulator so
  far. Where a second stage ran the same operators, such as the sampling job of a range partitioning, each stage's
  share is the increase, and the largest share counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pyjoinopt.eventlog.deep_json import loads
from pyjoinopt.eventlog.execution import Application, Execution
from pyjoinopt.eventlog.files import LogFiles
from pyjoinopt.eventlog.lines import ReadingNotes, events
from pyjoinopt.eventlog.physical_plan import MetricValue, PlanNode, build_plan
from pyjoinopt.eventlog.planned_scans import PlannedScan, planned_scans
from pyjoinopt.eventlog.reported_relations import EVENT, ReportedRelation, reported_relations
from pyjoinopt.eventlog.settings import kept
from pyjoinopt.eventlog.stages import StageTotals

_SQL = b"org.apache.spark.sql.execution.ui.SparkListener"
_PROPERTY = "spark.sql.execution.id"
_STAGE = re.compile(rb'"Stage ID"\s*:\s*(\d+)')
_TASK = {
    name: re.compile(rb'"' + name.encode() + rb'"\s*:\s*(\d+)')
    for name in (
        "Executor Run Time", "Disk Bytes Spilled", "Remote Bytes Read", "Local Bytes Read", "Shuffle Bytes Written",
    )
}  # fmt: skip
#: Characters of a description that are kept.
_DESCRIPTION = 300
#: Reports that are kept until their execution starts; those of executions that have ended are among them.
_EARLY = 100


@dataclass
class _Metric:
    """An accumulator: its value so far, and what each stage added."""

    total: float = 0.0
    by_stage: dict[int, float] = field(default_factory=dict)


@dataclass
class _Running:
    """An execution of which events are still read."""

    id: int
    description: str
    started: float
    first: Any
    settings: dict[str, str]
    planned: tuple[PlannedScan, ...] = ()
    reported: tuple[ReportedRelation, ...] = ()
    last: bytes = b""
    ended: float | None = None
    error: str = ""
    jobs: set[int] = field(default_factory=set)
    stage_ids: set[int] = field(default_factory=set)
    stages: dict[int, StageTotals] = field(default_factory=dict)
    metrics: dict[int, _Metric] = field(default_factory=dict)
    driver: dict[int, float] = field(default_factory=dict)


def read_executions(log: LogFiles, notes: ReadingNotes, application: str = "") -> Iterator[Execution]:
    """The SQL executions of a log, each as soon as it has ended; unfinished ones last.

    Args:
        log: the files.
        notes: where damaged parts are noted, and the application's id.
        application: id of the only application whose executions are wanted; the logs of others are left at once.
    """
    reader = ExecutionReader(log.name, notes)
    for name, line in events(log, notes):
        yield from reader.read(name, line)
        notes.application = reader.application.id
        if application and reader.is_named and reader.application.id != application:
            return
    if reader.is_named and not reader.has_ended and not log.in_progress:
        notes.add(f"{log.name} ends before its application did")
    if not application or reader.application.id == application:
        yield from reader.rest()


class ExecutionReader:
    """Gathers executions from events.

    Args:
        log: name of the log.
        notes: where damaged events are noted.

    Attributes:
        application: of the log.
        is_named: whether the log has shown which application it is of.
        has_ended: whether the application has ended.
    """

    def __init__(self, log: str, notes: ReadingNotes) -> None:
        self.application = Application(id=log, log=log)
        self.is_named = False
        self.has_ended = False
        self._notes = notes
        self._settings: dict[str, str] = {}
        self._running: dict[int, _Running] = {}
        self._of_stage: dict[int, _Running] = {}
        self._of_job: dict[int, _Running] = {}
        self._reported: dict[int, tuple[ReportedRelation, ...]] = {}
        self._handlers = {
            b"SparkListenerLogStart": self._log_start,
            b"SparkListenerApplicationStart": self._application_start,
            b"SparkListenerApplicationEnd": self._application_end,
            b"SparkListenerEnvironmentUpdate": self._environment,
            b"SparkListenerJobStart": self._job_start,
            b"SparkListenerJobEnd": self._job_end,
            b"SparkListenerStageCompleted": self._stage_completed,
            _SQL + b"SQLExecutionStart": self._execution_start,
            _SQL + b"DriverAccumUpdates": self._driver_updates,
            _SQL + b"SQLExecutionEnd": self._execution_end,
            EVENT: self._report,
        }

    def read(self, name: bytes, line: bytes) -> Iterator[Execution]:
        """Take one event; the execution that has ended with it, if one has.

        Args:
            name: of the event.
            line: all of it.
        """
        if name == b"SparkListenerTaskEnd":
            self._task_end(line)
            return
        if name == _SQL + b"SQLAdaptiveExecutionUpdate":
            self._plan_update(line)
            return
        handler = self._handlers.get(name)
        if handler is None:
            return
        try:
            ended = handler(loads(line))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            self._notes.add(f"{self.application.log} has damaged or cut off events")
            return
        if ended is not None:
            yield from self._finish(ended)

    def rest(self) -> Iterator[Execution]:
        """The executions that had not ended when the log did."""
        for running in list(self._running.values()):
            yield from self._finish(running)

    # -- the application -------------------------------------------------------------------------------------------

    def _log_start(self, event: Any) -> None:
        self._application(spark=str(event.get("Spark Version", "")))

    def _application_start(self, event: Any) -> None:
        self.is_named = True
        self._application(id=str(event.get("App ID") or self.application.log), name=str(event.get("App Name", "")))

    def _application_end(self, event: Any) -> None:
        self.has_ended = True

    def _application(self, **known: str) -> None:
        self.application = Application(**{
            "id": self.application.id, "name": self.application.name, "spark": self.application.spark,
            "log": self.application.log, **known,
        })  # fmt: skip

    def _environment(self, event: Any) -> None:
        properties = event.get("Spark Properties") or {}
        self._settings = kept(properties if isinstance(properties, dict) else dict(properties))

    # -- jobs, stages and tasks ------------------------------------------------------------------------------------

    def _job_start(self, event: Any) -> None:
        properties = event.get("Properties") or {}
        running = self._running.get(int(properties.get(_PROPERTY) or -1))
        if running is None:
            return
        running.settings.update(kept(properties))
        running.jobs.add(event["Job ID"])
        self._of_job[event["Job ID"]] = running
        for stage in event["Stage IDs"]:
            if self._of_stage.setdefault(stage, running) is running:
                running.stage_ids.add(stage)

    def _job_end(self, event: Any) -> _Running | None:
        running = self._of_job.pop(event["Job ID"], None)
        if running is None:
            return None
        running.jobs.discard(event["Job ID"])
        return running if running.ended is not None and not running.jobs else None

    def _task_end(self, line: bytes) -> None:
        """Read the figures of a task, if its stage belongs to an execution."""
        stage = _STAGE.search(line)
        running = self._of_stage.get(int(stage[1])) if stage else None
        if running is None or stage is None:
            return
        at = line.rfind(b'"Task Metrics"')
        if at < 0:
            return
        found = {name: pattern.search(line, at) for name, pattern in _TASK.items()}
        if found["Executor Run Time"] is None:  # of a task that was lost
            return
        run, spilled, remote, local, written = (float(match[1]) if match else 0.0 for match in found.values())
        self._stage(running, int(stage[1])).add_task(run, spilled, remote + local, written)

    @staticmethod
    def _stage(running: _Running, stage: int) -> StageTotals:
        return running.stages.setdefault(stage, StageTotals(stage))

    def _stage_completed(self, event: Any) -> None:
        info = event["Stage Info"]
        running = self._of_stage.get(info["Stage ID"])
        if running is None:
            return
        for update in info.get("Accumulables") or ():
            if update.get("Metadata") != "sql" or update.get("Value") is None:
                continue
            metric = running.metrics.setdefault(update["ID"], _Metric())
            value = float(update["Value"])
            stage = info["Stage ID"]
            metric.by_stage[stage] = metric.by_stage.get(stage, 0.0) + value - metric.total
            metric.total = value

    # -- executions ------------------------------------------------------------------------------------------------

    def _execution_start(self, event: Any) -> None:
        settings = {**self._settings, **kept(event.get("modifiedConfigs") or {})}
        text = str(event.get("description") or "")[:_DESCRIPTION]
        number = int(event["executionId"])
        planned = planned_scans(str(event.get("physicalPlanDescription") or ""))
        reported = self._reported.pop(number, ())
        self._running[number] = _Running(
            number, text, float(event.get("time") or 0), event["sparkPlanInfo"], settings, planned, reported
        )

    def _report(self, event: Any) -> None:
        """Keep the row estimates of a report; its event may be before the one that starts the execution."""
        number, found = int(event["executionId"]), reported_relations(event)
        running = self._running.get(number)
        if running is not None:
            running.reported += found
        elif number >= 0:
            self._reported[number] = (*self._reported.get(number, ()), *found)
            if len(self._reported) > _EARLY:
                del self._reported[next(iter(self._reported))]

    def _plan_update(self, line: bytes) -> None:
        """Keep the newest plan of an execution as text; only the last one will be parsed."""
        match = re.match(rb'.{0,200}?"executionId"\s*:\s*(\d+)', line, re.DOTALL)
        running = self._running.get(int(match[1])) if match else None
        if running is not None and line.rstrip().endswith(b"}"):
            running.last = line

    def _driver_updates(self, event: Any) -> None:
        running = self._running.get(event["executionId"])
        if running is not None:
            running.driver.update({int(number): float(value) for number, value in event["accumUpdates"]})

    def _execution_end(self, event: Any) -> _Running | None:
        running = self._running.get(event["executionId"])
        if running is None:
            return None
        running.ended = float(event.get("time") or 0)
        running.error = str(event.get("errorMessage") or "")[:_DESCRIPTION]
        return None if running.jobs else running

    def _finish(self, running: _Running) -> Iterator[Execution]:
        self._running.pop(running.id, None)
        for stage in running.stage_ids:
            self._of_stage.pop(stage, None)
        for job in running.jobs:
            self._of_job.pop(job, None)
        values = {number: _value(metric) for number, metric in running.metrics.items()}
        for number, value in running.driver.items():
            values.setdefault(number, MetricValue(value))
        first, last = build_plan(running.first, {}), self._last_plan(running, values)
        if first is None or last is None:
            self._notes.add(f"{self.application.log} has plans that cannot be read")
            return
        seconds = None if running.ended is None else max(0.0, running.ended - running.started) / 1000
        stages = {number: totals.done() for number, totals in running.stages.items()}
        yield Execution(
            self.application, running.id, running.description, running.started, seconds, running.error, last, first,
            stages, running.settings, running.planned, running.reported,
        )  # fmt: skip

    def _last_plan(self, running: _Running, values: dict[int, MetricValue]) -> PlanNode | None:
        info = running.first
        if running.last:
            try:
                info = loads(running.last)["sparkPlanInfo"]
            except (ValueError, KeyError, TypeError, RecursionError):
                self._notes.add(f"{self.application.log} has damaged or cut off events")
        return build_plan(info, values)


def _value(metric: _Metric) -> MetricValue:
    """What one run of an operator counted, of the stages that updated its accumulator."""
    added = {stage: value for stage, value in metric.by_stage.items() if value or len(metric.by_stage) == 1}
    if len(added) <= 1:
        return MetricValue(metric.total, frozenset(metric.by_stage))
    return MetricValue(max(added.values()), frozenset(added), True)
