"""The weighted formula of Spark's cost-based optimizer: rows against bytes of the join results.

Spark prefers the order for which (rows ÷ other rows)^w · (bytes ÷ other bytes)^(1 - w) is below 1, of the sums over all
results of both orders (`JoinReorderDP.betterThan`). That compares two orders and gives none a cost of its own, so a
search that adds up can only follow it result by result: each costs rows^w · bytes^(1 - w). Of two orders that differ in
one result, both prefer the same. The exact formula is in the reimplementation, `strategy="spark"`.
"""

from __future__ import annotations

from pyjoinopt.cost.size import Size

#: The weight of rows, and Spark's default for it.
CARD_WEIGHT, WEIGHT = "spark.sql.cbo.joinReorder.card.weight", 0.7


class Weighted:
    """The weighted geometric mean of a join result's rows and bytes.

    Args:
        weight: of rows, from 0 (only bytes count) to 1 (only rows).
    """

    name = "weighted"

    def __init__(self, weight: float = WEIGHT) -> None:
        self.weight = min(1.0, max(0.0, weight))

    def join(self, left: Size, right: Size, output: Size, join_type: str = "Inner") -> float:
        """Weighted mean of the rows and bytes that the join gives.

        >>> Weighted(0.5).join(Size(10, 80), Size(20, 160), Size(4, 100))
        20.0
        """
        return float(output.rows**self.weight * output.bytes ** (1.0 - self.weight))
