"""The protocols of cost models."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Protocol, runtime_checkable

from pyjoinopt.cost.size import Size


@runtime_checkable
class CostModel(Protocol):
    """What a single join costs.

    The searches are right only under these laws:

    * `join` depends on the three sizes and the type alone, so on the *sets* that are joined and not on how they came
      to be;
    * for inner joins it is symmetric: which side is built is the model's business, and
      `join(a, b, o) == join(b, a, o)`;
    * it is never negative, and never smaller when there are more rows or bytes (monotone);
    * it takes the same time whatever the sizes: it is called once for every pair that is considered.

    A model of your own needs no more than this; give it as `optimize_joins(cost=...)`. With the method of `SidedModel`
    the searches are quicker, with that of `PartitionedModel` they see that joins on one key in a row move a side once.
    """

    @property
    def name(self) -> str:
        """The name of the model, as the `cost` option has it."""

    def join(self, left: Size, right: Size, output: Size, join_type: str = "Inner") -> float:
        """Cost of this one join, what its inputs cost not included.

        Args:
            left, right: what is joined; of outer, semi and anti joins each in its place.
            output: what comes out.
            join_type: `Inner`, `LeftOuter`, `FullOuter`, `LeftSemi` or `LeftAnti`.
        """


_NEVER = math.inf


class Side(NamedTuple):
    """What a set costs as one side of an inner join; `met` says what the join of two costs.

    Attributes:
        beside: if the other side is built and broadcast, and this one streams past.
        built: if this one is; infinite if it may not be.
        moved: if both are shuffled and one of them becomes hash tables.
        hashed: if that is this one, on top; infinite if it may not be.
        sorted: if both are shuffled and sorted.
    """

    beside: float
    built: float
    moved: float
    hashed: float
    sorted: float


def met(one: Side, other: Side) -> float:
    """What an inner join of two sets costs, but for the rows that it makes.

    The exact search spells this out (`joins.search.dphyp_enumerator`): it is asked more often than anything else.
    """
    beside, built, moved, hashed, ordered = one
    other_beside, other_built, other_moved, other_hashed, other_ordered = other
    if (work := built if built < other_built else other_built) < _NEVER:
        return beside + other_beside + work
    if (work := hashed if hashed < other_hashed else other_hashed) < _NEVER:
        return moved + other_moved + work
    return ordered + other_ordered


@runtime_checkable
class SidedModel(CostModel, Protocol):
    """A cost model that prices the sides of an inner join apart, which need not be done for each pair then."""

    def side(self, size: Size) -> Side:
        """What a set costs as a side of an inner join: `join` says `met` of two, and the rows of the output."""


class Parts(NamedTuple):
    """A join's cost in parts.

    Attributes:
        streamed: which side a broadcast join streams, 0 the left and 1 the right one; None if it is not broadcast.
        work: what the join itself costs.
        left, right: what it costs to bring the sides into place; not needed of one that is partitioned by the key.
    """

    streamed: int | None
    work: float
    left: float = 0.0
    right: float = 0.0


@runtime_checkable
class PartitionedModel(CostModel, Protocol):
    """A cost model that tells what a join costs whose inputs lie in the right places already."""

    def parts(self, left: Size, right: Size, output: Size, join_type: str = "Inner") -> Parts:
        """The parts of a join's cost; their sum is what `join` says."""


def beside_join(cost: CostModel, name: str) -> Any:
    """A model's method that says the same as its `join` in another way; None if it has none.

    A class that inherits the method and has a `join` of its own has none either: they need not agree any more.
    """
    for kind in type(cost).__mro__:
        if name in vars(kind):
            return getattr(cost, name)
        if "join" in vars(kind):
            return None
    return None
