"""Local sessions of this package's own commands: without UI, and with errors only in the log."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.log.level": "ERROR",
}


def local_session(
    name: str, settings: Mapping[str, str], master: str = "local[*]", log: Path | None = None
) -> Any:
    """A new local session; the caller must stop it.

    Args:
        settings: in addition to those that keep it quiet.
        log: a file for what the JVM prints while it starts; it is printed if the JVM does not start.
    """
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName(name)
    for key, value in {**_QUIET, **settings}.items():
        builder = builder.config(key, value)
    if log is None:
        return builder.getOrCreate()
    with _stderr_to(log):
        return builder.getOrCreate()


@contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    """Redirect the stderr of a JVM that starts in this block to a file; print it if the block fails."""
    sys.stderr.flush()
    screen = os.dup(2)
    try:
        with log.open("w") as file:
            os.dup2(file.fileno(), 2)
        yield
    except BaseException:
        os.write(screen, log.read_bytes())
        raise
    finally:
        os.dup2(screen, 2)
        os.close(screen)


def quiet_session() -> Any:
    """A new local session with one core, for the doctor; the caller must stop it."""
    return local_session("pyjoinopt doctor", {"spark.sql.shuffle.partitions": "2"}, "local[1]")


def remote_session() -> Any:
    """A session on the Spark Connect server that SPARK_REMOTE names."""
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate()
