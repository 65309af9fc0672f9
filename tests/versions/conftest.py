"""On the Spark that all other tests run on, these say nothing new: they are for `make test-versions`, and slow here."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    try:
        others = version("pyspark").startswith(("4.2.", "4.3."))
    except PackageNotFoundError:
        return
    for item in items:
        if others and HERE in item.path.parents:
            item.add_marker(pytest.mark.slow)
