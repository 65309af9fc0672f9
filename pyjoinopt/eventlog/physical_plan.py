"""A physical plan as it ran: a tree of immutable records with the actual values of its metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

#: Name of the metric that counts the rows of an operator.
ROWS = "number of output rows"
#: Names of the operators at the top of subqueries.
_SUBQUERIES = ("Subquery", "ReusedSubquery")
#: Nanoseconds in a millisecond; metrics of the type `nsTiming` have nanoseconds.
_NS = 1_000_000
#: Plans with more operators are not read: such a plan is not one that a person can rearrange.
_MOST_NODES = 20_000


@dataclass(frozen=True, slots=True, eq=False)
class PlanNode:
    """One operator of a physical plan.

    Attributes:
        name: such as `SortMergeJoin`.
        text: Spark's description in one line, with column ids.
        children: inputs, left before right.
        subqueries: that its expressions read; each is the top operator of a plan.
        metrics: name -> value, of the metrics that were updated; rows, bytes, or milliseconds.
        stages: ids of the stages whose tasks updated them.
        location: of a scan of files, where they are; else "".
        repeated: True if several stages ran the operator, so that only the largest count is known to be of one run.
    """

    name: str
    text: str
    children: tuple[PlanNode, ...]
    metrics: Mapping[str, float]
    stages: frozenset[int]
    location: str = ""
    repeated: bool = False
    subqueries: tuple[PlanNode, ...] = ()

    @property
    def rows(self) -> float | None:
        """Rows that the operator returned; None if it does not count them."""
        return self.metrics.get(ROWS)

    def post_order(self, subqueries: bool = False) -> Iterator[PlanNode]:
        """Every operator, inputs first, without recursion.

        Args:
            subqueries: also those of subqueries, after the inputs of the operator that reads them.
        """
        stack: list[tuple[PlanNode, bool]] = [(self, False)]
        while stack:
            node, expanded = stack.pop()
            below = (*node.children, *node.subqueries) if subqueries else node.children
            if expanded or not below:
                yield node
            else:
                stack.append((node, True))
                stack.extend((child, False) for child in reversed(below))


@dataclass(frozen=True, slots=True)
class MetricValue:
    """The value of one accumulator.

    Attributes:
        value: as Spark writes it.
        stages: ids of the stages that updated it; empty for one that the driver sets.
        repeated: True if more than one stage did.
    """

    value: float
    stages: frozenset[int] = frozenset()
    repeated: bool = False


def build_plan(info: Mapping[str, Any], values: Mapping[int, MetricValue]) -> PlanNode | None:
    """The plan of a `sparkPlanInfo`; None if it is not of that form, or too large.

    Args:
        info: the JSON object.
        values: accumulator id -> its value.
    """
    done: list[PlanNode] = []
    stack: list[tuple[Mapping[str, Any], bool]] = [(info, False)]
    count = 0
    while stack:
        at, expanded = stack.pop()
        children = at.get("children") or ()
        if not expanded:
            count += 1
            if count > _MOST_NODES:
                return None
            stack.append((at, True))
            stack.extend((child, False) for child in reversed(children))
            continue
        inputs = tuple(done[len(done) - len(children) :])
        del done[len(done) - len(children) :]
        done.append(_node(at, inputs, values))
    return done[0] if len(done) == 1 else None


def _row_count(node: PlanNode) -> float | None:
    """Rows of the nearest operator that counts them, itself or below it as long as there is one input."""
    at: PlanNode | None = node
    while at is not None and at.rows is None:
        at = at.children[0] if len(at.children) == 1 else None
    return None if at is None else at.rows


def _node(at: Mapping[str, Any], below: tuple[PlanNode, ...], values: Mapping[int, MetricValue]) -> PlanNode:
    """One operator; Spark lists the subqueries of an operator behind its inputs."""
    children = tuple(node for node in below if not node.name.startswith(_SUBQUERIES))
    subqueries = tuple(node for node in below if node.name.startswith(_SUBQUERIES))
    metrics: dict[str, float] = {}
    stages: set[int] = set()
    repeated = False
    for metric in at.get("metrics") or ():
        found = values.get(metric.get("accumulatorId"))
        if found is None:
            continue
        scale = _NS if metric.get("metricType") == "nsTiming" else 1
        metrics[str(metric.get("name"))] = found.value / scale
        stages |= found.stages
        repeated |= found.repeated
    if ROWS not in metrics and any(metric.get("name") == ROWS for metric in at.get("metrics") or ()):
        # A metric that stayed 0 is not written. An operator above counted rows has run.
        ran = all(_row_count(child) is not None for child in children) if children else bool(stages)
        if ran:
            metrics[ROWS] = 0.0
    metadata = at.get("metadata") or {}
    return PlanNode(
        str(at.get("nodeName", "")).strip(), str(at.get("simpleString", "")), children, metrics, frozenset(stages),
        str(metadata.get("Location", "")), repeated, subqueries,
    )  # fmt: skip
