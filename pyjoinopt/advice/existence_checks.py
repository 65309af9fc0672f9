"""Inner joins that multiply rows, where only the existence of a partner matters: a semi join would do.

A log proves that if the nearest aggregate above the join ignores duplicates (no functions, or minima and maxima only),
and no operator up to it reads a column of one side. That side must be a scan with filters and projections, whose text
names all its columns. A text that is cut off proves nothing, nor does one that calls another function than those that
are known to return the same value for the same row.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from pyjoinopt.advice.finding import Finding, hours
from pyjoinopt.advice.operators import (
    JOINS,
    KEEPS_ROWS,
    REUSED,
    SCANS,
    above,
    as_run,
    column_ids,
    kind,
    milliseconds,
    parents_of,
    pipeline_stages,
)  # fmt: skip
from pyjoinopt.advice.physical_joins import CUT_OFF, PhysicalJoin, read_join, split
from pyjoinopt.advice.relation_names import name_of
from pyjoinopt.eventlog.execution import Execution
from pyjoinopt.eventlog.physical_plan import PlanNode
from pyjoinopt.report.render.number_format import quantity

#: A join multiplies rows if it returns so many times those of its larger input, and at least so many.
_FACTOR, _ROWS = 2.0, 100_000
#: Share of the task time of such a join that is taken to be due to the rows that were too many.
_SHARE = 0.5
_AGGREGATES = frozenset({"HashAggregate", "ObjectHashAggregate", "SortAggregate"})
_NAMES_ITS_COLUMNS = KEEPS_ROWS | REUSED | SCANS | {"Filter", "Range", "LocalTableScan"}
_IGNORES_DUPLICATES = re.compile(r"(?:partial_|merge_)?(?:min|max)\(.*")
_CALL = re.compile(r"\b(\w+)\(")
#: What may be called: it returns the same value for the same row. Others may be a user's function, or random.
_DETERMINISTIC = frozenset({
    "HashAggregate", "ObjectHashAggregate", "SortAggregate", "HashedRelationBroadcastMode", "List", "abs", "cast",
    "coalesce", "concat", "day", "dayofmonth", "floor", "hashpartitioning", "isnotnull", "isnull",
    "knownfloatingpointnormalized", "lower", "max", "merge_max", "merge_min", "min", "month", "normalizenanandzero",
    "partial_max", "partial_min", "quarter", "rangepartitioning", "round", "substr", "substring", "trim", "upper",
    "year",
})  # fmt: skip


@dataclass(frozen=True)
class ExistenceCheck(Finding):
    """An inner join that multiplies rows, although only the existence of a partner matters.

    Attributes:
        side: names of the tables of the side whose columns nothing reads.
        rows: that the join returned.
        semi_rows: rows of the other side, which a semi join returns at most.
    """

    kind: ClassVar[str] = "existence check"
    side: str = ""
    rows: float = 0.0
    semi_rows: float = 0.0


def existence_checks(execution: Execution) -> Iterator[ExistenceCheck]:
    """The joins of an execution that could be semi joins, and multiply rows."""
    parents = parents_of(execution.plan)
    for node in as_run(execution.plan):
        join = read_join(node)
        if join is None or join.join_type != "Inner" or not join.left_keys or join.rows is None:
            continue
        left, right = join.input_rows
        if left is None or right is None or join.rows < max(_ROWS, _FACTOR * max(left, right, 1.0)):
            continue
        readers = _up_to_aggregate(above(node, parents))
        if not readers or not _ignores_duplicates(readers[-1]):
            continue
        read = frozenset[int]().union(*(column_ids(each.text) for each in readers))
        for side, rows in ((join.right, left), (join.left, right)):
            columns = _columns(side)
            if columns and not columns & read:
                yield _found(execution, join, side, rows)
                break


def _found(execution: Execution, join: PhysicalJoin, side: PlanNode, rows: float) -> ExistenceCheck:
    returned = join.rows or 0.0
    return ExistenceCheck(
        f"{name_of(join.left)} {join.sign} {name_of(join.right)}",
        f"nothing above reads a column of {name_of(side)}, and the aggregate ignores duplicates: a LEFT SEMI JOIN "
        f"(or EXISTS) with it returns at most {quantity(rows)} rows instead of {quantity(returned)}",
        hours(_SHARE * milliseconds(execution, pipeline_stages(join.node)) * (1 - rows / returned)),
        certainty=0.5, surer="a run with the semi join", side=name_of(side), rows=returned, semi_rows=rows,
    )  # fmt: skip


def _up_to_aggregate(readers: Iterable[PlanNode]) -> list[PlanNode]:
    """The operators up to the nearest aggregate; none if one of them may see how many equal rows there are."""
    found = []
    for node in readers:
        if CUT_OFF.search(node.text) or not _DETERMINISTIC.issuperset(_CALL.findall(node.text)):
            return []
        found.append(node)
        if kind(node) in _AGGREGATES:
            return found
        if kind(node) not in KEEPS_ROWS and kind(node) not in JOINS and kind(node) != "Filter":
            return []
    return []


def _ignores_duplicates(aggregate: PlanNode) -> bool:
    """Whether an aggregate returns the same if rows are repeated."""
    _, found, functions = aggregate.text.partition("functions=[")
    return bool(found) and all(map(_IGNORES_DUPLICATES.fullmatch, split(functions.rpartition("]")[0])))


def _columns(side: PlanNode) -> frozenset[int]:
    """Ids of the columns of a side, and maybe more; none if its texts do not name all of them."""
    nodes = list(side.post_order())
    if any(kind(each) not in _NAMES_ITS_COLUMNS or CUT_OFF.search(each.text) for each in nodes):
        return frozenset()
    return frozenset[int]().union(*(column_ids(each.text) for each in nodes))
