"""The protocol of cost models."""

from __future__ import annotations

from typing import Protocol

from pyjoinopt.statistics.relation import Size


class CostModel(Protocol):
    """What a single join costs.

    The searches are right only under these laws:

    * `join` depends on the three sizes alone, so on the *sets* that are joined and not on how they came to be;
    * it is symmetric: which side is built is the model's business, and `join(a, b, o) == join(b, a, o)`;
    * it is never negative, and never smaller when one of the sizes is larger (monotone);
    * it takes the same time whatever the sizes: it is called once for every pair that is considered.
    """

    @property
    def name(self) -> str:
        """The name of the model, as the `cost` option has it."""

    def join(self, left: Size, right: Size, output: Size) -> float:
        """Cost of this one join, what its inputs cost not included."""
