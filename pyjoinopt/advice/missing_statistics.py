"""Scans below joins that were planned without a row count, or with an estimate that was far off.

A log shows that in four ways. Each finding names those that it rests on:

* costs: the application set `spark.sql.ui.explainMode=cost`, so the plan's text has what Spark's optimizer knew of each
  relation. A relation with a size and without a row count has no statistics, or none that Spark uses.
* report: a report of pyjoinopt has an estimate that was made without a row count, and that is wrong by a large factor.
* late broadcast: Spark planned to shuffle a side of a join, whose estimate was therefore above the threshold. When it
  was shuffled, it was below, and adaptive execution broadcast it.
* format: nothing that Spark reads before it runs a query has the rows of files of text, or of a JDBC source.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from pyjoinopt.advice.finding import Finding
from pyjoinopt.advice.operators import (
    JOINS,
    KEEPS_ROWS,
    REUSED,
    SCANS,
    above,
    as_run,
    column_ids,
    data_size,
    is_thinned,
    kind,
    may_stop_early,
    parents_of,
    result_rows,
)  # fmt: skip
from pyjoinopt.advice.physical_joins import PhysicalJoin, joins_of
from pyjoinopt.advice.relation_names import scan_name, table_name
from pyjoinopt.eventlog.execution import Execution
from pyjoinopt.eventlog.physical_plan import PlanNode
from pyjoinopt.eventlog.planned_scans import PlannedScan
from pyjoinopt.eventlog.settings import broadcast_threshold, uses_row_counts
from pyjoinopt.report.render.number_format import memory, quantity

#: [rows] Scans of fewer are not worth a remark, unless an estimate was far off.
_ROWS = 100_000
#: An estimate is far off from this factor on.
_FACTOR = 10.0
#: Sources of estimates in reports that count no rows.
_UNCOUNTED = frozenset({"size", "size / row width", "default"})
#: Findings of one run: those of the largest scans.
_MOST = 10
_TEXT = frozenset({"csv", "json", "text"})
_FORMAT = re.compile(r"(?:Scan|BatchScan|FileScan) (\w+)")
_JDBC = "Scan JDBCRelation("
_SHUFFLED = frozenset({"SortMergeJoin", "ShuffledHashJoin"})
_COSTS = "spark.sql.ui.explainMode=cost, which logs the row counts that Spark plans with"


@dataclass(frozen=True)
class MissingStatistics(Finding):
    """A scan below a join was planned without statistics.

    Attributes:
        rows: that the scan returned; 0 if it does not count them.
        estimated_rows: by pyjoinopt's report, after filters; None if no report shows them.
        estimated_bytes: by Spark, before filters; None if the log does not show them.
        rests_on: "costs", "report", "late broadcast" or "format", several joined by ", ".
    """

    kind: ClassVar[str] = "missing statistics"
    comes_last: ClassVar[bool] = True
    rows: float = 0.0
    estimated_rows: float | None = None
    estimated_bytes: float | None = None
    rests_on: str = ""


@dataclass(frozen=True)
class _Evidence:
    """One way in which a log shows that statistics are missing."""

    rests_on: str
    text: str
    certainty: float
    surer: str = ""
    rows: float | None = None
    bytes: float | None = None


def missing_statistics(execution: Execution) -> Iterator[MissingStatistics]:
    """The tables that an execution joined without statistics, the largest first."""
    parents = parents_of(execution.plan)
    late = _late_broadcasts(execution)
    scans = [node for node in as_run(execution.plan) if kind(node) in SCANS and kind(node) != "InMemoryTableScan"]
    names = [scan_name(node) for node in scans]
    partial = may_stop_early(execution.plan)
    found: dict[str, MissingStatistics] = {}
    for node, name in zip(scans, names):
        if not any(kind(each) in JOINS for each in above(node, parents)):
            continue
        planned = _planned(execution, node)
        if planned is not None and planned.rows is not None:
            continue
        evidence = [
            _by_costs(execution, node, planned),
            _by_report(execution, name, node, parents) if names.count(name) == 1 and id(node) not in partial else None,
            late.get(id(node)),
            _by_format(node) if planned is None else None,
        ]
        finding = _finding(execution, node, name, [each for each in evidence if each is not None])
        if finding is not None and (name not in found or finding.rows > found[name].rows):
            found[name] = finding
    yield from sorted(found.values(), key=lambda finding: -finding.rows)[:_MOST]


def _finding(execution: Execution, node: PlanNode, name: str, evidence: list[_Evidence]) -> MissingStatistics | None:
    rows = node.rows
    if not evidence or ((rows or 0.0) < _ROWS and all(each.rests_on in ("costs", "format") for each in evidence)):
        return None
    best = max(evidence, key=lambda each: each.certainty)
    read = "" if rows is None else f"the scan returned {quantity(rows)} rows; "
    return MissingStatistics(
        name,
        f"{read}{'; '.join(each.text for each in evidence)}: {_remedy(execution, node)}",
        certainty=best.certainty, surer=best.surer, rows=rows or 0.0,
        estimated_rows=next((each.rows for each in evidence if each.rows is not None), None),
        estimated_bytes=next((each.bytes for each in evidence if each.bytes is not None), None),
        rests_on=", ".join(each.rests_on for each in evidence),
    )  # fmt: skip


def _planned(execution: Execution, scan: PlanNode) -> PlannedScan | None:
    """What the optimizer knew of a scan; the scan reads some of the relation's columns."""
    columns = column_ids(scan.text)
    return next((each for each in execution.planned if each.columns & columns), None)


