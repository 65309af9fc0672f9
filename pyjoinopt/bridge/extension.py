"""The session extension: adds it to a builder or to a running session, and checks that it is there."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any

from pyjoinopt.bridge.builder_conf import (
    EXTENSIONS,
    JARS,
    append,
    inherited_lists,
    serves_elsewhere,
    start_jvm,
    withdraw,
)
from pyjoinopt.bridge.install.jars import jar_for_version
from pyjoinopt.bridge.shim import add_jar, bridge_of
from pyjoinopt.errors import SessionError, UnsupportedDataFrameError

EXTENSION = "org.apache.spark.sql.pyjoinopt.PyJoinOptExtensions"
_STORE_FUNCTIONS = "spark.pyjoinopt.storeFunctions"
_PACKAGES = str(Path(__file__).resolve().parent.parent.parent)
_log = logging.getLogger("pyjoinopt")


def configure(builder: Any, keys: dict[str, str], application: dict[str, str]) -> None:
    """Add the extension and these keys to a builder, and a check to its `getOrCreate`.

    Args:
        builder: a `SparkSession.builder`.
        keys: all settings.
        application: those that only the application may set. A running session gets them by `_set_application`.
    """
    create = builder.getOrCreate
    set_by_us: dict[str, str] = {}
    ours: dict[str, str] = {}
    for key, value in keys.items():
        builder.config(key, value)
    if not serves_elsewhere(builder._options):
        ours = {JARS: str(jar_for_version()), EXTENSIONS: EXTENSION}
        append(builder, ours)
        set_by_us = {key: value for key, value in _python().items() if key not in builder._options}
        for key, value in set_by_us.items():
            builder.config(key, value)

    def get_or_create() -> Any:
        if serves_elsewhere(builder._options):  # the builder may have changed since
            _check_remote(application)
            withdraw(builder, ours)
            for key in set_by_us:
                builder._options.pop(key, None)
        else:
            jvm = start_jvm(builder, ours)
            append(builder, ours, inherited_lists(jvm))  # keys may have been set meanwhile
            if jvm is not None:  # a running JVM takes a jar at any time
                add_jar(jvm, Path(ours[JARS]))
        session = create()
        _check(session)
        _set_application(session, application)
        return session

    builder.getOrCreate = get_or_create


def enable(session: Any, application: dict[str, str]) -> None:
    """Add the rule to a running session, and set the Python to use if no key names one.

    For a Connect session it only checks that the server has the extension.

    Args:
        session: classic or of Spark Connect.
        application: settings that only the application may set.
    """
    if is_connect(session):
        _check_remote(application)
        check_server(session)
        return
    _set_application(session, application)  # before enable, which starts a worker with them
    bridge_of(session).enable(session._jsparkSession, sys.executable, _PACKAGES)


def _set_application(session: Any, application: dict[str, str]) -> None:
    """Pass settings of the application to the JVM of a classic session.

    Its SQL may show the store, unless the application decides about that: this Python could read the file itself.
    """
    if is_connect(session):
        return
    shown = {} if session.sparkContext.getConf().get(_STORE_FUNCTIONS) else {_STORE_FUNCTIONS: "true"}
    bridge_of(session).setApplicationSettings(session._jsparkSession, json.dumps({**shown, **application}))


def _check_remote(application: dict[str, str]) -> None:
    """Raise ValueError if a client of a server sets keys that only the application may set."""
    refused = [key for key, value in application.items() if (key, value) != ("spark.pyjoinopt.store", "off")]
    if refused:
        raise ValueError(
            f"on Spark Connect {', '.join(refused)} cannot be set by a client. Set it where the server is started, "
            f"with --conf {refused[0]}=... (a client may switch the store off: store='off')"
        )


def is_enabled(session: Any) -> bool:
    """Whether the session has the extension and it is switched on."""
    if is_connect(session):
        on = session.conf.get("spark.pyjoinopt.enabled", "true")
        return is_there(session) and str(on).strip().lower() == "true"
    return bool(bridge_of(session).isEnabled(session._jsparkSession))


def reports(session: Any, after: int = 0) -> list[dict[str, Any]]:
    """The JVM's reports of a session; for a classic session only those with numbers greater than `after`."""
    if is_connect(session):
        check_server(session)
        rows = session.sql("SELECT DISTINCT number, report FROM joinopt_report() ORDER BY number").collect()
        return [json.loads(row.report) for row in rows]
    return list(json.loads(bridge_of(session).reports(session._jsparkSession, after)))


def is_connect(session: Any) -> bool:
    """Whether this is a Spark Connect session or DataFrame."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def is_there(session: Any) -> bool:
    """Whether a session has the extension. For a Connect session it runs an SQL function of the extension.

    Raises:
        Exception: Spark's error if the server cannot be reached.
    """
    if not is_connect(session):
        return bool(bridge_of(session).isPresent(session._jsparkSession))
    try:
        session.sql("SELECT joinopt_version()").collect()
    except Exception as error:
        if "UNRESOLVED_ROUTINE" not in str(error):  # such as a lost connection
            raise
        _log.debug("the server has no extension: %s", error)
        return False
    return True


def check_server(session: Any) -> None:
    """Raise UnsupportedDataFrameError unless the server of a Connect session has the extension."""
    if not is_there(session):
        raise UnsupportedDataFrameError(
            "the Spark Connect server runs without pyjoinopt, and clients cannot add it. Start the server with the jar "
            "and the extension: "
            f'--jars "$(python -m pyjoinopt jar)" --conf spark.sql.extensions={EXTENSION} '
            "--conf spark.pyjoinopt.python=PYTHON, a Python on the server in which pyjoinopt is installed"
        )


def _check(session: Any) -> None:
    if is_connect(session):
        check_server(session)
    if is_there(session):
        return
    raise SessionError(
        "the session has no extension of pyjoinopt: another session was running already, or Spark could not load the "
        "class (see its warnings). Stop the other session first (spark.stop()), or enable it: pyjoinopt.enable(spark)"
    )


def _python() -> dict[str, str]:
    """Settings by which workers use this Python and this pyjoinopt."""
    return {"spark.pyjoinopt.python": sys.executable, "spark.pyjoinopt.pythonpath": _PACKAGES}
