"""Spark Connect: the server orders the joins. Clients use a hint and two SQL functions of its extension.

A client therefore needs no JVM.
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

#: The reason if the server has no report of a query.
NOT_PLANNED = (
    "the Spark Connect server did not optimise it: it has fewer than three relations, no outer join and small files, "
    "or spark.pyjoinopt.mode is off there, or no worker answered in time, in which case the server's log has a warning"
)
_known: WeakSet[Any] = WeakSet()


class _NoReport:
    """Replaces the report of a call, which does not exist on Spark Connect; any access raises an error."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # pickle and copy look up optional methods
            raise AttributeError(name)
        raise UnsupportedDataFrameError(
            f"there is no {name!r} of this call: on Spark Connect the server orders the joins when it plans the query, "
            "after optimize_joins() has returned. Use pyjoinopt.join_report(df), for which the server plans the "
            "query, or pyjoinopt.last_reports(spark) after it ran"
        )


def optimised(df: Any, options: dict[str, Any]) -> Any:
    """The DataFrame with the hint OPTIMIZE_JOINS. Reading its report raises an error that names the alternatives."""
    result = hinted(df, options)
    result._pyjoinopt_report = _NoReport()
    return result


def hinted(df: Any, options: dict[str, Any], mark: str | None = None) -> Any:
    """The DataFrame with the hint OPTIMIZE_JOINS; the mark identifies the report of its next plan.

    Raises:
        UnsupportedDataFrameError: the server runs without the extension.
        ValueError: an option that a hint cannot carry.
    """
    beyond = sorted(set(options) - {"strategy", "baseline", "strict"})
    if beyond:
        raise ValueError(
            f"on Spark Connect a call takes only the options strategy and baseline; for {', '.join(beyond)} set the "
            "session's key with spark.conf.set, or, if only the application may set it, in the configuration of the "
            "server: docs/configuration.md lists the keys of both kinds"
        )
    session = getattr(df, "sparkSession", None)
    if session is None:
        if type(df).__name__ != "DataFrame":
            raise TypeError(f"expected a pyspark.sql.DataFrame, got {kind_of(df)}")
        raise UnsupportedDataFrameError("this Spark Connect DataFrame has no session")
    if session not in _known:
        check_server(session)
        _known.add(session)
    baseline = options.get("baseline", "").replace(" ", "")
    arguments = [options.get("strategy"), baseline and f"baseline={baseline}", mark and f"mark={mark}"]
    return df.hint("OPTIMIZE_JOINS", *(word for word in arguments if word is not None))


def report_of(df: Any, options: dict[str, Any]) -> dict[str, Any] | None:
    """The server's report of planning this DataFrame; None if it did not optimise it.

    Other threads of the session may plan at the same time, so a mark identifies the report of this query.
    """
    mark = uuid4().hex
    hinted(df, options, mark)._explain_string()
    rows = df.sparkSession.sql(f"SELECT report FROM joinopt_report('{mark}') ORDER BY number DESC LIMIT 1").collect()
    return dict(json.loads(rows[0].report)) if rows else None
