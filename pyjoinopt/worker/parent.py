"""A process that ends when the one that started it has gone, whatever it is doing at that moment.

A worker that waits sees the end of its input. One that is busy does not look, and might be for a long time: so a thread
looks instead. The other end of a pipe is closed by the kernel however its holder died; where somebody else holds a
copy of it, a new parent tells the same (`getppid(2)`: orphans are given to init or to a subreaper).
"""

from __future__ import annotations

import os
import select
import threading
import time

#: How often to ask who the parent is.
_LOOK_SECONDS = 1.0
#: What came before the end of the input may still be read and remembered.
_GRACE_SECONDS = 2.0


def end_with_parent(source: int, parent: int) -> None:
    """End this process when nobody can write to `source` any more, or when its parent is not `parent` any more."""
    threading.Thread(target=_watch, args=(source, parent), name="pyjoinopt-parent", daemon=True).start()


def _watch(source: int, parent: int) -> None:
    poll = select.poll() if hasattr(select, "poll") else None
    if poll is not None:
        poll.register(source, 0)  # no event is asked for; that the other end is closed is told anyway
    while os.getppid() == parent:
        if poll is None:
            time.sleep(_LOOK_SECONDS)
        elif poll.poll(_LOOK_SECONDS * 1000):
            break
    time.sleep(_GRACE_SECONDS)
    os._exit(0)
