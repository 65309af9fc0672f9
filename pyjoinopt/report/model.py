"""The parts of a report as plain data: relations, joins, edges of the join graph, groups, hints, refusals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache
from typing import Any, TypeVar

_Part = TypeVar("_Part")


@dataclass(frozen=True)
class RelationReport:
    """One relation of a group, after its own filters.

    Attributes:
        name: its name in the query.
        rows: estimated rows.
        source: sources of the estimate, such as "footers, sample".
        bytes: estimated size in memory, in bytes.
        bound: proven upper bound of the rows; None if there is none.
    """

    name: str
    rows: float
    source: str
    bytes: float | None = None
    bound: float | None = None


@dataclass(frozen=True)
class JoinEstimate:
    """One join of the chosen order.

    Attributes:
        relations: names of the relations below it.
        predicates: the predicates that it applies, as text.
        rows: estimated rows.
        bytes: estimated size in memory, in bytes.
        bound: proven upper bound of the rows; None if there is none.
        source: the least reliable source of the estimate.
        cost: cost of this join alone, in row units of the cost model.
        sign: the join type: ⋈ inner, ⟕ left, ⟗ full, ⋉ semi, ▷ anti.
        left, right: its sides, as numbers: relations first, then joins in this order.
        operator: forecast of Spark's physical operator; adaptive execution may choose another.
        build: the side that is built: "left", "right", or "" if there is none.
        hint: the hint that pyjoinopt gave it, with the reason; "" if there is none.
    """

    relations: tuple[str, ...]
    predicates: tuple[str, ...]
    rows: float
    bytes: float | None = None
    bound: float | None = None
    source: str = ""
    cost: float | None = None
    sign: str = "⋈"
    left: int = 0
    right: int = 0
    operator: str = ""
    build: str = ""
    hint: str = ""

    def built(self, joins: int, relations: Sequence[RelationReport]) -> str:
        """The name of the side that is built: a relation's, or `#3` for the third join; "" if there is none.

        Args:
            joins: number of the first join, which is the number of relations.
            relations: the relations of the group.
        """
        if not self.build:
            return ""
        return side_name(self.left if self.build == "left" else self.right, joins, relations)


def side_name(number: int, joins: int, relations: Sequence[RelationReport]) -> str:
    """The display name of a side of a join.

    >>> side_name(1, 2, [RelationReport("a", 1, ""), RelationReport("b", 1, "")]), side_name(2, 2, [])
    ('b', '#1')
    """
    return relations[number].name if number < joins else f"#{number - joins + 1}"


@dataclass(frozen=True)
class EdgeReport:
    """One edge of the join graph.

    Attributes:
        predicate: as text; empty for a cross product that an outer join needs.
        relations: names of the relations that it reads.
        required: names of the relations that must be joined before it may be applied.
        sign: ⋈ for a predicate of inner joins; ⟕ ⟗ ⋉ ▷ for an outer, semi or anti join as a whole.
        sides: for the latter, the relations that its left and its right side must contain.
        implied: whether other edges imply it.
    """

    predicate: str
    relations: tuple[str, ...]
    required: tuple[str, ...]
    sign: str = "⋈"
    sides: tuple[tuple[str, ...], ...] = ()
    implied: bool = False


@dataclass(frozen=True)
class GroupReport:
    """One join group.

    Attributes:
        relations: the relations that are ordered.
        predicates: the join predicates, as text.
        order_before, order_after: the written and the chosen order, such as `((a ⋈ b) ⋈ c)`; equal if not changed.
        estimated_rows: the joins of `order_after`, innermost first.
        joins_before: the joins of `order_before`, innermost first.
        cost_before, cost_after: costs of both orders in row units of the same cost model.
        strategy: the search that found the order ("exact", "linearized", "greedy", "spark", "heuristic"), or
            "baseline"; empty for a group of two relations, which has one order.
        pairs: pairs of sub-plans that the search compared.
        seconds: time to order this group.
        changed: whether the chosen order differs from the written one and is used.
        edges: edges of the join graph.
    """

    relations: tuple[RelationReport, ...]
    predicates: tuple[str, ...]
    order_before: str
    order_after: str
    estimated_rows: tuple[JoinEstimate, ...]
    cost_before: float
    cost_after: float
    strategy: str
    pairs: int
    seconds: float
    changed: bool
    joins_before: tuple[JoinEstimate, ...] = ()
    edges: tuple[EdgeReport, ...] = ()

    def share(self, join: JoinEstimate) -> float | None:
        """A join's share of the cost of its order, from 0 to 1; None if unknown."""
        total = sum(j.cost or 0.0 for j in (self.estimated_rows if join in self.estimated_rows else self.joins_before))
        return None if join.cost is None or total <= 0 else join.cost / total


@dataclass(frozen=True)
class HintReport:
    """A hint that pyjoinopt gave: its join as text, its strategy, its side, and the reason."""

    join: str
    strategy: str
    side: str
    reason: str


@dataclass(frozen=True)
class RefusalReport:
    """A part of the query that is left as written, the reason, and advice on how to remove it."""

    where: str
    reason: str
    advice: str = ""


def from_dict(part: type[_Part], data: Mapping[str, Any], **others: Any) -> _Part:
    """A part from its dict, with lists as tuples; keys that this version does not have are ignored.

    >>> from_dict(HintReport, {"join": "(a = b)", "strategy": "BROADCAST", "side": "left", "reason": "small", "new": 1})
    HintReport(join='(a = b)', strategy='BROADCAST', side='left', reason='small')
    """
    known = {f.name for f in fields(part)} - set(others)  # type: ignore[arg-type]
    return part(**{name: _tuples(value) for name, value in data.items() if name in known}, **others)


def to_dict(part: Any) -> Any:
    """Dataclasses as dicts, and lists and tuples as lists, so that the result can be written as JSON.

    >>> to_dict(HintReport("(a = b)", "BROADCAST", "left", "small"))
    {'join': '(a = b)', 'strategy': 'BROADCAST', 'side': 'left', 'reason': 'small'}
    """
    if isinstance(part, (list, tuple)):
        return [to_dict(one) for one in part]
    names = _fields(type(part))  # type: ignore[arg-type]
    return part if names is None else {name: to_dict(getattr(part, name)) for name in names}


@lru_cache
def _fields(part: type) -> tuple[str, ...] | None:
    return tuple(f.name for f in fields(part)) if is_dataclass(part) else None


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
