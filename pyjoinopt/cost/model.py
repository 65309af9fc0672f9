"""The protocols of cost models."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Protocol, runtime_checkable

from pyjoinopt.cost.size import Size


@runtime_checkable
class CostModel(Protocol):
    """What a single join costs.

    The searches find the cheapest order only under these laws:

    * `join` depends on the three sizes and the type alone: on the *sets* that are joined, not on the plans that made
      them;
    * for inner joins it is symmetric: `join(a, b, o) == join(b, a, o)`. The model decides which side is built;
    * it is never negative, and never smaller when there are more rows or bytes (monotone);
    * it takes the same time whatever the sizes: it is called for every pair that is considered.

    A model of your own needs no more than this; pass it as `optimize_joins(cost=...)`. With the method of `SidedModel`
    the searches are faster. With that of `PartitionedModel` they know that consecutive joins on one key shuffle a side
    once.
    """

    @property
    def name(self) -> str:
        """The name of the model, as the `cost` option has it."""

    def join(self, left: Size, right: Size, output: Size, join_type: str = "Inner") -> float:
        """Cost of this one join; the cost of its inputs is not included.

        Args:
            left, right: the inputs; for outer, semi and anti joins the left and the right side.
            output: the result.
            join_type: `Inner`, `LeftOuter`, `FullOuter`, `LeftSemi` or `LeftAnti`.
        """


_NEVER = math.inf


class Side(NamedTuple):
    """What a set costs as one side of an inner join, in row units.

    Attributes:
        probe: if the other side is broadcast, and this one is read in place.
        build: if this side is broadcast, on top of nothing else; infinite if it may not be.
        shuffle: if both sides are shuffled, for a shuffled hash join.
        hash: if it is built by that join, on top of `shuffle`; infinite if it may not be.
        sort: if both sides are shuffled and sorted, for a sort-merge join.
    """

    probe: float
    build: float
    shuffle: float
    hash: float
    sort: float


def join_cost_of_sides(one: Side, other: Side) -> float:
    """What an inner join of two sets costs, without the rows of its result.

    DPhyp has this inlined (`joins.search.dphyp_enumerator`), because nothing else is computed more often.
    """
    probe, build, shuffle, hashed, ordered = one
    other_probe, other_build, other_shuffle, other_hashed, other_ordered = other
    if (work := build if build < other_build else other_build) < _NEVER:
        return probe + other_probe + work
    if (work := hashed if hashed < other_hashed else other_hashed) < _NEVER:
        return shuffle + other_shuffle + work
    return ordered + other_ordered


@runtime_checkable
class SidedModel(CostModel, Protocol):
    """A cost model that prices each side of an inner join by itself: once for a set, not once for each pair."""

    def side(self, size: Size) -> Side:
        """What a set costs as a side of an inner join.

        `join` must be `join_cost_of_sides` of both sides, plus the rows of the output.
        """


@runtime_checkable
class TypedSidedModel(SidedModel, Protocol):
    """A sided model whose outer, semi and anti joins differ from inner ones only in which side may be built."""

    def most_built(self, join_type: str) -> tuple[int, int]:
        """The most that a join of this type may build of its left and of its right side (`Size.build`).

        `join` must be `join_cost_of_sides` of both sides with no larger `build`, plus the rows of the output.
        """


class Parts(NamedTuple):
    """A join's cost in parts.

    Attributes:
        streamed: the streamed side of a broadcast join, 0 the left and 1 the right one; None if neither is broadcast.
        work: what the join itself costs.
        left, right: what it costs to shuffle (and sort) each side; saved for one that is partitioned by the key.
    """

    streamed: int | None
    work: float
    left: float = 0.0
    right: float = 0.0


@runtime_checkable
class PartitionedModel(CostModel, Protocol):
    """A cost model that prices a join whose inputs are partitioned by its key already."""

    def parts(self, left: Size, right: Size, output: Size, join_type: str = "Inner") -> Parts:
        """The parts of a join's cost; their sum is that of `join`."""


def optional_method(cost: CostModel, name: str) -> Any:
    """A model's method that is an alternative to its `join`; None if it has none.

    None also for a class that inherits the method but has its own `join`: the two need not agree any more.
    """
    for kind in type(cost).__mro__:
        if name in vars(kind):
            return getattr(cost, name)
        if "join" in vars(kind):
            return None
    return None
