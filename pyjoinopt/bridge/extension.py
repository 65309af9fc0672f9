"""The session extension, seen from Python: into a builder, into a live session, and is it there?"""

from __future__ import annotations

import json
import logging
import os
import shlex
import sys
from pathlib import Path
from typing import Any

from pyjoinopt.bridge.jars import jar_for_version, spark_home
from pyjoinopt.bridge.shim import add_jar, bridge_of
from pyjoinopt.errors import SessionError, UnsupportedDataFrameError

EXTENSION = "org.apache.spark.sql.pyjoinopt.PyJoinOptExtensions"
_PACKAGES = str(Path(__file__).resolve().parent.parent.parent)
_log = logging.getLogger("pyjoinopt")


def configure(builder: Any, keys: dict[str, str]) -> None:
    """Add the extension and these keys to a builder, and a check to its `getOrCreate`."""
    jar = str(jar_for_version())
    _add(builder, jar)
    for key, value in {**_python(), **keys}.items():
        if key in keys or key not in builder._options:
            builder.config(key, value)
    create = builder.getOrCreate

    def get_or_create() -> Any:
        _add(builder, jar)  # somebody may have set the same keys after us
        _into_running_jvm(jar)
        session = create()
        _check(session)
        return session

    builder.getOrCreate = get_or_create


def enable(session: Any) -> None:
    """Put the rule into a live session, and tell the JVM which Python to use where no key says.

    The server of a Connect session has it, or has not.
    """
    if is_connect(session):
        check_server(session)
        return
    bridge_of(session).enable(session._jsparkSession, sys.executable, _PACKAGES)


def is_enabled(session: Any) -> bool:
    """Whether the rule is there and switched on."""
    if is_connect(session):
        on = session.conf.get("spark.pyjoinopt.enabled", "true")
        return is_there(session) and str(on).strip().lower() == "true"
    return bool(bridge_of(session).isEnabled(session._jsparkSession))


def reports(session: Any) -> list[dict[str, Any]]:
    """The reports that the JVM keeps of a session."""
    if is_connect(session):
        check_server(session)
        told = session.sql("SELECT DISTINCT number, report FROM joinopt_report() ORDER BY number").collect()
        return [json.loads(row.report) for row in told]
    return list(json.loads(bridge_of(session).reports(session._jsparkSession)))


def is_connect(session: Any) -> bool:
    """Is this a Spark Connect session, with everything on a server?"""
    return type(session).__module__.startswith("pyspark.sql.connect")


def is_there(session: Any) -> bool:
    """Does a session have the extension? A Connect session is asked in SQL, for nothing else reaches its server."""
    if not is_connect(session):
        return bool(bridge_of(session).isPresent(session._jsparkSession))
    try:
        session.sql("SELECT joinopt_version()").collect()
    except Exception as error:
        _log.debug("the server does not know pyjoinopt: %s", error)
        return False
    return True


def check_server(session: Any) -> None:
    """Raise UnsupportedDataFrameError unless the server of a Connect session has the extension."""
    if not is_there(session):
        raise UnsupportedDataFrameError(
            "the Spark Connect server runs without pyjoinopt. Whoever starts it adds the jar and the extension: "
            f'--jars "$(python -m pyjoinopt jar)" --conf spark.sql.extensions={EXTENSION}'
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


def _add(builder: Any, jar: str) -> None:
    for key, value in (("spark.jars", jar), ("spark.sql.extensions", EXTENSION)):
        set_already = builder._options.get(key) or _set_elsewhere(key)
        listed = [part for part in (set_already or "").split(",") if part.strip()]
        if value not in (part.strip() for part in listed):
            builder.config(key, ",".join([*listed, value]))


def _set_elsewhere(key: str) -> str | None:
    """What the submit arguments or spark-defaults.conf say, which a builder's setting would hide."""
    arguments = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
    found = None
    for flag, value in zip(arguments, arguments[1:], strict=False):
        if flag == "--jars" and key == "spark.jars":
            found = value
        elif flag in ("--conf", "-c") and value.startswith(key + "="):
            found = found or value.partition("=")[2]
    return found or _default(key)


def _default(key: str) -> str | None:
    home = spark_home()
    folder = os.environ.get("SPARK_CONF_DIR") or (home / "conf" if home else None)
    file = Path(folder) / "spark-defaults.conf" if folder else None
    if file is None or not file.is_file():
        return None
    for line in file.read_text(errors="replace").splitlines():
        name, _, value = line.strip().replace("=", " ", 1).partition(" ")
        if name == key:
            return value.strip()
    return None


def _into_running_jvm(jar: str) -> None:
    """A JVM that a stopped session left behind takes no more settings, but it takes a jar."""
    try:
        from pyspark import SparkContext
    except ImportError:
        return
    gateway = SparkContext._gateway
    if gateway is not None:
        add_jar(gateway.jvm, Path(jar))
