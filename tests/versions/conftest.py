"""These tests are for `make test-versions`. On the Spark of all other tests they are redundant, and marked as slow."""

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
