"""The public functions: they check arguments, cross the bridge and keep the promise that a query never fails.

Every failure of the optimizer itself ends here: it is logged once, put into the report, and the original DataFrame
is returned. Two kinds of error do reach the caller: bad arguments, always, and everything if `strict=True`.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
from difflib import get_close_matches
from time import perf_counter
from typing import TYPE_CHECKING, Any

from pyjoinopt.api.unknown_keys import unknown_keys
from pyjoinopt.bridge import connect
from pyjoinopt.bridge.gateway import Py4jGateway
from pyjoinopt.bridge.shim import bridge_for
from pyjoinopt.config import Options, check_keywords, resolve_call
from pyjoinopt.cost import cost_model
from pyjoinopt.errors import RefusedError, UnsupportedDataFrameError
from pyjoinopt.estimation.store.store import open_store
from pyjoinopt.feedback import listener
from pyjoinopt.optimizer.optimize import optimize, why_not_at_all
from pyjoinopt.report.join_report import JoinReport
from pyjoinopt.report.render.notebook import in_notebook, show
from pyjoinopt.util.warn_once import log_once

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: How `explain_joins` can show a report.
MODES = ("text", "tree", "html", "json", "mermaid", "dot")
#: The attribute under which a DataFrame keeps the report of the call that returned it.
REPORT = "_pyjoinopt_report"
_log = logging.getLogger("pyjoinopt")


def optimize_joins(df: DataFrame, **options: Any) -> DataFrame:
    """The same rows and columns by a better join order, with fewer outer joins and safe hints.

    The result has the same schema, column order and column identities, so `df["a"]`, `col("t.a")` and later joins
    with the originals still resolve. If nothing can be gained, `df` itself is returned. Planning starts no Spark job.

    Args:
        df: a DataFrame. For one of Spark Connect the server does the work when it plans the query: what is returned
            is `df` with the hint OPTIMIZE_JOINS, and only `strategy` can be given.
        **options: `strategy`, `hints`, `cost`, `statistics`, `statistics_without`, `rewrites_without`,
            `statistics_ms`, `store`, `feedback`, `strict`, `pair_budget`, `search_seconds`; see
            `pyjoinopt.config.OPTIONS`. Each is also a session key `spark.pyjoinopt.*`; the keyword wins.

    Returns:
        A DataFrame; `pyjoinopt.join_report` of it, or its method `join_report()`, is the `JoinReport` of this call.

    Raises:
        ValueError, TypeError: an unknown option, or a value that is not allowed.
        PyJoinOptError: no JVM behind the DataFrame, a stopped session, a shim that cannot be loaded; with
            `strict=True` also every refusal of the whole query and every internal error.

    Example:
        >>> fast = slow.optimize_joins()                       # doctest: +SKIP
        >>> fast = slow.transform(pyjoinopt.optimize_joins)    # doctest: +SKIP
    """
    if connect.is_connect(df):
        return connect.optimised(df, check_keywords(options))
    result, report = _run(df, options)
    setattr(result, REPORT, report)
    return result


def join_report(df: DataFrame, **options: Any) -> JoinReport:
    """What was done to the joins of a DataFrame, or would be, and why not more; runs nothing.

    Args:
        df: a DataFrame. Of one that `optimize_joins` returned it is the report of that very call: nothing is planned
            again. Of every other one it is what `optimize_joins(df, **options)` would do. Of one of Spark Connect it is
            what the server does when it plans it.
        **options: as of `optimize_joins`. With any, the DataFrame is planned with them.

    Raises:
        ValueError, TypeError: an unknown option, or a value that is not allowed.
        PyJoinOptError: no JVM behind the DataFrame, a stopped session, a shim that cannot be loaded.

    Example:
        >>> report = df.optimize_joins().join_report()     # doctest: +SKIP
        >>> report.changed, report.groups[0].order_after, report.refusals    # doctest: +SKIP
    """
    if connect.is_connect(df):
        answer = connect.report_of(df, check_keywords(options))
        return _not_planned_there() if answer is None else JoinReport.from_dict(answer)
    done = None if options else getattr(df, "__dict__", {}).get(REPORT)
    return done if isinstance(done, JoinReport) else _run(df, options)[1]


def _not_planned_there() -> JoinReport:
    """The report of a query that a Spark Connect server did not hand to the optimizer."""
    report = JoinReport()
    report.refuse("the whole query", connect.NOT_PLANNED)
    return report


def explain_joins(
    df: DataFrame, mode: str | None = None, analyze: bool | str = False, ascii_only: bool | None = None, **options: Any
) -> None:
    """Show what `optimize_joins(df, **options)` would do: a picture in a notebook, elsewhere text as of `df.explain()`.

    Args:
        df: a DataFrame; for one of Spark Connect it is the server's report, and `analyze` cannot be had.
        mode: "text"; "tree" for the orders as trees side by side; "html" for pictures, shown at once in a notebook;
            "json", "mermaid" or "dot" for other programs. By default "html" in a notebook and "text" elsewhere.
        analyze: True runs the query, as written and optimised, and puts the rows that every operator gave, and the time
            that Spark measured for it, beside what was expected; "before" or "after" runs only one of them. No row is
            kept. With `strategy="none"` it shows the query as it is.
        ascii_only: whether text and tree keep to ASCII; by default if the output's encoding knows no more.
        **options: as of `optimize_joins`.

    Raises:
        ValueError, TypeError: another mode, an unknown option, or a value that is not allowed.

    Example:
        >>> df.explain_joins(mode="tree")                       # doctest: +SKIP
        >>> df.explain_joins(analyze=True)                      # doctest: +SKIP
    """
    if mode is None:
        mode = "html" if ascii_only is None and in_notebook() else "text"
    if mode not in MODES:
        close = get_close_matches(str(mode), MODES, 1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"mode is {mode!r}, but must be one of {', '.join(map(repr, MODES))}{hint}")
    if analyze not in (True, False, "before", "after"):
        raise ValueError(f"analyze is {analyze!r}, but must be True, False, 'before' or 'after'")
    if ascii_only not in (None, True, False):
        raise TypeError(f"ascii_only is {ascii_only!r}, but must be True, False, or None to go by the encoding")
    if connect.is_connect(df):
        if analyze:
            raise UnsupportedDataFrameError("on Spark Connect a query is not run to be explained: analyze is not there")
        optimised, report = df, join_report(df, **options)
    else:
        optimised, report = _run(df, options, watch_pairs=bool(analyze))
    if analyze:
        listener.analyze(report, df, optimised, analyze)
    if mode == "html" and show(report):
        return
    if mode in ("text", "tree"):
        width = shutil.get_terminal_size((110, 24)).columns
        if ascii_only is None:
            ascii_only = "utf" not in (getattr(sys.stdout, "encoding", None) or "utf-8").lower()
        print((report.to_text if mode == "text" else report.to_tree)(width, ascii_only))
    elif mode == "json":
        print(report.to_json(indent=2))
    else:
        print(getattr(report, f"to_{mode}")())


def _run(df: Any, keywords: dict[str, Any], watch_pairs: bool = False) -> tuple[Any, JoinReport]:
    started = perf_counter()
    strict = bool(check_keywords(keywords).get("strict", False))
    report = JoinReport()
    shim = bridge_for(df)
    result = df
    try:
        with Py4jGateway(shim, df._jdf, optimizing=True, strategy=keywords.get("strategy")) as gateway:
            options = _options(keywords, gateway.export.conf)
            strict = options.strict
            if options.feedback:
                listener.listen_for_metrics(shim)
            found = optimize(gateway.export, gateway, options, report, watching=True, watch_pairs=watch_pairs)
            plan = found.plan
            if plan is not gateway.export.root:
                result = type(df)(gateway.rebuild(plan), df.sparkSession)
                report.changed = True
            report.complete()
            if plan is gateway.export.root and strict and (reason := why_not_at_all(gateway.export)):
                raise RefusedError(f"the query cannot be optimised: {reason}")
            store = open_store(options.store, options.store_folder)
            listener.let_observe(report, result, shim, found.expected, store)
            if options.feedback:
                listener.listen(result, shim, found.expected, store)
    except _BadSetting as error:
        raise error.cause from None
    except Exception as error:
        if strict:
            raise
        _give_up(report, error)
        result = df
    report.seconds = perf_counter() - started
    return result, report


class _BadSetting(Exception):
    """Carries a wrong session key past the net that catches internal errors."""

    def __init__(self, cause: Exception) -> None:
        self.cause = cause


def _options(keywords: dict[str, Any], conf: dict[str, str]) -> Options:
    for sentence in unknown_keys(conf):
        log_once(_log, "api", sentence)
    try:
        options = resolve_call(keywords, conf)
        cost_model(options.cost, conf, options.cost_constants)  # a file that is none is the user's mistake, not ours
        return options
    except (ValueError, TypeError) as error:
        raise _BadSetting(error) from error


def _give_up(report: JoinReport, error: Exception) -> None:
    """Note an internal error; the same one is logged once a process."""
    text = f"{type(error).__name__}: {error}"
    report.error = text
    report.changed = False
    log_once(_log, "api", f"the original plan is used, the optimizer failed: {text}", error)


def attach() -> None:
    """Give `pyspark.sql.DataFrame` the methods `optimize_joins`, `explain_joins`, `join_report`, if pyspark is there.

    With `PYJOINOPT_ATTACH=off` in the environment nothing is done, and pyspark is not imported.
    """
    if os.environ.get("PYJOINOPT_ATTACH") == "off":
        return
    try:
        import pyspark
        from pyspark.sql import DataFrame
    except ImportError:
        return
    classes: list[Any] = [DataFrame]
    if pyspark.__version__.startswith("3."):  # Connect's DataFrame is a class of its own there, and needs grpc
        try:
            from pyspark.sql.connect.dataframe import DataFrame as ConnectDataFrame

            classes.append(ConnectDataFrame)
        except Exception as error:
            _log.debug("no Spark Connect here: %s", error)
    for cls in classes:
        cls.optimize_joins = optimize_joins
        cls.explain_joins = explain_joins
        cls.join_report = join_report
