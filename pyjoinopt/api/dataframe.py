"""The public functions on DataFrames: they check arguments, export the plan, optimise it and rebuild it.

An internal error of the optimizer is logged once and put into the report, and the original DataFrame is returned. The
caller gets two kinds of error: wrong arguments, and with `strict=True` every error.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

from pyjoinopt.api.unknown_keys import unknown_keys
from pyjoinopt.bridge import connect, extension
from pyjoinopt.bridge.gateway import Py4jGateway
from pyjoinopt.bridge.shim import bridge_for
from pyjoinopt.config import OF_SESSION, Options, check_keywords, locked_keys, refused_keys, resolve_call
from pyjoinopt.cost import cost_model
from pyjoinopt.errors import RefusedError, UnsupportedDataFrameError
from pyjoinopt.estimation.store.store import open_store
from pyjoinopt.feedback import listener
from pyjoinopt.feedback.baseline import Baseline
from pyjoinopt.feedback.call_runs import call_run
from pyjoinopt.feedback.guard import OFF
from pyjoinopt.optimizer.optimize import optimize, why_not_at_all
from pyjoinopt.optimizer.orders_if_wrong import orders_if_wrong
from pyjoinopt.optimizer.use_baselines import planned_joins
from pyjoinopt.report.join_report import JoinReport
from pyjoinopt.report.render.notebook import in_notebook, show
from pyjoinopt.util.warn_once import log_once

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Values of `mode` of `explain_joins`.
MODES = ("text", "tree", "html", "json", "mermaid", "dot")
#: The reason of the report of a call that `mode` forbids.
SWITCHED_OFF = "spark.pyjoinopt.mode is off"
#: Attribute of a DataFrame with the report of the call that returned it.
REPORT = "_pyjoinopt_report"
_log = logging.getLogger("pyjoinopt")


def optimize_joins(df: DataFrame, **options: Any) -> DataFrame:
    """A DataFrame with the same rows and columns, but a better join order, fewer outer joins and safe hints.

    The result has the same schema, column order and column references (expression IDs), so `df["a"]`, `col("t.a")` and
    later joins with the originals still resolve. If nothing changes, or if the plan took longer in earlier runs
    (`guard`), `df` itself is returned. Planning starts no Spark job.

    Args:
        df: a DataFrame. On Spark Connect the server orders the joins when it plans the query: the result is `df` with
            the hint OPTIMIZE_JOINS, and `strategy` and `baseline` are the only options.
        **options: `strategy`, `hints`, `cost`, `statistics`, `statistics_without`, `rewrites_without`,
            `statistics_ms`, `background_mb`, `session_background_mb`, `store`, `feedback`, `guard`, `baseline`,
            `mode`, `strict`, `pair_budget`, `search_seconds`; see `pyjoinopt.config.OPTIONS`. Each is also a session
            key `spark.pyjoinopt.*`; the keyword wins.

    Returns:
        A DataFrame. Its method `join_report()`, or `pyjoinopt.join_report` of it, returns the `JoinReport` of this
        call.

    Raises:
        ValueError, TypeError: an unknown option, or a value that is not allowed.
        PyJoinOptError: the DataFrame has no JVM, its session was stopped, or the shim cannot be loaded; with
            `strict=True` also refusals of the whole query and internal errors.

    Example:
        >>> fast = slow.optimize_joins()                       # doctest: +SKIP
        >>> fast = slow.transform(pyjoinopt.optimize_joins)    # doctest: +SKIP
    """
    if connect.is_connect(df):
        return connect.optimised(df, check_keywords(options))
    result, report = _run(df, options, complete=False, awaited=True)
    setattr(result, REPORT, report)
    return result


def join_report(df: DataFrame, **options: Any) -> JoinReport:
    """The report of what `optimize_joins` did to a DataFrame, or would do. Does not run the query.

    Args:
        df: a DataFrame. If `optimize_joins` returned it, the result is the report of that call, and nothing is planned
            again. Otherwise it is the report of `optimize_joins(df, **options)`. On Spark Connect it is the server's
            report of planning the query.
        **options: options of `optimize_joins`. If there are any, the DataFrame is planned with them.

    Raises:
        ValueError, TypeError: an unknown option, or a value that is not allowed.
        PyJoinOptError: the DataFrame has no JVM, its session was stopped, or the shim cannot be loaded.

    Example:
        >>> report = df.optimize_joins().join_report()     # doctest: +SKIP
        >>> report.changed, report.groups[0].order_after, report.refusals    # doctest: +SKIP
    """
    if connect.is_connect(df):
        answer = connect.report_of(df, check_keywords(options))
        return _not_planned_there() if answer is None else JoinReport.from_dict(answer)
    done = None if options else report_of(df)
    return _run(df, options)[1] if done is None else done


def report_of(df: Any) -> JoinReport | None:
    """The report of the `optimize_joins` that returned a DataFrame, with all its sections; None for others."""
    report = getattr(df, "__dict__", {}).get(REPORT)
    if not isinstance(report, JoinReport):
        return None
    try:
        report.complete()
    except Exception as error:
        report.error = f"{type(error).__name__}: {error}"
        log_once(_log, "api", f"the report is incomplete: {report.error}", error)
    return report


def _not_planned_there() -> JoinReport:
    """The report of a query that a Spark Connect server did not optimise."""
    report = JoinReport()
    report.refuse("the whole query", connect.NOT_PLANNED)
    return report


def explain_joins(
    df: DataFrame, mode: str | None = None, analyze: bool | str = False, ascii_only: bool | None = None, **options: Any
) -> None:
    """Show the report of `optimize_joins(df, **options)`: pictures in a notebook, otherwise printed text.

    Args:
        df: a DataFrame. On Spark Connect it shows the server's report, and `analyze` is not available.
        mode: "text"; "tree" for both orders as trees side by side; "html" for pictures, displayed in a notebook;
            "json", "mermaid" or "dot" for other programs. By default "html" in a notebook and "text" elsewhere.
        analyze: True runs the query as written and optimised, discards the rows, and shows for every operator the
            counted rows, the estimate and the time that Spark measured; "before" or "after" runs only one plan.
            With `strategy="none"` it shows the query as written.
        ascii_only: whether text and tree use ASCII only; by default if the output's encoding requires it.
        **options: options of `optimize_joins`. Its option `mode` can only be set as the session's key here.

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
        raise TypeError(f"ascii_only is {ascii_only!r}, but must be True, False, or None to use the encoding")
    if connect.is_connect(df):
        if analyze:
            raise UnsupportedDataFrameError("explain_joins(analyze=...) is not available on Spark Connect")
        optimised, report = df, join_report(df, **options)
    else:
        options = {"guard": "off", **options} if analyze else options  # a revoked plan could not be compared
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


