"""Names of tables and sub-plans of a physical plan, for people."""

from __future__ import annotations

import re

from pyjoinopt.advice.operators import REUSED, SCANS, kind
from pyjoinopt.eventlog.physical_plan import PlanNode

_TABLE = re.compile(r"^(?:Scan|BatchScan|FileScan|Scan hive)\s+(?:\w+\s+)?([\w.`$-]+\.[\w`$-]+)")
_PATH = re.compile(r"[\w+-]+:/[^\s,\]]*")
_SUFFIX = re.compile(r"\.(?:parquet|orc|avro|csv|json|txt)$")
_LONGEST = 60


def scan_name(node: PlanNode) -> str:
    """The name of a scanned table: without its catalogue, or the last part of its path."""
    table = _TABLE.match(node.name)
    if table:
        return table[1].split(".")[-1].strip("`")
    for text in (node.location, node.text):
        path = _PATH.search(text)
        if path:
            return _SUFFIX.sub("", path[0].rstrip("/").rsplit("/", 1)[-1]) or path[0]
    return kind(node) if kind(node) not in SCANS else node.name.removeprefix("Scan ").strip() or "scan"


def table_name(node: PlanNode) -> str:
    """The table of a catalogue that a scan reads, as SQL names it; "" for files and other sources."""
    table = _TABLE.match(node.name)
    return table[1].removeprefix("spark_catalog.") if table else ""


def name_of(node: PlanNode) -> str:
    """The tables that a sub-plan reads, joined by `+`, at most sixty characters."""
    names: list[str] = []
    stack = [node]
    while stack:
        at = stack.pop()
        if kind(at) == "InMemoryTableScan" or (not at.children and kind(at) not in REUSED):
            name = "cached table" if kind(at) == "InMemoryTableScan" else scan_name(at)
            if name not in names:
                names.append(name)
        else:
            stack.extend(reversed(at.children))
    text = "+".join(names)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def unique_names(nodes: list[PlanNode]) -> tuple[str, ...]:
    """A name for each sub-plan; a repeated one gets a number."""
    seen: dict[str, int] = {}
    found = []
    for node in nodes:
        name = name_of(node)
        seen[name] = seen.get(name, 0) + 1
        found.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return tuple(found)
