"""What a session's rule does with the queries that this thread runs: `RuleOfThread.scala` reads it.

`compare`, `tune` and `explain_joins` run plans as they are, in sessions that would optimise them once more.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

_PROPERTY = "pyjoinopt.rule"
#: Nothing is planned.
OFF = "off"
#: Nothing is changed; if the session records runs, these are recorded as runs of the query as written.
WRITTEN = "written"


@contextlib.contextmanager
def rule_of_thread(session: Any, rule: str) -> Iterator[None]:
    """A block in which the queries of this thread are planned by this rule; those of other threads are as usual.

    Args:
        session: a classic session, with the extension or without.
        rule: `OFF` or `WRITTEN`.
    """
    context = session.sparkContext
    before = context.getLocalProperty(_PROPERTY)
    context.setLocalProperty(_PROPERTY, rule)
    try:
        yield
    finally:
        with contextlib.suppress(Exception):  # the JVM may have gone, which the block reports
            context.setLocalProperty(_PROPERTY, before)
