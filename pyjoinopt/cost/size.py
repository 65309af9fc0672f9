"""What a cost model sees of an input: how large it is, and for which joins it may be built."""

from __future__ import annotations

from typing import NamedTuple

#: What an input may be built into: nothing (it is merged), hash tables of its partitions, one that is broadcast.
NO_TABLE, HASH_TABLES, BROADCAST_TABLE = 0, 1, 2


class Size(NamedTuple):
    """How much a join reads or makes; all that a cost model sees.

    Attributes:
        rows: expected rows.
        bytes: expected bytes.
        table: the most that a join may build of it (`NO_TABLE`, `HASH_TABLES`, `BROADCAST_TABLE`).
    """

    rows: float
    bytes: float
    table: int = BROADCAST_TABLE
