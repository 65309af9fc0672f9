"""What a cost model sees of an input: how large it is, and for which joins it may be built."""

from __future__ import annotations

from typing import NamedTuple

#: For which joins an input may be built: none (it is merged), shuffled hash joins, broadcast hash joins, too.
NO_BUILD, SHUFFLE_HASH, BROADCAST_HASH = 0, 1, 2


class Size(NamedTuple):
    """How much a join reads or makes; all that a cost model sees.

    Attributes:
        rows: expected rows.
        bytes: expected bytes.
        build: for which joins it may be built (`NO_BUILD`, `SHUFFLE_HASH`, `BROADCAST_HASH`).
    """

    rows: float
    bytes: float
    build: int = BROADCAST_HASH

    @property
    def table(self) -> int:
        """The name of `build` in version 0.1."""
        return self.build
