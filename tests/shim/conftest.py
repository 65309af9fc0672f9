from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.shim.support import Shim

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def shim(spark: SparkSession) -> Iterator[Shim]:
    from pyjoinopt.bridge.shim import bridge_for

    opened = Shim(spark, bridge_for(spark.range(1)))
    yield opened
    opened.close()
