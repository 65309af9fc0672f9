"""Every query of a session: `configure` for a new session, `enable` for a running one, and `last_reports`.

A session extension adds a rule to Spark's optimizer, which sends plans to a worker process
(`pyjoinopt/worker/serve.py`). So it also optimises queries that are not DataFrames of this process: those of
spark-sql, Scala programs and Connect clients.

Settings of the application (`config.STATIC_KEYS`) are not passed through the configuration of a running session, which
clients can change, but by a call to the JVM, which only the driver's own Python can make.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from pyjoinopt.bridge import extension
from pyjoinopt.bridge.shim import check_session, kind_of
from pyjoinopt.config import OPTIONS, PREFIX, STATIC_KEYS, check_keywords, worker_settings
from pyjoinopt.report.join_report import JoinReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Builder = TypeVar("Builder")

#: Options that exist for single calls only.
_NOT_OF_SESSIONS = ("strict",)


def configure(builder: Builder, **options: Any) -> Builder:
    """Configure a builder so that its session optimises every query.

    Adds the jar to `spark.jars` and the extension to `spark.sql.extensions`, and keeps the entries of the builder, the
    submit arguments and `spark-defaults.conf`. The session's key `spark.pyjoinopt.enabled` switches the optimizer off
    and on. With `.remote("sc://...")` only the options are set, and `getOrCreate` raises `UnsupportedDataFrameError`,
    with the settings to add, if the server has no extension.

    Args:
        builder: a `SparkSession.builder`; other settings may be added before or after.
        **options: options of `optimize_joins` except `strict`; they become keys `spark.pyjoinopt.*`. Also `python`,
            `pythonpath`, `workers`, `start_timeout` and `prestart`, see the keys of whole sessions in
            docs/configuration.md.

    Returns:
        The same builder. Its `getOrCreate` raises `SessionError` if the session has no extension, for which Spark only
        logs a warning. The usual cause is that another session was running already.

    Raises:
        ValueError, TypeError: an unknown option, or a value that is not allowed. When the session is created: an option
            that only the application may set, for a builder of a Spark Connect client.
        ShimError: there is no jar for the installed Spark, and none can be compiled.

    Example:
        >>> spark = pyjoinopt.configure(SparkSession.builder.appName("mine")).getOrCreate()    # doctest: +SKIP
    """
    keys = _keys(options)
    if not callable(getattr(builder, "getOrCreate", None)) or not hasattr(builder, "_options"):
        running = "; for a running session call pyjoinopt.enable(spark)" if hasattr(builder, "sql") else ""
        raise TypeError(f"expected a SparkSession.builder, got {kind_of(builder)}{running}")
    extension.configure(builder, keys, _of_application(keys))
    return builder


def enable(spark: SparkSession, **options: Any) -> None:
    """Optimise every query of a running session from now on, without a restart or configuration.

    A new session of `spark.newSession()` is not enabled. Existing DataFrames are optimised, unless Spark has planned
    them already.

    Args:
        spark: a session. The server of a Spark Connect session must have been started with the extension.
        **options: options of `optimize_joins` except `strict`; they become keys `spark.pyjoinopt.*` of this session.
            Also `python`, `pythonpath`, `workers`, `start_timeout` and `prestart`, see the keys of whole sessions in
            docs/configuration.md; an empty `python` selects the application's again.

    Raises:
        ValueError, TypeError: an unknown option, or a value that is not allowed; for a Spark Connect session, an option
            that only the application may set.
        SessionError: the session was stopped.
        UnsupportedDataFrameError: a Spark Connect session whose server has no extension.
        ShimError: the jar cannot be loaded.

    Example:
        >>> pyjoinopt.enable(spark, hints=False)    # doctest: +SKIP
    """
    keys = _keys(options)
    check_session(spark)
    extension.enable(spark, _of_application(keys))
    for key, value in {**keys, PREFIX + "enabled": "true"}.items():
        spark.conf.set(key, value)


def disable(spark: SparkSession) -> None:
    """Stop optimising the queries of this session; `enable` starts it again.

    Queries with the hint OPTIMIZE_JOINS are still optimised.
    """
    check_session(spark)
    spark.conf.set(PREFIX + "enabled", "false")


def is_enabled(spark: SparkSession) -> bool:
    """Whether the queries of this session are optimised."""
    check_session(spark)
    return extension.is_enabled(spark)


def last_reports(spark: SparkSession) -> list[JoinReport]:
    """The reports of the last plans of this session, up to 100, the oldest first.

    In SQL: `SELECT * FROM joinopt_report()`.
    """
    check_session(spark)
    return [JoinReport.from_dict(data) for data in extension.reports(spark)]


def _keys(options: dict[str, Any]) -> dict[str, str]:
    """Options as session keys.

    >>> _keys({"hints": False, "cost": "c_out"})
    {'spark.pyjoinopt.hints': 'false', 'spark.pyjoinopt.cost': 'c_out'}
    >>> _keys({"python": "/usr/bin/python3", "workers": 1})
    {'spark.pyjoinopt.python': '/usr/bin/python3', 'spark.pyjoinopt.workers': '1'}
    """
    of_workers, others = worker_settings(options)
    checked = check_keywords(others)
    for name in _NOT_OF_SESSIONS:
        if name in checked:
            raise ValueError(f"{name!r} is an option of optimize_joins(), not of a session")
    names = {option.name: option.key for option in OPTIONS}
    return {**of_workers, **{names[n]: str(v).lower() if isinstance(v, bool) else str(v) for n, v in checked.items()}}


def _of_application(keys: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in keys.items() if key in STATIC_KEYS}
