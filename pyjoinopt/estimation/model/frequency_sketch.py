"""How often the values of two columns meet, and how unevenly the values of one occur, by sketches of `analyze`.

**The sketch.** A value v that f(v) rows have has a sign s(v) and, in each of d rows of counters, one of w counters, all
by hash functions. A counter is the sum of s(v) f(v) over its values. This is the sketch of Alon, Matias and Szegedy
(1996) with hashed counters, or fast AGMS (Cormode and Garofalakis 2005). It is linear, takes one pass, and its size
does not depend on the data.

**A join.** Two columns are sketched by the same functions. The products of their counters at the same places, added up
over one row of counters, have the expectation J = sum f(v) g(v), which is the number of rows of the join. Their
variance is at most (F G + J^2) / w, where F = sum f(v)^2 and G = sum g(v)^2. So the sketches show both values that are
frequent on both sides, and keys that only one side has, which no count of distinct values does. The estimate is the
median of the d rows. Where it is within the standard error of what distinct counts give, these are kept.

**The second moment.** With itself, a column gives an estimate X of F in each row of counters. Bounds need the chance
that X is much too small. Take the signs as given. Pairs of different values that share a counter add
2 s(u) s(v) f(u) f(v), by a chance of 1/w. Hence the expectation of X is F + (S^2 - F) / w with S = sum s(v) f(v), at
least F (1 - 1/w). Of hash functions that are independent for any four values, the pairs are uncorrelated, so the
variance is at most sum over pairs of 4 f(u)^2 f(v)^2 / w <= 2 F^2 / w. By Cantelli's inequality

    P(X <= F (1 - 1/w - e)) <= (2/w) / (2/w + e^2),

which is 1/17 for w = 512 and e = 1/4. The rows have independent functions, so all of five are that small by a chance of
17^-5 < 10^-6. The bound is therefore the largest of the five, over 1 - 1/w - e.

**What follows from it.** n = sqrt(F) is the l2 norm of the frequencies. No value has more rows than n, and by the
inequality of Cauchy and Schwarz no join of two columns has more rows than the product of their norms. A filter only
makes frequencies smaller. Nothing follows for uniqueness, and a bound may be exceeded by the chance above; so it may
carry a hint (`RelationStatistics.frequency_bounds`), but never a rewrite.

The hash functions are taken for random. They have fixed seeds: whoever knows these can write values for which a bound
is wrong.
"""

from __future__ import annotations

import base64
import binascii
import math
import sys
import zlib
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from operator import mul
from statistics import median
from typing import Any

#: Rows of counters, and counters of a row; `FrequencySketch.scala` has the same.
DEPTH, WIDTH = 5, 512
#: How much smaller than the second moment its estimate is taken to be, for a bound.
_SHORTFALL = 0.25


@dataclass(frozen=True, eq=False)
class FrequencySketch:
    """The frequencies of a column's values.

    Attributes:
        kind: what values are compared as; columns of one kind have the same hash functions.
        rows: how many rows are not NULL.
        counters: `DEPTH` rows of `WIDTH` counters.
    """

    kind: str
    rows: float
    counters: tuple[array[int], ...]

    @cached_property
    def second_moment(self) -> float:
        """Estimate of the sum of squared frequencies, at least the number of rows."""
        return max(self.rows, float(median(self._squares)))

    @cached_property
    def norm_bound(self) -> float:
        """An upper bound of the l2 norm of the frequencies; it is exceeded by a chance of less than one in a million.

        No value has more rows than that.
        """
        return min(self.rows, math.sqrt(max(self.rows, max(self._squares)) / (1.0 - 1.0 / WIDTH - _SHORTFALL)))

    @cached_property
    def _squares(self) -> list[int]:
        return [sum(map(mul, row, row)) for row in self.counters]


def read(given: Any) -> FrequencySketch | None:
    """A sketch as the shim sends it; None if it cannot be decoded.

    Args:
        given: `{"kind", "rows", "counters"}`, the last as base64 of deflated big-endian numbers of 8 bytes.
    """
    if not isinstance(given, Mapping):
        return None
    kind, rows, counters = given.get("kind"), given.get("rows"), given.get("counters")
    if not isinstance(kind, str) or not isinstance(rows, (int, float)) or not isinstance(counters, str):
        return None
    return _decoded(kind, float(rows), counters)


@lru_cache(maxsize=1024)
def _decoded(kind: str, rows: float, counters: str) -> FrequencySketch | None:
    size = 8 * DEPTH * WIDTH
    try:
        content = zlib.decompressobj().decompress(base64.b64decode(counters), size)
    except (binascii.Error, ValueError, zlib.error):
        return None
    if len(content) != size or not rows >= 0:
        return None
    numbers = array("q", content)
    if sys.byteorder == "little":
        numbers.byteswap()
    return FrequencySketch(kind, rows, tuple(numbers[i * WIDTH : (i + 1) * WIDTH] for i in range(DEPTH)))


@lru_cache(maxsize=1024)
def meeting_rows(one: FrequencySketch, other: FrequencySketch) -> tuple[float, float]:
    """Rows of the join of two columns of one kind: the estimate, at least 0, and its standard error."""
    products = [sum(map(mul, a, b)) for a, b in zip(one.counters, other.counters)]
    rows = max(0.0, float(median(products)))
    error = math.sqrt((one.second_moment * other.second_moment + rows * rows) / WIDTH)
    return min(rows, one.rows * other.rows), error


def pair_domain(one: FrequencySketch | None, other: FrequencySketch | None, domain: float) -> float | None:
    """Of how many equally frequent values pairs of rows of two columns would meet as often as they do.

    Args:
        one, other: sketches of the columns.
        domain: the same by their distinct counts.

    Returns:
        A number, at least 1; None if the sketches do not differ from `domain` by more than their error.
    """
    if one is None or other is None or one.kind != other.kind or not one.rows or not other.rows:
        return None
    pairs = one.rows * other.rows
    rows, error = meeting_rows(one, other)
    if abs(rows - pairs / domain) <= error:
        return None
    return max(1.0, pairs / max(rows, error))