def _by_costs(execution: Execution, scan: PlanNode, planned: PlannedScan | None) -> _Evidence | None:
    if planned is None:
        return None
    text = f"Spark planned without a row count, with a size of {memory(planned.bytes)}"
    if table_name(scan) and kind(scan) != "BatchScan" and not uses_row_counts(execution.settings):
        text += "; it ignores a row count in the catalog unless spark.sql.cbo.enabled is set"
        return _Evidence("costs", text, 0.5, "DESCRIBE EXTENDED, which shows a table's statistics", None, planned.bytes)
    return _Evidence("costs", text, 1.0, "", None, planned.bytes)


def _by_report(execution: Execution, name: str, scan: PlanNode, parents: dict[int, PlanNode]) -> _Evidence | None:
    """A report's estimate of a table that it names once, beside the rows that came from the scan to a join."""
    reported = {each for each in execution.reported if each.name.split(".")[-1].strip("`") == name}
    rows = _joined_rows(scan, parents)
    if len(reported) != 1 or rows is None:
        return None
    (each,) = reported
    larger, smaller = max(each.rows, rows), min(each.rows, rows)
    if each.source.split(",")[0] not in _UNCOUNTED or larger < max(_ROWS, _FACTOR * max(smaller, 1.0)):
        return None
    text = f'pyjoinopt estimated {quantity(each.rows)} rows after filters (source "{each.source}"), and there were '
    return _Evidence("report", text + quantity(rows), 1.0, "", each.rows)


def _by_format(scan: PlanNode) -> _Evidence | None:
    """Tables of a catalogue may have statistics whatever their format is."""
    match = _FORMAT.match(scan.name)
    if table_name(scan) or not (scan.name.startswith(_JDBC) or (match and match[1].lower() in _TEXT)):
        return None
    what = f"{match[1].upper()} files have" if match and match[1].lower() in _TEXT else "a JDBC source has"
    return _Evidence("format", f"{what} no row count that Spark could plan with", 0.9, _COSTS)


def _late_broadcasts(execution: Execution) -> dict[int, _Evidence]:
    """Object id of a scan -> what shows that its size was overestimated."""
    threshold = broadcast_threshold(execution.settings)
    first = [join for join in joins_of(execution.first_plan) if join.left_keys]
    shuffled = {_key(join) for join in first if join.operator in _SHUFFLED}
    shuffled -= {_key(join) for join in first if join.operator not in _SHUFFLED}
    found = {}
    for join in joins_of(execution.plan):
        if join.operator != "BroadcastHashJoin" or join.build == "" or _key(join) not in shuffled:
            continue
        side = join.left if join.build == "left" else join.right
        scan, size = _only_scan(side), _shuffled_size(side)
        largest = max(rows or 0.0 for rows in join.input_rows)
        if scan is not None and size is not None and size <= threshold and largest >= _ROWS and not is_thinned(side):
            text = (
                f"Spark estimated more than {memory(threshold)} after filters and planned a shuffle; {memory(size)} "
                "were shuffled, and adaptive execution broadcast them"
            )
            found[id(scan)] = _Evidence("late broadcast", text, 0.5, _COSTS)
    return found


def _key(join: PhysicalJoin) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """What a join keeps when adaptive execution changes its operator."""
    return join.join_type, join.left_keys, join.right_keys


def _only_scan(side: PlanNode) -> PlanNode | None:
    """The scan of a side that has one, and nothing but filters and projections above it."""
    at = side
    while kind(at) not in SCANS:
        if len(at.children) != 1 or kind(at) in REUSED or not (kind(at) in KEEPS_ROWS or kind(at) == "Filter"):
            return None
        at = at.children[0]
    return at


def _shuffled_size(side: PlanNode) -> float | None:
    """Bytes of a broadcast side in the shuffle below the broadcast; None if there is none."""
    at = side
    while kind(at) != "BroadcastExchange":
        if len(at.children) != 1:
            return None
        at = at.children[0]
    return data_size(at.children[0]) if at.children else None


def _joined_rows(scan: PlanNode, parents: dict[int, PlanNode]) -> float | None:
    """Rows of a scan that reach a join; None if something else than its own filters may have dropped some.

    A join of bucketed tables reads them only as far as it needs them.
    """
    at = scan
    for each in above(scan, parents):
        if kind(each) in JOINS:
            return None if is_thinned(at) or "Bucketed: true" in scan.text else result_rows(at)
        if kind(each) not in KEEPS_ROWS and kind(each) != "Filter":
            return None
        at = each
    return None


def _remedy(execution: Execution, scan: PlanNode) -> str:
    """What to do; of a table, of files, and of other sources."""
    table, match = table_name(scan), _FORMAT.match(scan.name)
    if table and kind(scan) != "BatchScan":
        ignored = "" if uses_row_counts(execution.settings) else " (Spark itself with spark.sql.cbo.enabled=true only)"
        return f"run ANALYZE TABLE {table} COMPUTE STATISTICS FOR ALL COLUMNS, which pyjoinopt reads, too{ignored}"
    if match and match[1].lower() in _TEXT | {"avro"}:
        return "store it as Parquet, whose row counts pyjoinopt reads, or run pyjoinopt.analyze"
    if scan.location or (match and match[1].lower() in ("parquet", "orc")):
        return "optimize_joins() and the session extension read the row counts of its files, and pyjoinopt.analyze more"
    return "store it as a table of Parquet files, or register its row count with pyjoinopt.statistics.register"
