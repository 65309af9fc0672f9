"""Spark Connect: the plan is on the server, so the server does the work. It is asked by a hint and answers in SQL.

Nothing but the hint and two SQL functions of the extension are used, so any client will do, also one without a JVM.
"""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4
from weakref import WeakSet

from pyjoinopt.bridge.extension import check_server, is_connect
from pyjoinopt.bridge.shim import kind_of
from pyjoinopt.errors import UnsupportedDataFrameError

__all__ = ["NOT_PLANNED", "hinted", "is_connect", "optimised", "report_of"]

#: Why the server may have no report of a query.
NOT_PLANNED = (
    "the Spark Connect server did not hand it to the optimizer: it has fewer than three relations and no outer join, "
    "or no worker answered in time, of which the server's log has a line"
)
_known: WeakSet[Any] = WeakSet()


class _NoReport:
    """Stands where a classic DataFrame keeps the report of its call; on Spark Connect no such report exists."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # pickle, copy and the like look for what is not there
            raise AttributeError(name)
        raise UnsupportedDataFrameError(
            f"there is no {name!r} of this call: on Spark Connect the server orders the joins when it plans the query, "
            "which optimize_joins() does not wait for. Take pyjoinopt.join_report(df), for which the server plans it, "
            "or pyjoinopt.last_reports(spark) after it ran"
        )


def optimised(df: Any, options: dict[str, Any]) -> Any:
    """The DataFrame with the hint on it; whoever reads a report of the call is referred to where there is one."""
    result = hinted(df, options)
    result._pyjoinopt_report = _NoReport()
    return result


def hinted(df: Any, options: dict[str, Any], mark: str | None = None) -> Any:
    """The DataFrame with the hint on it; by the mark the report of its next plan can be asked for.

    Raises:
        UnsupportedDataFrameError: the server runs without the extension.
        ValueError: an option that a hint cannot carry.
    """
    beyond = sorted(set(options) - {"strategy", "strict"})
    if beyond:
        raise ValueError(
            f"on Spark Connect only the strategy can be told with a call; for {', '.join(beyond)} set "
            "the session's key with spark.conf.set, or have it set by whoever starts the server if it belongs to the "
            "application: docs/configuration.md lists the keys of both kinds"
        )
    session = getattr(df, "sparkSession", None)
    if session is None:
        if type(df).__name__ != "DataFrame":
            raise TypeError(f"expected a pyspark.sql.DataFrame, got {kind_of(df)}")
        raise UnsupportedDataFrameError("this Spark Connect DataFrame has no session")
    if session not in _known:
        check_server(session)
        _known.add(session)
    arguments = [options.get("strategy"), mark and f"mark={mark}"]
    return df.hint("OPTIMIZE_JOINS", *(word for word in arguments if word is not None))


def report_of(df: Any, options: dict[str, Any]) -> dict[str, Any] | None:
    """What the server does to this DataFrame when it plans it; None if it has nothing to order.

    Other threads of the session may plan at the same time, so the query has a mark, by which its report is asked for.
    """
    mark = uuid4().hex
    hinted(df, options, mark)._explain_string()
    told = df.sparkSession.sql(f"SELECT report FROM joinopt_report('{mark}') ORDER BY number DESC LIMIT 1").collect()
    return dict(json.loads(told[0].report)) if told else None
