"""When a search has to end."""

from __future__ import annotations

import math
from time import perf_counter


class Deadline:
    """The end of the time that a search may take.

    Args:
        seconds: from now on; infinite for no end.

    >>> Deadline(0.0).passed, Deadline().passed
    (True, False)
    """

    __slots__ = ("_start", "_end")

    def __init__(self, seconds: float = math.inf) -> None:
        self._start = perf_counter()
        self._end = self._start + seconds

    @property
    def passed(self) -> bool:
        """Whether that time is over."""
        return perf_counter() >= self._end

    @property
    def elapsed(self) -> float:
        """Seconds since it was set."""
        return perf_counter() - self._start
