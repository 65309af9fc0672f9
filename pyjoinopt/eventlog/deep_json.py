"""JSON that is nested deeply: each operator of a plan is inside the one that reads it.

Python's parser is recursive. A plan of some fifty joins, one below the other, is nested deeper than the recursion limit
of Python 3.11 allows, so such a line is parsed again in a thread that has a large stack.
"""

from __future__ import annotations

import json
import sys
import threading
from typing import Any

#: Levels of nesting, and bytes of stack for them.
_LEVELS, _STACK = 20_000, 1 << 28


def loads(text: bytes) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: it is no JSON.
        RecursionError: it is nested more than about twenty thousand levels deep.
    """
    try:
        return json.loads(text)
    except RecursionError:
        return _with_large_stack(text)


def _with_large_stack(text: bytes) -> Any:
    found: list[Any] = []
    errors: list[Exception] = []

    def parse() -> None:
        try:
            found.append(json.loads(text))
        except Exception as error:
            errors.append(error)

    limit, stack = sys.getrecursionlimit(), threading.stack_size(_STACK)
    sys.setrecursionlimit(max(limit, _LEVELS))
    try:
        thread = threading.Thread(target=parse, name="pyjoinopt-json")
        thread.start()
        thread.join()
    finally:
        sys.setrecursionlimit(limit)
        threading.stack_size(stack)
    if errors:
        raise errors[0]
    return found[0]
