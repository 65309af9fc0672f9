"""What estimates read of a join graph, which is built in another room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pyjoinopt.plan.expressions import Expression
from pyjoinopt.plan.nodes import LogicalPlan


class GraphEdge(Protocol):
    """What is read of an edge of a join graph."""

    @property
    def predicate(self) -> Expression: ...
    @property
    def relations(self) -> int: ...
    @property
    def required(self) -> int: ...
    @property
    def keys(self) -> tuple[tuple[int, Expression], tuple[int, Expression]] | None: ...
    @property
    def implied(self) -> bool: ...
    @property
    def join_type(self) -> str: ...
    @property
    def right(self) -> int: ...
    @property
    def sides(self) -> tuple[int, int]: ...
    @property
    def room(self) -> tuple[int, int]: ...


class Graph(Protocol):
    """What is read of a join graph."""

    @property
    def relations(self) -> tuple[LogicalPlan, ...]: ...
    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def edges(self) -> Sequence[GraphEdge]: ...
