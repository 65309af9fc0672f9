"""The session extension, seen from Python: into a builder, into a live session, and is it there?"""

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
    serves_elsewhere,
    start_jvm,
    told_elsewhere,
    withdraw,
)
from pyjoinopt.bridge.install.jars import jar_for_version
from pyjoinopt.bridge.shim import add_jar, bridge_of
from pyjoinopt.errors import SessionError, UnsupportedDataFrameError

EXTENSION = "org.apache.spark.sql.pyjoinopt.PyJoinOptExtensions"
_PACKAGES = str(Path(__file__).resolve().parent.parent.parent)
_log = logging.getLogger("pyjoinopt")


def configure(builder: Any, keys: dict[str, str], application: dict[str, str]) -> None:
    """Add the extension and these keys to a builder, and a check to its `getOrCreate`.

    Args:
        builder: a `SparkSession.builder`.
        keys: all settings.
        application: those of them that belong to the application. A session that runs already gets them by `_give`.
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
        if serves_elsewhere(builder._options):  # perhaps only since we were called
            _check_remote(application)
            withdraw(builder, ours)
            for key in set_by_us:
                builder._options.pop(key, None)
        else:
            jvm = start_jvm(builder, ours)
            append(builder, ours, told_elsewhere(jvm))  # keys may have been set after us, too
            if jvm is not None:  # it may have been started by others, and takes a jar at any time
                add_jar(jvm, Path(ours[JARS]))
        session = create()
        _check(session)
        _give(session, application)
        return session

    builder.getOrCreate = get_or_create


def enable(session: Any, application: dict[str, str]) -> None:
    """Put the rule into a live session, and tell the JVM which Python to use where no key says.

    The server of a Connect session has it, or has not.

    Args:
        session: of any kind.
        application: settings that belong to the application.
    """
    if is_connect(session):
        _check_remote(application)
        check_server(session)
        return
    _give(session, application)  # first, for a worker is started with them
    bridge_of(session).enable(session._jsparkSession, sys.executable, _PACKAGES)


def _give(session: Any, application: dict[str, str]) -> None:
    """Hand settings of the application to the JVM of a classic session."""
    if application and not is_connect(session):
        bridge_of(session).setApplicationSettings(session._jsparkSession, json.dumps(application))


def _check_remote(application: dict[str, str]) -> None:
    """Raise ValueError where a client of a server sets what is not its own."""
    refused = [key for key, value in application.items() if (key, value) != ("spark.pyjoinopt.store", "off")]
    if refused:
        raise ValueError(
            f"on Spark Connect {', '.join(refused)} cannot be set by a client: whoever starts the server sets it, with "
            f"--conf {refused[0]}=... (a client may switch the store off: store='off')"
        )


def is_enabled(session: Any) -> bool:
    """Whether the rule is there and switched on."""
    if is_connect(session):
        on = session.conf.get("spark.pyjoinopt.enabled", "true")
        return is_there(session) and str(on).strip().lower() == "true"
    return bool(bridge_of(session).isEnabled(session._jsparkSession))


def reports(session: Any, after: int = 0) -> list[dict[str, Any]]:
    """The reports that the JVM keeps of a session; of a classic one those whose numbers are greater than `after`."""
    if is_connect(session):
        check_server(session)
        told = session.sql("SELECT DISTINCT number, report FROM joinopt_report() ORDER BY number").collect()
        return [json.loads(row.report) for row in told]
    return list(json.loads(bridge_of(session).reports(session._jsparkSession, after)))


def is_connect(session: Any) -> bool:
    """Is this a Spark Connect session, with everything on a server?"""
    return type(session).__module__.startswith("pyspark.sql.connect")


def is_there(session: Any) -> bool:
    """Does a session have the extension? A Connect session is asked in SQL, for nothing else reaches its server.

    Raises:
        Exception: what Spark raises if its server cannot be asked.
    """
    if not is_connect(session):
        return bool(bridge_of(session).isPresent(session._jsparkSession))
    try:
        session.sql("SELECT joinopt_version()").collect()
    except Exception as error:
        if "UNRESOLVED_ROUTINE" not in str(error):  # a lost connection, say
            raise
        _log.debug("the server does not know pyjoinopt: %s", error)
        return False
    return True


def check_server(session: Any) -> None:
    """Raise UnsupportedDataFrameError unless the server of a Connect session has the extension."""
    if not is_there(session):
        raise UnsupportedDataFrameError(
            "the Spark Connect server runs without pyjoinopt, and no client can add it. Whoever starts it adds the jar "
            "and the extension: "
            f'--jars "$(python -m pyjoinopt jar)" --conf spark.sql.extensions={EXTENSION} '
            "--conf spark.pyjoinopt.python=PYTHON, a Python there that has pyjoinopt"
        )


def _check(session: Any) -> None:
    if is_connect(session):
        check_server(session)
    if is_there(session):
        return
    raise SessionError(
        "the session came up without the extension of pyjoinopt: another session was running already, or Spark could "
        "not load the class (see its warnings). Stop the other one first (spark.stop()), or use the one that you have: "
        "pyjoinopt.enable(spark)"
    )


def _python() -> dict[str, str]:
    """The Python that runs this, and where its pyjoinopt is: the worker will be the same."""
    return {"spark.pyjoinopt.python": sys.executable, "spark.pyjoinopt.pythonpath": _PACKAGES}
