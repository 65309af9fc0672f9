"""How long a query waits for what has to be read: one deadline for footers and samples, of all its relations together.

What comes later is read to its end all the same, and is there for the next query. By default a query waits for samples
in proportion to the bytes of its files, so that the wait is short beside the query itself.
"""

from __future__ import annotations

from time import perf_counter

#: Part of the time that may be spent waiting for samples alone; footers matter more.
SAMPLES = 0.25
#: Part of the time that may be spent waiting for proofs of keys; they are there for the next query anyway.
KEYS = 0.05
#: How many times longer a query waits under the option "full", which wants samples for certain.
THOROUGH = 5
AUTO = "auto"
#: [milliseconds] What "auto" waits for everything.
_MILLISECONDS = 2000
#: [bytes a millisecond] How a wait for samples grows with the files: a tenth of the time in which Spark reads them with
#: few cores, or less.
_BYTES_OF_MILLISECOND = 2 << 20
#: [milliseconds] What "auto" waits for samples at least and at most.
_LEAST, _MOST = 20, 1000
#: [milliseconds] What it waits for samples at least where these may change the order of several joins.
_LEAST_OF_SEVERAL = 500


class ReadDeadline:
    """The time that is left; it begins to run with the first question.

    Args:
        milliseconds: for everything.
        thorough: wait longer, and for samples as long as for footers.
        samples: milliseconds for samples alone; None for a part of all.

    >>> ReadDeadline(2000).for_samples()
    500
    """

    def __init__(self, milliseconds: int, thorough: bool = False, samples: int | None = None) -> None:
        self._milliseconds = milliseconds * THOROUGH if thorough else milliseconds
        part = int((1.0 if thorough else SAMPLES) * self._milliseconds)
        self._for_samples = part if samples is None or thorough else samples
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
        return max(1, min(self.left(), self._for_samples))

    def for_keys(self) -> int:
        """Milliseconds to wait for proofs of keys from now on."""
        return max(1, min(self.left(), int(self._for_keys * self._milliseconds)))


def deadline_of(setting: int | str, bytes: float, several: bool, thorough: bool = False) -> ReadDeadline:
    """The deadline of an option's value.

    Args:
        setting: `statistics_ms`: milliseconds, or "auto".
        bytes: of all files that the query reads.
        several: whether it has several joins.
        thorough: as of `ReadDeadline`.

    >>> [deadline_of("auto", n * 2.0**20, several=False).for_samples() for n in (1, 100, 1000, 100_000)]
    [20, 50, 500, 1000]
    >>> deadline_of("auto", 0.0, several=True).for_samples(), deadline_of(400, 2.0**40, several=False).for_samples()
    (500, 100)
    """
    if not isinstance(setting, str):
        return ReadDeadline(setting, thorough)
    least = _LEAST_OF_SEVERAL if several else _LEAST
    return ReadDeadline(_MILLISECONDS, thorough, int(min(_MOST, max(least, bytes / _BYTES_OF_MILLISECOND))))
