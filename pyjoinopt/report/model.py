"""What a report consists of: relations, joins, the edges of the join graph, groups, hints, refusals. Plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache
from typing import Any, TypeVar

_Part = TypeVar("_Part")


@dataclass(frozen=True)
class RelationReport:
    """One relation of a group, its own filters applied.

    Attributes:
        name: as the query calls it.
        rows: estimate.
        source: where the count comes from.
        bytes: estimate, in memory.
        bound: rows that are proved not to be exceeded; None if nothing is proved.
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
        relations: the names of those below it.
        predicates: what it applies, as text.
        rows: estimate.
        bytes: estimate, in memory.
        bound: rows that are proved not to be exceeded; None if nothing is proved.
        source: the weakest source that the estimate rests on.
        cost: of this join alone, under the cost model.
        sign: what kind of join it is: ⋈ ⟕ ⟗ ⋉ ▷.
        left, right: its sides, as numbers: relations first, then joins in this order.
        operator: what Spark will run it with, as far as can be foreseen; adaptive execution may change its mind.
        build: the side that is built into a hash table or broadcast: "left", "right", or "" if none is.
        hint: the hint that the join carries and the reason for it, if it was given here.
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
        """The name of the side that is built: a relation's, or `#3` for the third join; empty if none is.

        Args:
            joins: number of the relations, from which on numbers are those of joins.
            relations: of the group.
        """
        if not self.build:
            return ""
        return side_name(self.left if self.build == "left" else self.right, joins, relations)


def side_name(number: int, joins: int, relations: Sequence[RelationReport]) -> str:
    """A side of a join for people.

    >>> side_name(1, 2, [RelationReport("a", 1, ""), RelationReport("b", 1, "")]), side_name(2, 2, [])
    ('b', '#1')
    """
    return relations[number].name if number < joins else f"#{number - joins + 1}"


@dataclass(frozen=True)
class EdgeReport:
    """One edge of the join graph.

    Attributes:
        predicate: as text; empty for a product that an outer join needs.
        relations: the names of those that it reads.
        required: the names of those that must be joined before it may be applied.
        sign: ⋈ for a predicate of inner joins; ⟕ ⟗ ⋉ ▷ for an outer, semi or anti join as a whole.
        sides: of the latter, what the left and the right side must hold.
        implied: whether it only follows from other edges.
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
        relations: what was ordered.
        predicates: the join predicates, as text.
        order_before, order_after: such as `((a ⋈ b) ⋈ c)`; equal if nothing changed.
        estimated_rows: one entry a join of `order_after`, innermost first.
        joins_before: the same of `order_before`.
        cost_before, cost_after: both orders under the same cost model.
        strategy: the search that found the order ("exact", "linearized", "greedy", "spark", "heuristic").
        pairs: pairs of sub-plans looked at.
        seconds: time to order this group.
        changed: whether the new order is used.
        edges: of the join graph.
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
        """The part of the order's whole cost that one of its joins has; None if that is not known."""
        total = sum(j.cost or 0.0 for j in (self.estimated_rows if join in self.estimated_rows else self.joins_before))
        return None if join.cost is None or total <= 0 else join.cost / total


@dataclass(frozen=True)
class HintReport:
    """A hint that was given: the join, the side, and the reason."""

    join: str
    strategy: str
    side: str
    reason: str


@dataclass(frozen=True)
class RefusalReport:
    """Something left as written, why, and what would change that."""

    where: str
    reason: str
    advice: str = ""


def made(part: type[_Part], told: Mapping[str, Any], **others: Any) -> _Part:
    """A part from what `to_dict` told of it, lists as tuples; what this version does not know is left out.

    >>> made(HintReport, {"join": "(a = b)", "strategy": "BROADCAST", "side": "left", "reason": "small", "new": 1})
    HintReport(join='(a = b)', strategy='BROADCAST', side='left', reason='small')
    """
    known = {f.name for f in fields(part)} - set(others)  # type: ignore[arg-type]
    return part(**{name: _tuples(value) for name, value in told.items() if name in known}, **others)


def plain(part: Any) -> Any:
    """Parts as dicts, whatever holds several of something as lists: what JSON can be made of.

    >>> plain(HintReport("(a = b)", "BROADCAST", "left", "small"))
    {'join': '(a = b)', 'strategy': 'BROADCAST', 'side': 'left', 'reason': 'small'}
    """
    if isinstance(part, (list, tuple)):
        return [plain(one) for one in part]
    names = _fields(type(part))  # type: ignore[arg-type]
    return part if names is None else {name: plain(getattr(part, name)) for name in names}


@lru_cache
def _fields(part: type) -> tuple[str, ...] | None:
    return tuple(f.name for f in fields(part)) if is_dataclass(part) else None


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
