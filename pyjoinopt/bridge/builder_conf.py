"""Lists of jars and extensions of a builder, merged with those of the submit arguments and Spark's defaults.

A builder's `spark.jars` replaces all others: those of `--jars`, and those that `--packages` has fetched. A running JVM
has the complete list, and it runs before there is a session: `spark-submit job.py` has started it, or this module
starts it, as PySpark would a moment later.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pyjoinopt.bridge.install.jars import spark_home
from pyjoinopt.bridge.install.java import installed_client_version, installed_spark_version

JARS = "spark.jars"
EXTENSIONS = "spark.sql.extensions"


def start_jvm(builder: Any, ours: dict[str, str]) -> Any:
    """The JVM of the session to be created, started if necessary; None for a session of Spark Connect.

    Args:
        builder: a `SparkSession.builder`.
        ours: our entries in its lists; the JVM starts without them, so that its lists contain the other entries.
    """
    try:
        from pyspark import SparkConf, SparkContext
    except ImportError:  # pyspark-client
        return None
    if SparkContext._gateway is None and not _is_connect_mode(builder._options):
        conf = SparkConf()
        for key, value in builder._options.items():
            kept = ",".join(_without(_listed(value), ours[key])) if key in ours else value
            if kept or key not in ours:
                conf.set(key, kept)
        SparkContext._ensure_initialized(conf=conf)
    gateway = SparkContext._gateway
    return None if gateway is None else gateway.jvm


def append(builder: Any, ours: dict[str, str], inherited: dict[str, str] | None = None) -> None:
    """Append our entries to the builder's lists, after its own entries and the inherited ones.

    In Spark a builder's setting replaces an inherited one, which is used only if the builder has none. Jars are an
    exception: jars that `--packages` has fetched are always needed.
    """
    for key, value in ours.items():
        own = _without(_listed(builder._options.get(key)), value)
        theirs = _without(_listed((inherited or {}).get(key)), value)
        known = set(map(_plain, theirs))
        listed = theirs + [part for part in own if _plain(part) not in known] if key == JARS else own or theirs
        builder.config(key, ",".join([*listed, value]))


def withdraw(builder: Any, ours: dict[str, str]) -> None:
    """Remove our entries from the builder's lists; a running server does not use them."""
    for key, value in ours.items():
        kept = ",".join(_without(_listed(builder._options.get(key)), value))
        if kept:
            builder.config(key, kept)
        else:
            builder._options.pop(key, None)


def inherited_lists(jvm: Any) -> dict[str, str]:
    """The lists that the JVM was started with; without a JVM those of the submit arguments and Spark's defaults."""
    if jvm is None:
        found = {key: _submitted(key) or _default(key) for key in (JARS, EXTENSIONS)}
    else:
        found = {key: jvm.java.lang.System.getProperty(key) for key in (JARS, EXTENSIONS)}
    return {key: str(value) for key, value in found.items() if value is not None}


def _listed(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def _without(parts: list[str], ours: str) -> list[str]:
    return [part for part in parts if _plain(part) != _plain(ours)]


def _plain(part: str) -> str:
    """The path of a local file, however its URI is written.

    >>> _plain("file:///tmp/a.jar") == _plain("/tmp/a.jar") == _plain("file:/tmp/a.jar")
    True
    """
    split = urlsplit(part)
    return os.path.abspath(split.path) if split.scheme in ("", "file") else part


def serves_elsewhere(options: dict[str, Any]) -> bool:
    """Whether the session of these options belongs to a running Spark Connect server.

    With a `remote` such as local[2] PySpark starts the server itself, with the builder's settings.
    """
    if installed_spark_version() is None and installed_client_version() is not None:
        return True
    url = options.get("spark.remote") or os.environ.get("SPARK_REMOTE") or ""
    return str(url).startswith("sc://")


def _is_connect_mode(options: dict[str, Any]) -> bool:
    """Whether PySpark will create a Connect session; the same logic as PySpark's."""
    from pyspark import util

    if "spark.remote" in options or "SPARK_REMOTE" in os.environ or "SPARK_CONNECT_MODE_ENABLED" in os.environ:
        return True
    mode = str(options.get("spark.api.mode") or os.environ.get("SPARK_API_MODE", "")).lower()
    if mode not in ("classic", "connect"):
        mode = getattr(util, "default_api_mode", lambda: "classic")()
    return mode == "connect"


def _submitted(key: str) -> str | None:
    arguments = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
    found = None
    for flag, value in zip(arguments, arguments[1:], strict=False):
        if flag == "--jars" and key == JARS:
            found = value
        elif flag in ("--conf", "-c") and value.startswith(key + "="):
            found = found or value.partition("=")[2]
    return found


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
