"""C_out: the sum of the rows of all join results (Cluet and Moerkotte 1995).

It knows nothing of machines, which makes it the yardstick for comparing orders: whatever an engine does with a row,
it does so once for each row that exists.
"""

from __future__ import annotations

from pyjoinopt.cost.size import Size


class COut:
    """Rows that the join gives."""

    name = "c_out"

    def join(self, left: Size, right: Size, output: Size, join_type: str = "Inner") -> float:
        """Rows that the join gives.

        >>> COut().join(Size(10, 80), Size(20, 160), Size(5, 80))
        5
        """
        return output.rows
