"""Ends this process when its parent has ended, even while it is busy.

An idle worker sees the end of its input, but a busy one does not read it for a long time, so a thread watches the pipe.
The kernel closes the parent's end of the pipe however the parent died. If another process has a copy of that end, a new
parent process ID shows the same (`getppid(2)`: orphans get init or a subreaper as their parent).
"""

from __future__ import annotations

import os
import select
import threading
import time

#: Interval of the checks of the parent's process ID.
_CHECK_SECONDS = 1.0
#: Time to process requests that arrived before the end of the input.
_GRACE_SECONDS = 2.0


def end_with_parent(source: int, parent: int) -> None:
    """End this process when the other end of `source` is closed, or when its parent is no longer `parent`."""
    threading.Thread(target=_watch, args=(source, parent), name="pyjoinopt-parent", daemon=True).start()


def _watch(source: int, parent: int) -> None:
    poll = select.poll() if hasattr(select, "poll") else None
    if poll is not None:
        poll.register(source, 0)  # no events: poll always reports a closed other end
    while os.getppid() == parent:
        if poll is None:
            time.sleep(_CHECK_SECONDS)
        elif poll.poll(_CHECK_SECONDS * 1000):
            break
    time.sleep(_GRACE_SECONDS)
    os._exit(0)
