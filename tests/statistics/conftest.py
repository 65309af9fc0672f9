"""Stand-ins for classes that are not in Spark's jars, compiled when a test requests them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pyjoinopt.bridge.install import compile_scala, jars, java
from pyjoinopt.bridge.shim import add_jar, bridge_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCES = Path(__file__).parent.parent / "support" / "scala"


@pytest.fixture(scope="session")
def stand_in_classes(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The JVM's packages of Spark, with the stand-ins among them."""
    if spark.version < "4.1":
        pytest.skip("the stand-ins are of Spark 4.1 and later")
    jar = tmp_path_factory.mktemp("stand-ins") / "stand-ins.jar"
    compile_scala.compile_shim(jars.spark_home() / "jars", java.ensure_java(), sorted(SOURCES.glob("*.scala")), jar)
    bridge_for(spark.range(1))
    add_jar(spark.sparkContext._jvm, jar)
    return spark.sparkContext._jvm.org.apache.spark.sql


@pytest.fixture(scope="session")
def stand_ins(stand_in_classes: Any) -> Any:
    return stand_in_classes.delta.standin.StandIns
