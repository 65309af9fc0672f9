"""What Spark's optimizer knew of each relation that a plan scans, from the plan's text.

Only the text of an application that sets `spark.sql.ui.explainMode=cost` has statistics: each line of its optimised
plan ends with the size, and with the row count if there is one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_HEADING = "== Optimized Logical Plan =="
_RELATION = re.compile(
    r"[\s:|+-]*(?:Relation|RelationV2|LogicalRDD|HiveTableRelation)\b(.*), "
    r"Statistics\(sizeInBytes=([\d.E+]+) ([KMGTPE]i)?B(?:, rowCount=([\d.E+]+))?[,)].*"
)
_ID = re.compile(r"#(\d+)")
_UNITS = {unit: 1 << 10 * power for power, unit in enumerate(("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"))}


@dataclass(frozen=True)
class PlannedScan:
    """One relation as the optimizer saw it, before any filter.

    Attributes:
        columns: ids of its columns, as far as the text names them.
        bytes: its estimated size.
        rows: its row count; None if the optimizer had none.
    """

    columns: frozenset[int]
    bytes: float
    rows: float | None


def planned_scans(text: str) -> tuple[PlannedScan, ...]:
    """The relations of a plan's text; none if the text has no statistics.

    >>> plan = "== Optimized Logical Plan ==\\n+- Relation [a#1L] csv, Statistics(sizeInBytes=3.0 KiB)"
    >>> planned_scans(plan)
    (PlannedScan(columns=frozenset({1}), bytes=3072.0, rows=None),)
    """
    found = []
    for line in text.partition(_HEADING)[2].partition("\n== ")[0].splitlines():
        match = _RELATION.fullmatch(line)
        if match:
            rows = float(match[4]) if match[4] else None
            size = float(match[2]) * _UNITS[match[3] or ""]
            found.append(PlannedScan(frozenset(map(int, _ID.findall(match[1]))), size, rows))
    return tuple(found)
