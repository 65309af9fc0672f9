"""Row estimates of pyjoinopt for the relations of a query, from the reports that its sessions write to the log."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

EVENT = b"org.apache.spark.sql.pyjoinopt.JoinOrdersPlanned"


@dataclass(frozen=True)
class ReportedRelation:
    """One relation of a join group, after its own filters.

    Attributes:
        name: in the report.
        rows: estimated.
        source: of the estimate, such as `footers` or `size`.
    """

    name: str
    rows: float
    source: str


def reported_relations(event: Any) -> tuple[ReportedRelation, ...]:
    """The relations of all join groups of an event's report."""
    report = json.loads(event["report"])
    return tuple(
        ReportedRelation(str(each["name"]), float(each["rows"]), str(each["source"]))
        for group in report.get("groups") or ()
        for each in group["relations"]
    )
