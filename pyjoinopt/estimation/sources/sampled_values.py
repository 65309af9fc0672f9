"""Which values a column has among some sampled rows, as hashes that are the same for all relations.

A semi join keeps the rows whose value is among those of its right side. Where a sample has (nearly) all values of the
right side, they are looked up for each sampled row of the left side, which shows what filters of both sides have to do
with each other:

    SELECT * FROM flights f JOIN planes p ON f.tailnum = p.tailnum WHERE f.carrier <> 'DL' AND EXISTS (
      SELECT 1 FROM flights g JOIN planes x ON g.tailnum = x.tailnum WHERE g.carrier = 'DL' AND x.model = p.model)

A sample has nearly all values if few of its rows have a value that occurs once: the share of such rows estimates the
share of all rows whose value was not drawn (Good, "The population frequencies of species and the estimation of
population parameters", Biometrika 1953).
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress

from pyjoinopt.estimation.model.assumptions import ASSUMPTIONS


@dataclass(frozen=True, slots=True)
class SampledValues:
    """The values of a column among some rows.

    Attributes:
        type: of the column.
        hashes: of the values.
        complete: whether these are all of them, and not only nearly all.
    """

    type: str
    hashes: frozenset[int]
    complete: bool

    def found(self, values: Sequence[int]) -> int:
        """The rows whose value is one of these, as bits; `values` has the hash of each row.

        >>> bin(SampledValues("int", frozenset({7, 9}), True).found([7, 0, 8, 9]))
        '0b1001'
        """
        return int("".join("1" if value in self.hashes else "0" for value in reversed(values)) or "0", 2)


#: The value that rows without one have.
NULL = SampledValues("", frozenset({0}), complete=True)


def values_among(values: Sequence[int], hits: int, type: str, complete: bool) -> SampledValues | None:
    """The values of some sampled rows; None if many more values were not drawn.

    Args:
        values: hashes of the sampled rows, 0 for NULL.
        hits: the rows, as bits.
        type: of the column.
        complete: whether the sample is the whole relation.

    >>> values_among([5, 6, 5, 0], 0b1101, "int", True)
    SampledValues(type='int', hashes=frozenset({5}), complete=True)
    >>> values_among(range(1, 101), (1 << 100) - 1, "int", False), values_among([1, 2] * 50, 1, "int", False)
    (None, None)
    """
    text = bin(hits)[:1:-1]
    counts = Counter(compress(values, (c == "1" for c in text.ljust(len(values), "0"))))
    counts.pop(0, None)
    if not complete:
        drawn, once = counts.total(), sum(1 for n in counts.values() if n == 1)
        if drawn < ASSUMPTIONS.distinct_least_hits or once > ASSUMPTIONS.unseen_values * drawn:
            return None
    return SampledValues(type, frozenset(counts), complete)


def hashes(text: str) -> list[int]:
    """Hashes of the values of sampled rows, four bytes a row as hexadecimal text; 0 is NULL.

    >>> hashes("0100000000000000")
    [1, 0]
    """
    data = bytes.fromhex(text)
    return list(struct.unpack(f"<{len(data) // 4}I", data))
