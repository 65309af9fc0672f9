"""Spark Connect: the plan is on the server, so the server does the work. It is asked by a hint and answers in SQL.

Nothing but the hint and two SQL functions of the extension are used, so any client will do, also one without a JVM.
"""

from __future__ import annotations

import json
from typing import Any
from weakref import WeakSet

from pyjoinopt.bridge.extension import check_server, is_connect
from pyjoinopt.errors import UnsupportedDataFrameError

__all__ = ["hinted", "is_connect", "report_of"]

_known: WeakSet[Any] = WeakSet()


def hinted(df: Any, options: dict[str, Any]) -> Any:
    """The DataFrame with the hint on it.

    Raises:
        UnsupportedDataFrameError: the server runs without the extension.
        ValueError: an option that a hint cannot carry.
    """
    beyond = sorted(set(options) - {"strategy", "strict"})
    if beyond:
        raise ValueError(
            f"on Spark Connect only the strategy can be told with a call; for {', '.join(beyond)} set "
            f"spark.conf.set('spark.pyjoinopt.{beyond[0]}', ...)"
        )
    session = getattr(df, "sparkSession", None)
    if session is None:
        raise UnsupportedDataFrameError("this Spark Connect DataFrame has no session")
    if session not in _known:
        check_server(session)
        _known.add(session)
    strategy = options.get("strategy")
    return df.hint("OPTIMIZE_JOINS") if strategy is None else df.hint("OPTIMIZE_JOINS", strategy)


def report_of(df: Any) -> dict[str, Any] | None:
    """What the server does to this DataFrame when it plans it; None if it has nothing to order."""
    session = df.sparkSession
    ask = "SELECT number, report FROM joinopt_report() ORDER BY number DESC LIMIT 1"
    before = session.sql(ask).collect()
    df._explain_string()
    after = session.sql(ask).collect()
    if not after or (before and before[0].number == after[0].number):
        return None
    return dict(json.loads(after[0].report))
