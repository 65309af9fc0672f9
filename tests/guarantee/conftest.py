"""The session that the tests of the guarantee share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pyjoinopt.optimizer import alternatives
from tests.support import shop
from tests.support.run import session_for_tiny_tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> None:
    """Alternatives to a plan are taken wherever they are legal, whatever they cost."""
    monkeypatch.setattr(alternatives, "MARGIN", 1e-9)


@pytest.fixture(scope="session")
def shop_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder with the shop's Parquet files."""
    folder = tmp_path_factory.mktemp("shop")
    shop.write(folder)
    return str(folder)


@pytest.fixture(scope="session")
def db(spark: SparkSession, shop_folder: str) -> SparkSession:
    """A session of its own with the shop's tables as temporary views."""
    from pathlib import Path

    session = session_for_tiny_tables(spark)
    shop.register(session, Path(shop_folder))
    return session