def run_watching_pairs(df: DataFrame, options: dict[str, Any]) -> tuple[DataFrame, JoinReport]:
    """`optimize_joins` with its report, after which a run can also count the rows of a join of two relations alone."""
    return _run(df, options, watch_pairs=True)


def run_to_compare(df: DataFrame, options: dict[str, Any]) -> tuple[DataFrame, JoinReport]:
    """`optimize_joins` with its report, for a caller who records how long it takes."""
    return _run(df, options, complete=False)


def run_with_baseline(
    df: DataFrame, baseline: Baseline, options: dict[str, Any], hints: bool = True
) -> tuple[DataFrame, JoinReport]:
    """The same with a baseline that need not be stored; without its hints, those that pay are given."""
    return _run(df, options, watch_pairs=True, pinned=(baseline,), pinned_hints=hints)


def _run(
    df: Any,
    keywords: dict[str, Any],
    watch_pairs: bool = False,
    complete: bool = True,
    pinned: tuple[Baseline, ...] = (),
    pinned_hints: bool = True,
    awaited: bool = False,
) -> tuple[Any, JoinReport]:
    started = perf_counter()
    strict = bool(check_keywords(keywords).get("strict", False))
    report = JoinReport()
    shim = bridge_for(df)
    result = df
    try:
        with Py4jGateway(shim, df._jdf, optimizing=True, strategy=keywords.get("strategy")) as gateway:
            options = replace(_options(keywords, gateway.export.conf), pinned=pinned, pinned_hints=pinned_hints)
            strict = options.strict
            if options.feedback:
                listener.listen_for_metrics(shim)
            if options.mode == "off":
                report.strategy = options.strategy
                report.refuse("the whole query", SWITCHED_OFF)
                return df, report
            found = optimize(gateway.export, gateway, options, report, watching=True, watch_pairs=watch_pairs)
            plan = found.plan
            if plan is not gateway.export.root:
                result = type(df)(gateway.rebuild(plan, release=True), df.sparkSession)
                report.changed = True
            if complete or strict:  # a strict call raises the errors of describing, too
                report.complete()
            if plan is gateway.export.root and strict and (reason := why_not_at_all(gateway.export)):
                raise RefusedError(f"the query cannot be optimised: {reason}")
            store, run = open_store(options.store, options.store_folder), None
            if options.feedback and store is not None and not extension.is_enabled(df.sparkSession):
                guarded, seconds, export = options.guard != OFF and not pinned, perf_counter() - started, gateway.export
                run = call_run(export.root, plan, export.conf, export.spark, report, store, seconds, guarded)
            if run is not None and run.revoked:
                shape = run.query.shape[:8]
                log_once(_log, "api", f"query {shape} took longer with our plan; pyjoinopt.queries() has the figures")
                result, report = df, JoinReport(strategy="none")
                report.refuse("the whole query", run.revoked)
            report._run = run
            for key in locked_keys(gateway.export.conf):
                if OF_SESSION + key in gateway.export.conf:
                    report.refuse(key, refused_keys(gateway.export.conf)[key])
            report._planned = partial(planned_joins, found.groups, found.hinted, found.options, gateway.export.spark)
            report._orders_if_wrong = partial(orders_if_wrong, found.groups, found.options, gateway.export.conf)
            listener.let_observe(report, result, shim, found.expected, store)
            if options.feedback and store is not None:
                listener.listen(result, shim, found.expected, store)
            if run is not None and awaited:
                listener.await_run(result, shim, run)
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
    """Passes the error of a wrong session key through the handler of internal errors."""

    def __init__(self, cause: Exception) -> None:
        self.cause = cause


