"""JVM entry points for tests and benchmarks only: Catalyst's own rules, plans at other stages, timings.

Their source is `jvm_shim/oracle/`. It is compiled on first use, with the compiler among PySpark's jars, into
`jvm_shim/.build/`, which is no part of a distribution.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import filelock

from pyjoinopt.bridge.install import compile_scala, jars, java
from pyjoinopt.bridge.shim import add_jar, bridge_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "jvm_shim" / "oracle"
BUILD = ROOT / "jvm_shim" / ".build"
BRIDGE = "org.apache.spark.sql.pyjoinopt.OracleBridge"

_loaded: tuple[Any, Any] | None = None  # (the py4j gateway it belongs to, the bridge object)


def oracle_of(session: SparkSession) -> Any:
    """The object `OracleBridge` in the JVM of this session."""
    global _loaded
    bridge_of(session)  # the oracle's classes need those of the shim
    gateway: Any = session.sparkContext._gateway
    if _loaded is None or _loaded[0] is not gateway:
        add_jar(gateway.jvm, oracle_jar(session.version))
        _loaded = (gateway, getattr(gateway.jvm, BRIDGE))
    return _loaded[1]


def oracle_for(df: DataFrame) -> Any:
    """The object `OracleBridge` in the JVM of this DataFrame."""
    return oracle_of(df.sparkSession)


def oracle_jar(spark_version: str) -> Path:
    """The jar of the oracle for the installed Spark, compiled now if its source or the shim's has changed."""
    home = jars.spark_home()
    assert home is not None, "pyspark is not installed"
    spark_jars, sources = home / "jars", sorted(SOURCES.glob("*.scala"))
    scala = jars.scala_binary_version(jars.scala_version_of(spark_jars))
    shim = jars.find_jar(spark_version, scala, spark_jars)
    digest = hashlib.sha256(f"{jars.jar_source_hash(shim)}".encode())
    for source in sources:
        digest.update(source.read_bytes())
    jar = BUILD / f"pyjoinopt-oracle-{spark_version}_{scala}.jar"
    BUILD.mkdir(exist_ok=True)
    with filelock.FileLock(f"{jar}.lock", timeout=compile_scala.COMPILE_SECONDS):
        if jars.jar_source_hash(jar) != digest.hexdigest():
            compile_scala.compile_shim(
                spark_jars, java.ensure_java(), sources, jar, digest.hexdigest(), class_path=[shim], lint=True
            )
    return jar
