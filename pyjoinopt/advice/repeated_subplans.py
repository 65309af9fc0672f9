"""Sub-plans that were run several times, with the same operators, filters and columns.

Two sub-plans are the same if their texts are, without column ids and the numbers of plans and stages. Constants count.
What is below a reused exchange or a cached table ran once, and does not count again.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from pyjoinopt.advice.finding import Finding, hours
from pyjoinopt.advice.operators import (
    REUSED,
    SCANS,
    WRAPPERS,
    above,
    as_run,
    kind,
    milliseconds,
    parents_of,
    result_rows,
)  # fmt: skip
from pyjoinopt.advice.relation_names import name_of
from pyjoinopt.eventlog.execution import Execution
from pyjoinopt.eventlog.physical_plan import PlanNode
from pyjoinopt.report.render.number_format import quantity

_VARIES = re.compile(r"#\d+L?|\[plan_id=\d+\]|\[id=#\d+\]")
#: Sub-plans that read fewer rows are not worth a remark.
_ROWS = 100_000


@dataclass(frozen=True)
class RepeatedSubplan(Finding):
    """The same sub-plan ran several times in one query.

    Attributes:
        runs: how many times.
        rows: that one of them returned.
        operators: in the sub-plan.
    """

    kind: ClassVar[str] = "repeated sub-plan"
    adds_up: ClassVar[bool] = True
    runs: int = 0
    rows: float = 0.0
    operators: int = 0


def repeated_subplans(execution: Execution) -> Iterator[RepeatedSubplan]:
    """The largest sub-plans of an execution that ran more than once."""
    texts = _texts(execution.plan)
    places: dict[str, list[tuple[PlanNode, PlanNode | None]]] = {}
    parents = parents_of(execution.plan)
    for node in as_run(execution.plan):
        if kind(node) not in WRAPPERS and texts[id(node)]:
            parent = next((each for each in above(node, parents) if kind(each) not in WRAPPERS), None)
            places.setdefault(texts[id(node)], []).append((node, parent))
    for found in places.values():
        if len(found) < 2 or _is_part(found, places, texts):
            continue
        nodes = [node for node, _ in found]
        read = max((scan.rows or 0.0 for scan in nodes[0].post_order() if kind(scan) in SCANS), default=0.0)
        if read < _ROWS:
            continue
        rows = result_rows(nodes[0]) or 0.0
        yield RepeatedSubplan(
            name_of(nodes[0]),
            f"the same sub-plan ran {len(nodes)} times, and read up to {quantity(read)} rows each time: compute it "
            "once, with a cached or temporary table, or write the query so that Spark can reuse the exchange",
            hours(_milliseconds(execution, nodes) * (len(nodes) - 1) / len(nodes)), certainty=0.8,
            surer="a run with the result of the sub-plan cached", runs=len(nodes), rows=rows,
            operators=sum(kind(each) not in WRAPPERS for each in nodes[0].post_order()),
        )  # fmt: skip


def _is_part(
    found: list[tuple[PlanNode, PlanNode | None]], places: dict[str, list[tuple[PlanNode, PlanNode | None]]],
    texts: dict[int, str],
) -> bool:  # fmt: skip
    """Whether all these sub-plans are parts of larger ones that are repeated, too."""
    return all(parent is not None and len(places.get(texts[id(parent)], ())) > 1 for _, parent in found)


def _texts(plan: PlanNode) -> dict[int, str]:
    """Operator -> a digest that equal sub-plans share; "" for one that scans nothing."""
    digests: dict[int, str] = {}
    for node in plan.post_order(subqueries=True):
        inputs = [digests[id(child)] for child in (*node.children, *node.subqueries)]
        if kind(node) in WRAPPERS and len(inputs) == 1:
            digests[id(node)] = inputs[0]
        elif kind(node) in REUSED or (not any(inputs) and kind(node) not in SCANS):
            digests[id(node)] = ""
        else:
            text = "\n".join([kind(node), node.location, _VARIES.sub("", node.text), *inputs])
            digests[id(node)] = hashlib.sha256(text.encode()).hexdigest()
    return digests


def _milliseconds(execution: Execution, nodes: list[PlanNode]) -> float:
    """Task time of sub-plans: of the stages that wrote their exchanges, or else what their scans took."""
    if all(kind(node) in ("Exchange", "BroadcastExchange") for node in nodes):
        inside = {stage for node in nodes for child in node.children for stage in _stages_inside(child)}
        return milliseconds(execution, inside)
    return sum(scan.metrics.get("scan time", 0.0) for node in nodes for scan in node.post_order())


def _stages_inside(node: PlanNode) -> set[int]:
    return {stage for each in node.post_order() if kind(each) not in REUSED for stage in each.stages}
