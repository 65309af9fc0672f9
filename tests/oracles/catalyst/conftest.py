"""Catalyst's own rules, for the tests that compare ours with them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.oracles.catalyst import generated
from tests.oracles.catalyst.oracle import Oracle
from tests.support import tpc
from tests.support.run import session_for_tiny_tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def oracle(spark: SparkSession) -> Iterator[Oracle]:
    with Oracle(spark) as opened:
        yield opened


@pytest.fixture(scope="session")
def tables(spark: SparkSession) -> SparkSession:
    """A session of its own with the tables of the generated queries."""
    session = session_for_tiny_tables(spark)
    generated.create_tables(session)
    return session


@pytest.fixture(params=["tpch", pytest.param("tpcds", marks=pytest.mark.slow)])
def analysed(request: pytest.FixtureRequest, spark: SparkSession) -> tuple[str, SparkSession]:
    """A session with the tables of one benchmark in a catalog, with statistics of every column."""
    benchmark = request.param
    session = spark.newSession()
    session.sql(f"CREATE DATABASE IF NOT EXISTS analysed_{benchmark}")
    session.sql(f"USE analysed_{benchmark}")
    for file in sorted(tpc.parquet_folder(benchmark).glob("*.parquet")):
        session.sql(f"CREATE TABLE IF NOT EXISTS {file.stem} USING parquet OPTIONS (path '{file.as_posix()}')")
        session.sql(f"ANALYZE TABLE {file.stem} COMPUTE STATISTICS FOR ALL COLUMNS")
    return benchmark, session
