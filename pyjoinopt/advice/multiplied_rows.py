"""Joins that return more rows than they read, of which a join, filter or aggregate above keeps few.

Rows that were multiplied pass through every operator up to the one that drops them. An order that joins the dropping
side first, or grouping before the join, avoids them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from pyjoinopt.advice.finding import Finding, hours
from pyjoinopt.advice.operators import (
    JOINS,
    LIMITS,
    above,
    as_run,
    kind,
    milliseconds,
    parents_of,
    pipeline_stages,
    result_rows,
)  # fmt: skip
from pyjoinopt.advice.physical_joins import read_join
from pyjoinopt.advice.relation_names import name_of
from pyjoinopt.eventlog.execution import Execution
from pyjoinopt.eventlog.physical_plan import PlanNode
from pyjoinopt.report.render.number_format import quantity

#: A join multiplies rows if it returns so many times those of its larger input, and at least so many.
_FACTOR, _ROWS = 2.0, 100_000
#: What is above reduces them if it keeps at most this share.
_KEPT = 0.5
#: Share of the task time of such a join that is taken to be due to the rows that were too many.
_SHARE = 0.5
_WORDS = {"Filter": "a filter", "HashAggregate": "an aggregate", "ObjectHashAggregate": "an aggregate",
          "SortAggregate": "an aggregate"}  # fmt: skip


@dataclass(frozen=True)
class MultipliedRows(Finding):
    """A join multiplies rows that are dropped later.

    Attributes:
        left_rows, right_rows: read by the join.
        rows: returned by it.
        rows_left: that the reducing operator returned.
        reduced_by: that operator.
    """

    kind: ClassVar[str] = "multiplied rows"
    left_rows: float = 0.0
    right_rows: float = 0.0
    rows: float = 0.0
    rows_left: float = 0.0
    reduced_by: str = ""


def multiplied_rows(execution: Execution) -> Iterator[MultipliedRows]:
    """The joins of an execution that multiply rows in vain."""
    parents = parents_of(execution.plan)
    for node in as_run(execution.plan):
        join = read_join(node)
        if join is None or join.rows is None:
            continue
        left, right = join.input_rows
        if left is None or right is None or join.rows < max(_ROWS, _FACTOR * max(left, right, 1.0)):
            continue
        reducer = _reducer(above(node, parents), join.rows)
        if reducer is None:
            continue
        rows_left = result_rows(reducer) or 0.0
        word = _WORDS.get(kind(reducer)) or f"the join with {_other_side(reducer, [node, *above(node, parents)])}"
        remedy = "group before this join" if "aggregate" in word else "apply what drops them before this join"
        useful = max(left, right, rows_left)
        yield MultipliedRows(
            f"{name_of(join.left)} {join.sign} {name_of(join.right)}",
            f"{quantity(left)} and {quantity(right)} rows become {quantity(join.rows)}, of which {word} leaves "
            f"{quantity(rows_left)}: {remedy}",
            hours(_SHARE * milliseconds(execution, pipeline_stages(node)) * (1 - useful / join.rows)),
            certainty=0.5,
            surer="a run of the rewritten query",
            left_rows=left, right_rows=right, rows=join.rows, rows_left=rows_left, reduced_by=kind(reducer),
        )  # fmt: skip


def _reducer(readers: Iterable[PlanNode], rows: float) -> PlanNode | None:
    """The nearest operator above that keeps few of the rows; None if rows are multiplied again, or limited."""
    for node in readers:
        if kind(node) in LIMITS or kind(node) == "Expand":
            return None
        counts = kind(node) in JOINS or kind(node) in _WORDS
        left = node.rows if counts else None
        if left is None:
            continue
        if left <= _KEPT * rows:
            return node
        if left > rows:
            return None
    return None


def _other_side(join: PlanNode, path: Sequence[PlanNode]) -> str:
    """The name of the input of a join that is not on a path."""
    on_path = {id(each) for each in path}
    return next((name_of(child) for child in join.children if id(child) not in on_path), "another relation")
