"""What a join costs Spark, in row units: the cost of handing one row from one operator to the next.

Whatever the operator, each row of both inputs is read once and each result row is made once. The rest depends on the
operator:

* **broadcast**, if a side may be built by a broadcast join (`Size.build`): its rows are collected and built
  into a hash table, and its bytes travel to every executor. The other side is streamed: read in place;
* **shuffle** otherwise: the rows of both sides are written, sent and read. Then one side is built into hash tables, if
  it may be, or both are sorted and merged. What does not fit into memory for the sort is spilled and read once more.

A side that is partitioned by the join's key already, because the join below was on that key, need not be shuffled:
`parts` has what that saves. The search that tracks partitionings (`joins.search.interesting_partitionings`) therefore
prefers orders with consecutive joins on one key.

Spark does not compare costs when it chooses an operator: what can be broadcast is broadcast. So does this model. For
which join types which side may be built is Spark's `JoinSelection` (`catalyst.planner.build_side`).
"""

from __future__ import annotations

from pyjoinopt.cost.constants import DEFAULT, Constants
from pyjoinopt.cost.model import Parts, Side, join_cost_of_sides
from pyjoinopt.cost.size import BROADCAST_HASH, NO_BUILD, Size

_INNER = "Inner"
_NEVER = float("inf")
#: The most that may be built of the left and of the right side, by type.
_BUILDABLE = {
    "LeftOuter": (NO_BUILD, BROADCAST_HASH),
    "FullOuter": (NO_BUILD, NO_BUILD),
    "LeftSemi": (NO_BUILD, BROADCAST_HASH),
    "LeftAnti": (NO_BUILD, BROADCAST_HASH),
}


class SparkCost:
    """Rows read, rows and bytes shuffled, hash tables built, rows sorted.

    Args:
        constants: what each of these costs.
        executors: how many of them a broadcast has to reach.
        memory: bytes that can be sorted at once, all executors together.
    """

    name = "spark"

    def __init__(self, constants: Constants = DEFAULT, executors: int = 1, memory: float = float("inf")) -> None:
        self.constants = constants
        self.executors = executors
        self.memory = memory
        c = constants
        self._broadcast, self._broadcast_row = c.broadcast, c.broadcast_row
        self._broadcast_byte = c.broadcast_byte * executors
        self._shuffle, self._shuffled_row, self._shuffled_byte = c.shuffle, c.shuffled_row, c.shuffled_byte
        self._sorted_row, self._hashed_row = c.sorted_row, c.hashed_row

    def join(self, left: Size, right: Size, output: Size, join_type: str = _INNER) -> float:
        """Cost of one join.

        >>> big, small = Size(1e6, 1e8), Size(10, 1000)
        >>> SparkCost().join(big, small, big) < SparkCost().join(big, small._replace(build=NO_BUILD), big)
        True
        """
        if join_type != _INNER:
            most = self.most_built(join_type)
            left = Size(left.rows, left.bytes, min(left.build, most[0]))
            right = Size(right.rows, right.bytes, min(right.build, most[1]))
        return join_cost_of_sides(self.side(left), self.side(right)) + output.rows

    def most_built(self, join_type: str) -> tuple[int, int]:
        """The most that a join of this type may build of its left and of its right side."""
        return _BUILDABLE.get(join_type, (BROADCAST_HASH, BROADCAST_HASH))

    def side(self, size: Size) -> Side:
        """What a set costs as a side of a join."""
        rows, bytes, build = size
        moved = self._shuffle + rows * (1.0 + self._shuffled_row) + bytes * self._shuffled_byte
        spilt = self._spilt(bytes) if bytes > self.memory else 0.0
        return Side(
            rows,
            self._broadcast + rows * self._broadcast_row + bytes * self._broadcast_byte
            if build == BROADCAST_HASH else _NEVER,
            moved,
            rows * self._hashed_row if build else _NEVER,
            moved + rows * self._sorted_row + spilt,
        )  # fmt: skip

    def parts(self, left: Size, right: Size, output: Size, join_type: str = _INNER) -> Parts:
        """The parts of a join's cost."""
        most = self.most_built(join_type)
        l_build, r_build = min(left.build, most[0]), min(right.build, most[1])
        if BROADCAST_HASH in (l_build, r_build):
            row, byte = self._broadcast_row, self._broadcast_byte
            of_left = left.rows * row + left.bytes * byte if l_build == BROADCAST_HASH else _NEVER
            of_right = right.rows * row + right.bytes * byte if r_build == BROADCAST_HASH else _NEVER
            return Parts(0 if of_right <= of_left else 1, self.join(left, right, output, join_type))
        c = self.constants
        moves = [c.shuffle + side.rows * c.shuffled_row + side.bytes * c.shuffled_byte for side in (left, right)]
        work = left.rows + right.rows + output.rows
        if l_build or r_build:
            rows = min(left.rows if l_build else _NEVER, right.rows if r_build else _NEVER)
            return Parts(None, work + rows * c.hashed_row, *moves)
        for i, side in enumerate((left, right)):  # what comes out of a merge join is sorted, too
            moves[i] += side.rows * c.sorted_row + self._spilt(side.bytes)
        return Parts(None, work, *moves)

    def _spilt(self, bytes: float) -> float:
        """Bytes beyond the memory are written and read once more."""
        return max(0.0, bytes - self.memory) * self._shuffled_byte
