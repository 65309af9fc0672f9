"""Loads the shim into a running driver, without configuration or restart.

Spark's driver has a class loader that can be extended while it runs (`MutableURLClassLoader`, which `ADD JAR` uses).
The shim's jar is added to it once per JVM, and py4j can then call its public object.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from threading import Lock, local
from typing import Any

from pyjoinopt.bridge.install.jars import check_spark_version, find_jar
from pyjoinopt.errors import SessionError, ShimError, UnsupportedDataFrameError

_BRIDGE = "org.apache.spark.sql.pyjoinopt.PyJoinOptBridge"
_log = logging.getLogger("pyjoinopt")
_lock = Lock()
_loaded: tuple[Any, Any] | None = None  # (the py4j gateway it belongs to, the bridge object)
_context: tuple[Any, Any] | None = None  # (a JavaSparkContext, its SparkContext)
_thread = local()


def bridge_for(df: Any) -> Any:
    """The shim in the JVM that holds this DataFrame.

    Raises:
        UnsupportedDataFrameError: a Spark Connect DataFrame, or no DataFrame at all.
        SessionError: its session was stopped.
        ShimError: the shim cannot be loaded.
    """
    return bridge_of(_session_of(df))


def bridge_of(session: Any) -> Any:
    """The shim in the JVM of this session.

    Raises:
        UnsupportedDataFrameError: a Spark Connect session, or no session at all.
        SessionError: it was stopped.
        ShimError: the shim cannot be loaded.
    """
    global _loaded
    _check_classic(session)
    context = session.sparkContext
    gateway = context._gateway
    if context._jsc is None or gateway is None or _scala_context(context._jsc).isStopped():
        raise SessionError("this Spark session was stopped; start one and build its DataFrames again")
    _answer_at_once(gateway)
    with _lock:
        if _loaded is None or _loaded[0] is not gateway:
            _loaded = (gateway, _load(session, gateway.jvm))
        return _loaded[1]


def _scala_context(java_context: Any) -> Any:
    """The Scala context of a Java one; kept, because each call of `sc()` is a request and gives a new object."""
    global _context
    known = _context
    if known is None or known[0] is not java_context:
        known = _context = (java_context, java_context.sc())
    return known[1]


def forget() -> None:
    """Forget the shim of the last JVM."""
    global _loaded, _context
    _loaded = _context = None


def forget_samples() -> None:
    """Delete the samples in the memory of the last JVM, if it still runs."""
    if _loaded is not None:
        try:
            _loaded[1].forgetSamples()
        except Exception as error:
            _log.debug("the JVM has ended, and its samples with it: %s", error)


def session_setting(key: str, df: Any = None) -> dict[str, str]:
    """A setting of a DataFrame's session, or of the active one; empty if it is not set or there is no session."""
    try:
        from pyspark.sql import SparkSession

        session: Any = SparkSession.getActiveSession() if df is None else df.sparkSession
        value = session.conf.get(key, None)
        return {} if value is None else {key: value}
    except Exception as error:  # no pyspark, no session, or a stopped one
        _log.debug("no settings of a session: %s", error)
        return {}


def _answer_at_once(gateway: Any) -> None:
    """Set TCP_NODELAY on py4j's connection of this thread.

    py4j writes an answer in pieces of 8 kB. Without TCP_NODELAY a piece is delayed until the previous one is
    acknowledged, by default after 40 ms. An exported plan is longer than 8 kB.
    """
    if getattr(_thread, "gateway", None) is gateway:
        return
    _thread.gateway = gateway
    try:
        client = gateway.java_gateway_server.getCallbackClient()
        client.getPerThreadConnection().getSocket().setTcpNoDelay(True)
    except Exception as error:  # another kind of py4j connection, which is only slower
        _log.debug("py4j answers are still delayed: %s", error)


def _check_classic(of: Any) -> None:
    if type(of).__module__.startswith("pyspark.sql.connect"):
        raise UnsupportedDataFrameError(
            f"this is a Spark Connect {type(of).__name__}: its plans are on the server, where this process cannot read "
            "them; use a classic session (SparkSession.builder.master(...) without .remote(...))"
        )
    if not hasattr(of, "_jdf") and not hasattr(of, "_jsparkSession"):
        raise TypeError(f"expected a pyspark.sql.DataFrame or SparkSession, got {kind_of(of)}")


