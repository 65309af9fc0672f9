"""How long a query waits for what has to be read: one deadline for footers and samples, of all its relations together.

What comes later is read to its end all the same, and is there for the next query.
"""

from __future__ import annotations

from time import perf_counter

#: Part of the time that may be spent waiting for samples alone; footers matter more.
SAMPLES = 0.25
#: Part of the time that may be spent waiting for proofs of keys; they are there for the next query anyway.
KEYS = 0.05
#: How many times longer a query waits under the option "full", which wants samples for certain.
THOROUGH = 5


class ReadDeadline:
    """The time that is left; it begins to run with the first question.

    Args:
        milliseconds: for everything.
        thorough: wait longer, and for samples as long as for footers.

    >>> ReadDeadline(2000).for_samples()
    500
    """

    def __init__(self, milliseconds: int, thorough: bool = False) -> None:
        self._milliseconds = milliseconds * THOROUGH if thorough else milliseconds
        self._for_samples = 1.0 if thorough else SAMPLES
        self._for_keys = 1.0 if thorough else KEYS
        self._started: float | None = None

    def left(self) -> int:
        """Milliseconds until the deadline."""
        now = perf_counter()
        if self._started is None:
            self._started = now
        return max(1, self._milliseconds - int(1000 * (now - self._started)))

    def for_samples(self) -> int:
        """Milliseconds to wait for samples from now on."""
        return max(1, min(self.left(), int(self._for_samples * self._milliseconds)))

    def for_keys(self) -> int:
        """Milliseconds to wait for proofs of keys from now on."""
        return max(1, min(self.left(), int(self._for_keys * self._milliseconds)))
