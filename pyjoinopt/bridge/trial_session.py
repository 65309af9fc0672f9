"""Sessions for the doctor: a local session with one core, without UI and with errors only in its log."""

from __future__ import annotations

from typing import Any


def quiet_session() -> Any:
    """A new local session; the caller must stop it."""
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.log.level": "ERROR",
    }
    builder = SparkSession.builder.master("local[1]").appName("pyjoinopt doctor")
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def remote_session() -> Any:
    """A session on the Spark Connect server that SPARK_REMOTE names."""
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate()
