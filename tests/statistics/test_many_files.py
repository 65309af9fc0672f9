"""A table of 100,000 files: bounded time, bounded reading, and a count that is near."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pyjoinopt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow
FILES = 100_000


def test_a_hundred_thousand_files(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "many"
    spark.range(1000).coalesce(1).write.parquet(str(path))
    (one,) = path.glob("*.parquet")
    for number in range(FILES - 1):
        os.link(one, path / f"part-x{number}.parquet")
    df = spark.read.schema("id BIGINT").parquet(str(path))
    store = str(tmp_path / "store.sqlite")
    for _ in range(2):
        started = time.perf_counter()
        (row,) = pyjoinopt.statistics.show(df.where("id > 3"), store=store).to_dict("records")
        seconds = time.perf_counter() - started
        assert row["rows"] == pytest.approx(1000 * FILES, rel=0.01) and not row["exact"]
        assert seconds < 10, "two identities of 100,000 files, at most 64 footers"