def _options(keywords: dict[str, Any], conf: dict[str, str]) -> Options:
    for sentence in unknown_keys(conf):
        log_once(_log, "api", sentence)
    try:
        options = resolve_call(keywords, conf)
        cost_model(options.cost, conf, options.cost_constants)  # a missing or wrong file is the user's error
        return options
    except (ValueError, TypeError) as error:
        raise _BadSetting(error) from error


def _give_up(report: JoinReport, error: Exception) -> None:
    """Put an internal error into the report, and log it once per process."""
    text = f"{type(error).__name__}: {error}"
    report.error = text
    report.changed, report._run = False, None
    log_once(_log, "api", f"the original plan is used, the optimizer failed: {text}", error)


def attach() -> None:
    """Add the methods `optimize_joins`, `explain_joins`, `join_report` to `pyspark.sql.DataFrame`, if pyspark is
    installed.

    With `PYJOINOPT_ATTACH=off` in the environment it does nothing and does not import pyspark.
    """
    if os.environ.get("PYJOINOPT_ATTACH") == "off":
        return
    try:
        import pyspark
        from pyspark.sql import DataFrame
    except ImportError:
        return
    classes: list[Any] = [DataFrame]
    if pyspark.__version__.startswith("3."):  # in Spark 3 Connect has a separate DataFrame class, which needs grpc
        try:
            from pyspark.sql.connect.dataframe import DataFrame as ConnectDataFrame

            classes.append(ConnectDataFrame)
        except Exception as error:
            _log.debug("Spark Connect is not available: %s", error)
    for cls in classes:
        cls.optimize_joins = optimize_joins
        cls.explain_joins = explain_joins
        cls.join_report = join_report