def _session_of(df: Any) -> Any:
    _check_classic(df)
    if not hasattr(df, "_jdf") or not hasattr(df, "sparkSession"):
        raise TypeError(f"expected a pyspark.sql.DataFrame, got {kind_of(df)}")
    return df.sparkSession


def check_session(session: Any) -> None:
    """Raise TypeError unless this is a session, classic or of Spark Connect."""
    if type(session).__name__ != "SparkSession" and not hasattr(session, "_jsparkSession"):
        raise TypeError(f"expected a pyspark.sql.SparkSession, got {kind_of(session)}")


def check_progress(progress: Any) -> None:
    """Raise TypeError unless this is True, False or None."""
    if progress not in (None, True, False):
        raise TypeError(f"progress is {progress!r}, but must be True, False, or None to draw it in a terminal")


def kind_of(of: Any) -> str:
    """The type of a wrong argument, and how to get the right one from it, if possible."""
    module = type(of).__module__
    kind = type(of).__qualname__ if module == "builtins" else f"{module}.{type(of).__qualname__}"
    if kind.startswith("pyspark.pandas."):
        return f"{kind}, which is pandas on Spark: pass its Spark DataFrame, .to_spark() (a Series: .to_frame() first)"
    if kind.startswith("pyspark.") and kind.endswith("Builder"):
        return f"{kind}: take its session, .getOrCreate()"
    if kind.endswith(".DataFrame") and kind.startswith("pyspark."):
        return f"{kind}: take its .sparkSession"
    if kind.startswith("pandas."):
        return f"{kind}: make a Spark DataFrame of it, spark.createDataFrame(...)"
    return kind


def _load(session: Any, jvm: Any) -> Any:
    version = session.version
    scala = str(jvm.scala.util.Properties.versionNumberString())
    check_spark_version(version)
    jar = None if _has_shim(jvm) else find_jar(version, scala, _spark_jars(jvm), _java(jvm))
    try:
        if jar is not None:
            add_jar(jvm, jar)
        shim = getattr(jvm, _BRIDGE)
        versions = json.loads(shim.version())
    except Exception as error:
        what = "the shim that Spark was started with" if jar is None else str(jar)
        advice = "" if jar is None else f" Start Spark with this jar: --jars {jar}, or spark.jars={jar}"
        raise ShimError(f"{what} could not be loaded into this JVM ({error}).{advice}") from error
    if versions["scala"] != ".".join(scala.split(".")[:2]):
        raise ShimError(
            f"the JVM runs Scala {scala} but has a shim for Scala {versions['scala']}; restart it without that jar"
        )
    return _Methods(shim)


class _Methods:
    """Caches the methods of a Java class, since py4j sends a request to the JVM for each lookup of a static method."""

    def __init__(self, of: Any) -> None:
        self._of = of

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._of, name)
        setattr(self, name, method)
        return method


def _has_shim(jvm: Any) -> bool:
    """Whether the JVM has the shim, as in a session that was started with the jar; it must not be loaded twice."""
    try:
        jvm.java.lang.Class.forName(_BRIDGE, False, jvm.java.lang.Thread.currentThread().getContextClassLoader())
    except Exception:
        return False
    return True


def add_jar(jvm: Any, jar: Path) -> None:
    """Add a jar to the class path of a running JVM."""
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    loader.addURL(jvm.java.io.File(str(jar)).toURI().toURL())


def _spark_jars(jvm: Any) -> Path | None:
    """The folder of the running Spark's own jars."""
    try:
        source = jvm.java.lang.Class.forName("org.apache.spark.sql.catalyst.plans.logical.LogicalPlan")
        location = source.getProtectionDomain().getCodeSource().getLocation().toURI()
        return Path(str(jvm.java.io.File(location).getParent()))
    except Exception:
        return None


def _java(jvm: Any) -> Path | None:
    """The java executable that runs the driver."""
    java = Path(str(jvm.java.lang.System.getProperty("java.home"))) / "bin" / "java"
    return java if java.exists() else None
