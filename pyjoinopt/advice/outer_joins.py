"""Outer joins whose padded rows a filter directly above drops.

Only one proof counts: the filter is a conjunction with `isnotnull(c)`, and `c` is a column that a scan of the
null-supplying side returns. Other predicates reject NULLs, too, but their text is no proof.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from pyjoinopt.advice.finding import Finding
from pyjoinopt.advice.operators import REUSED, SCANS, WRAPPERS, as_run, column_ids, kind
from pyjoinopt.advice.physical_joins import read_join
from pyjoinopt.advice.relation_names import name_of
from pyjoinopt.eventlog.execution import Execution
from pyjoinopt.eventlog.physical_plan import PlanNode
from pyjoinopt.report.render.number_format import quantity

_NOT_NULL = re.compile(r"isnotnull\(\w+#(\d+)L?\)")


@dataclass(frozen=True)
class NeedlessOuterJoin(Finding):
    """An outer join that gives the rows of an inner join.

    Attributes:
        join_type: as it ran.
        column: that the filter above requires.
        rows: that the join returned.
    """

    kind: ClassVar[str] = "needless outer join"
    join_type: str = ""
    column: str = ""
    rows: float = 0.0


def needless_outer_joins(execution: Execution) -> Iterator[NeedlessOuterJoin]:
    """The outer joins of an execution that need not be outer joins."""
    for node in as_run(execution.plan):
        below = _directly_below(node) if kind(node) == "Filter" else None
        join = read_join(below) if below is not None else None
        if join is None or join.join_type not in ("LeftOuter", "RightOuter"):
            continue
        padded = join.right if join.join_type == "LeftOuter" else join.left
        columns = _scanned(padded)
        required = [number for number in required_columns(node.text) if number in columns]
        if required:
            found = re.search(rf"(\w+)#{required[0]}\b|(\w+)#{required[0]}L", node.text)
            column = (found[1] or found[2]) if found else ""
            yield NeedlessOuterJoin(
                f"{name_of(join.left)} {join.sign} {name_of(join.right)}",
                f"the filter above requires {column}, so the rows without a partner are dropped "
                f"({quantity(join.rows or 0.0)} came out of the join): write an inner join, which may be reordered",
                surer="the plan proves it", join_type=join.join_type, column=column, rows=join.rows or 0.0,
            )  # fmt: skip


def required_columns(text: str) -> list[int]:
    """Ids of the columns that a filter requires not to be NULL, if it is a conjunction without OR, NOT and CASE.

    >>> required_columns("Filter (isnotnull(a#1L) AND (b#2 > 3))"), required_columns("Filter NOT isnotnull(a#1)")
    ([1], [])
    """
    if re.search(r"\b(?:OR|NOT|CASE|if|coalesce|IN|isnull|xor)\b|<=>|=\s*(?:true|false)\b", text, re.IGNORECASE):
        return []
    found = []
    for part in text.removeprefix("Filter").replace("(isnotnull", " isnotnull").split(" AND "):
        match = _NOT_NULL.fullmatch(part.strip(" ()") + ")") if part.strip().startswith("isnotnull(") else None
        if match:
            found.append(int(match[1]))
    return found


def _directly_below(node: PlanNode) -> PlanNode | None:
    """The first operator below that is more than a wrapper or a projection."""
    at = node
    while len(at.children) == 1:
        at = at.children[0]
        if kind(at) not in WRAPPERS and kind(at) != "Project":
            return at
    return None


def _scanned(node: PlanNode) -> frozenset[int]:
    """Ids of the columns that the scans of a sub-plan return."""
    found: set[int] = set()
    stack = [node]
    while stack:
        at = stack.pop()
        if kind(at) in SCANS:
            found |= column_ids(at.text.partition("[")[2].partition("]")[0])
        elif kind(at) not in REUSED:
            stack.extend(at.children)
    return frozenset(found)
