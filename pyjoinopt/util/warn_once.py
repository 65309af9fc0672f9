"""One warning for each cause and process, however often the cause occurs and on whatever thread."""

from __future__ import annotations

import logging
import threading
import warnings
from collections.abc import Hashable

#: Causes of one kind that are remembered. The oldest is forgotten first, so memory is bounded in a long process.
_MOST = 1000

_lock = threading.Lock()
_seen: dict[str, dict[Hashable, None]] = {}


def first_time(kind: str, cause: Hashable) -> bool:
    """True at the first call for a cause of this kind in this process.

    >>> first_time("doctest", "a"), first_time("doctest", "a"), first_time("doctest", "b")
    (True, False, True)
    >>> forget_causes("doctest")
    >>> first_time("doctest", "a")
    True
    >>> forget_causes("doctest")
    """
    with _lock:
        causes = _seen.setdefault(kind, {})
        if cause in causes:
            return False
        if len(causes) >= _MOST:
            del causes[next(iter(causes))]
        causes[cause] = None
        return True


def warn_once(kind: str, cause: Hashable, text: str, stacklevel: int = 1) -> None:
    """Issue a `RuntimeWarning`, unless the cause had one already.

    Args:
        kind: what the causes have in common, such as "source".
        cause: what the warning is about.
        text: the message.
        stacklevel: which frame the warning is attributed to: 1 for the caller, 2 for the caller's caller.
    """
    if first_time(kind, cause):
        warnings.warn(text, RuntimeWarning, stacklevel=stacklevel + 1)


def log_once(log: logging.Logger, kind: str, text: str, error: BaseException | None = None) -> None:
    """Log a warning, unless the same text was logged already.

    Args:
        log: the logger.
        kind: what the texts have in common.
        text: the message, which is the cause too.
        error: an exception whose traceback is logged with it.
    """
    if first_time(kind, text):
        log.warning("%s", text, exc_info=error)


def forget_causes(kind: str | None = None) -> None:
    """Let every cause of a kind, or of all kinds, be warned of again."""
    with _lock:
        if kind is None:
            _seen.clear()
        else:
            _seen.pop(kind, None)
