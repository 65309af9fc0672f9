"""A random cost model: the cost of a join is a hash of its two inputs.

So any legal order may win, not only those that a realistic model prefers; the winner depends on the seed of the model.
It declares no property of `CostModel` but symmetry: the search may miss the cheapest order, but must find a legal one.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

from pyjoinopt.cost.size import Size


@dataclass(frozen=True)
class RandomCost:
    """Costs between 0 and 1, the same for the same pair."""

    number: int
    name: str = "random"

    def join(self, left: Size, right: Size, output: Size, join_type: str = "Inner") -> float:
        """A hash of what is joined; sets of relations are known by their sizes.

        >>> a, b, c = Size(1, 8), Size(2, 16), Size(3, 24)
        >>> cost = RandomCost(1)
        >>> cost.join(a, b, c) == cost.join(b, a, c) != cost.join(a, c, b)
        True
        """
        pair = sorted([(left.rows, left.bytes), (right.rows, right.bytes)])
        digest = blake2b(repr((self.number, pair, output.rows, output.bytes)).encode(), digest_size=8).digest()
        return float(int.from_bytes(digest, "big") / 2**64)
