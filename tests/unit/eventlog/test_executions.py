"""Executions out of made-up logs: plans with actual rows, task times, and what is left of damaged logs."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from pyjoinopt.advice.plan_shape import plan_shape
from pyjoinopt.eventlog.execution import Execution
from pyjoinopt.eventlog.executions import read_executions
from pyjoinopt.eventlog.files import LogFiles, find_logs
from pyjoinopt.eventlog.lines import ReadingNotes
from tests.support.made_up_logs import LogWriter, compressed, op, task_end


def read(path: Path) -> tuple[list[Execution], list[str]]:
    notes = ReadingNotes()
    found = [execution for log in find_logs([path]) for execution in read_executions(log, notes)]
    return found, notes.texts


def example() -> LogWriter:
    scan = op("Scan parquet ", "FileScan parquet [a#1]", rows=100)
    join = op(
        "BroadcastHashJoin", "BroadcastHashJoin [a#1], [b#2], Inner, BuildRight, false", scan, op("Scan x", rows=5)
    )
    log = LogWriter().start(**{"spark.sql.autoBroadcastJoinThreshold": "20m"})
    log.execution(1, op("HashAggregate", "", join, rows=3), {0: [1000, 3000]})
    return log.execution(2, op("Range", rows=7, stage=1), error="it failed")


def test_rows_times_and_settings(tmp_path: Path) -> None:
    (first, second), notes = read(example().write(tmp_path / "app-1"))
    assert not notes and first.complete and not second.complete and second.error == "it failed"
    assert (first.application.id, first.application.spark, first.seconds) == ("app-1", "4.3.0", 10.0)
    assert first.task_ms == 4000 and first.settings["spark.sql.autoBroadcastJoinThreshold"] == "20m"
    assert {node.name: node.rows for node in first.plan.post_order()} == {
        "Scan parquet": 100, "Scan x": 5, "BroadcastHashJoin": 0.0, "HashAggregate": 3
    }  # fmt: skip
    assert first.stages[100].longest_ms == 3000 and first.stages[100].tasks == 2


def test_an_operator_that_two_stages_ran_counts_once(tmp_path: Path) -> None:
    """The sampling job of a range partitioning runs all operators below it, too."""
    log = LogWriter().start().execution(1, op("Scan x", rows=50), {0: [1]})
    done = next(event for event in log.events if event["Event"] == "SparkListenerStageCompleted")
    again = {**done["Stage Info"], "Stage ID": 101}
    again["Accumulables"] = [{**update, "Value": "100"} for update in again["Accumulables"]]
    next(event for event in log.events if "Stage IDs" in event)["Stage IDs"].append(101)
    log.events.insert(log.events.index(done) + 1, {"Event": "SparkListenerStageCompleted", "Stage Info": again})
    (execution,), _ = read(log.write(tmp_path / "app-1"))
    assert execution.plan.rows == 50 and execution.plan.repeated and execution.plan.stages == {100, 101}


def test_driver_metrics_and_tasks_of_other_stages(tmp_path: Path) -> None:
    log = LogWriter().start().execution(1, op("BroadcastExchange", data_size=0, rows=1))
    number = log.events[5]["sparkPlanInfo"]["metrics"][0]["accumulatorId"]
    name = "org.apache.spark.sql.execution.ui.SparkListenerDriverAccumUpdates"
    update = {"Event": name, "executionId": 1, "accumUpdates": [[number, 4096]]}
    log.events[6:6] = [update, task_end(77, 1e6)]
    (execution,), notes = read(log.write(tmp_path / "app-1"))
    assert execution.plan.metrics["data size"] == 4096 and execution.task_ms == 1000 and not notes


@given(st.integers(0, 6000))
def test_a_log_that_is_cut_off_anywhere_is_read(tmp_path_factory: object, cut: int) -> None:
    path = Path(str(tmp_path_factory.getbasetemp())) / "cut"  # type: ignore[attr-defined]
    path.write_bytes(example().text()[:cut])
    found, _ = read(path)
    assert len(found) <= 2


def test_damaged_lines_are_noted_and_passed_over(tmp_path: Path) -> None:
    lines = example().text().splitlines(keepends=True)
    lines[4:4] = [
        b"\x00\xff\n",
        b'{"Event":"SparkListenerJobStart","Job ID":\n',
        b'{"Event":"SparkListenerJobStart"}\n',
    ]
    (tmp_path / "app-1").write_bytes(b"".join(lines))
    found, notes = read(tmp_path / "app-1")
    assert len(found) == 2
    assert notes == ["app-1 has lines that are no events", "app-1 has damaged or cut off events"]


def test_a_deep_plan_is_read(tmp_path: Path) -> None:
    text = example().text()
    range_info = text[text.rindex(b'{"nodeName":"Range"') :]
    inside = range_info[: range_info.index(b"}]}") + 3]
    start = b'{"nodeName":"Project","simpleString":"Project [a#1]","metrics":[],"children":['
    deep = start * 3000 + inside + b"]}" * 3000
    (tmp_path / "app-1").write_bytes(text.replace(inside, deep))
    found, notes = read(tmp_path / "app-1")
    assert not notes and len(list(found[1].plan.post_order())) == 3001
    assert len(plan_shape(found[1].plan)) == 12


def test_a_plan_that_is_nested_too_deeply_is_noted(tmp_path: Path) -> None:
    log = example()
    text = log.text().replace(b'{"nodeName":"Range"', b'{"children":[' * 100_000 + b'{"nodeName":"Range"')
    (tmp_path / "app-1").write_bytes(text)
    found, notes = read(tmp_path / "app-1")
    assert len(found) == 1 and notes == ["app-1 has damaged or cut off events"]


def test_a_log_without_its_end_is_noted(tmp_path: Path) -> None:
    """A file of zstd that was cut off is not noticed otherwise."""
    (tmp_path / "app-1").write_bytes(compressed("zstd", example().text(end=False)))
    found, notes = read(tmp_path / "app-1")
    assert len(found) == 2 and notes == ["app-1 ends before its application did"]


def test_a_running_application_gives_what_is_there(tmp_path: Path) -> None:
    log = example()
    log.events = [event for event in log.events if not event["Event"].endswith("SQLExecutionEnd")]
    found, _ = read(log.write(tmp_path / "app-1.inprogress"))
    assert [execution.seconds for execution in found] == [None, None]


def test_parts_of_a_rolling_log_are_read_in_order(tmp_path: Path) -> None:
    lines = example().text().splitlines(keepends=True)
    folder = tmp_path / "logs" / "eventlog_v2_app-1"
    folder.mkdir(parents=True)
    for number, part in enumerate((lines[:4], lines[4:7], lines[7:])):
        packed = compressed("zstd", b"".join(part))
        (folder / f"events_{number + 9}_app-1.zstd").write_bytes(packed)
    (folder / "appstatus_app-1.inprogress").touch()
    (folder / ".crc").touch()
    (log,) = find_logs([tmp_path])
    assert log.in_progress and [path.name[:9] for path in log.paths] == ["events_9_", "events_10", "events_11"]
    found, notes = read(tmp_path)
    assert len(found) == 2 and found[0].task_ms == 4000 and not notes


def test_a_compacted_part_takes_the_place_of_those_before(tmp_path: Path) -> None:
    folder = tmp_path / "eventlog_v2_app-1"
    folder.mkdir()
    for name in ("events_1_app-1", "events_2_app-1.compact", "events_2_app-1", "events_3_app-1"):
        (folder / name).write_bytes(b"{}\n")
    (log,) = find_logs([folder, folder])
    assert [path.name for path in log.paths] == ["events_2_app-1.compact", "events_3_app-1"]


def test_other_files_are_noted(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    (tmp_path / "empty").touch()
    found, notes = read(tmp_path)
    assert not found and notes == ["a.parquet is no event log"]
    assert LogFiles("x", (tmp_path / "gone",)).newest == 0.0
