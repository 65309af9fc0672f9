"""Whole sessions: `configure` a new one, `enable` a live one, and see what was done.

A session is served by Spark's own means: an extension puts a rule into the optimizer, and the rule asks a worker
process (`pyjoinopt/worker/serve.py`). So queries that never were a DataFrame in this process are optimised too: those
of spark-sql, of Scala programs, of Connect clients.

What belongs to the application (`config.STATIC_KEYS`) does not reach a live session through its configuration, which
clients can change, but through a call to the JVM, which only the driver's own Python can make.
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

#: Options of a single call that mean nothing to a session.
_NOT_OF_SESSIONS = ("strict",)


def configure(builder: Builder, **options: Any) -> Builder:
    """Let the session that this builder will create optimise all of its queries.

    Adds the jar to `spark.jars` and the extension to `spark.sql.extensions`, beside what the builder, the submit
    arguments or `spark-defaults.conf` have there. The session's key `spark.pyjoinopt.enabled` switches it off and on.
    With `.remote("sc://...")` the server has the extension, or has not: only the options are set, and `getOrCreate`
    raises `UnsupportedDataFrameError`, with what to add to the server, if it has not.

    Args:
        builder: a `SparkSession.builder`, with as many settings of its own as you like, before or after.
        **options: as of `optimize_joins`, but for `strict`; they become keys `spark.pyjoinopt.*`. Besides `python`,
            `pythonpath`, `workers`, `start_timeout` and `prestart`, see the keys of whole sessions in
            docs/configuration.md.

    Returns:
        The same builder. Its `getOrCreate` raises `SessionError` if the session came up without the extension, which
        Spark itself only warns about; most often because another session was running already.

    Raises:
        ValueError, TypeError: an unknown option, or a value that is not allowed. When the session is made: an option
            that belongs to the application, for a builder of a Spark Connect client.
        ShimError: there is no jar for the installed Spark and none can be made.

    Example:
        >>> spark = pyjoinopt.configure(SparkSession.builder.appName("mine")).getOrCreate()    # doctest: +SKIP
    """
    keys = _keys(options)
    if not callable(getattr(builder, "getOrCreate", None)) or not hasattr(builder, "_options"):
        running = "; for a session that runs already call pyjoinopt.enable(spark)" if hasattr(builder, "sql") else ""
        raise TypeError(f"expected a SparkSession.builder, got {kind_of(builder)}{running}")
    extension.configure(builder, keys, _of_application(keys))
    return builder


def enable(spark: SparkSession, **options: Any) -> None:
    """Optimise all queries of a live session from now on; no restart, no configuration.

    `spark.newSession()` starts without; enable it there too, or not. DataFrames made earlier are optimised as well,
    unless Spark has planned them already.

    Args:
        spark: a session. The server of a Spark Connect session must have been started with the extension.
        **options: as of `optimize_joins`, but for `strict`; they become keys `spark.pyjoinopt.*` of this
            session. Besides `python`, `pythonpath`, `workers`, `start_timeout` and `prestart`, see the keys of whole
            sessions in docs/configuration.md; an empty `python` is the application's again.

    Raises:
        ValueError, TypeError: an unknown option, or a value that is not allowed; an option that belongs to the
            application, for a Spark Connect session.
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
    """Leave the queries of this session as Spark plans them; `enable` takes it back.

    Queries that ask for it by the hint OPTIMIZE_JOINS are still optimised.
    """
    check_session(spark)
    spark.conf.set(PREFIX + "enabled", "false")


def is_enabled(spark: SparkSession) -> bool:
    """Whether the queries of this session are optimised."""
    check_session(spark)
    return extension.is_enabled(spark)


def last_reports(spark: SparkSession) -> list[JoinReport]:
    """What was done to the last plans of this session, up to 100, the oldest first.

    In SQL: `SELECT * FROM joinopt_report()`.
    """
    check_session(spark)
    return [JoinReport.from_dict(told) for told in extension.reports(spark)]


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
            raise ValueError(f"option {name!r} is one of optimize_joins(), not of a session")
    names = {option.name: option.key for option in OPTIONS}
    return {**of_workers, **{names[n]: str(v).lower() if isinstance(v, bool) else str(v) for n, v in checked.items()}}


def _of_application(keys: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in keys.items() if key in STATIC_KEYS}
