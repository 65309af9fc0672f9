"""A session of its own for a trial: one core, no pictures, nothing said that is no error."""

from __future__ import annotations

from typing import Any


def quiet_session() -> Any:
    """The session; whoever asks for it stops it."""
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
    """A session of the Spark Connect server that SPARK_REMOTE names."""
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate()
