"""The session in which both rules are tested."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.guarantee.avoided_joins import tables
from tests.support.run import session_for_tiny_tables

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the small tables."""
    folder = tmp_path_factory.mktemp("spared")
    tables.write(folder)
    return folder


@pytest.fixture(scope="session")
def tiny(spark: SparkSession, folder: Path) -> SparkSession:
    """A session with views of the small tables."""
    session = session_for_tiny_tables(spark)
    tables.register(session, folder)
    return session
