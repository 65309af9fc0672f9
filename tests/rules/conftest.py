"""Catalyst's own rules, for the tests that hold ours against them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.rules import generated
from tests.rules.oracle import Oracle
from tests.support.run import session_for_tiny_tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def oracle(spark: SparkSession) -> Iterator[Oracle]:
    from pyjoinopt.bridge.shim import bridge_for

    with Oracle(bridge_for(spark.range(1))) as opened:
        yield opened


@pytest.fixture(scope="session")
def tables(spark: SparkSession) -> SparkSession:
    """A session of its own with the tables of the generated queries."""
    session = session_for_tiny_tables(spark)
    generated.create_tables(session)
    return session
