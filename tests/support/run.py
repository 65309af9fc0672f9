"""Running two frames side by side: planning is single-threaded, so two threads use a small machine better than one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row


def collect_both(first: DataFrame, second: DataFrame) -> tuple[list[Row], list[Row]]:
    """The rows of both frames, collected at the same time.

    Raises:
        Exception: whatever the first of them raises.
    """
    if first is second:
        rows = first.collect()
        return rows, rows
    with ThreadPoolExecutor(max_workers=1) as pool:
        ahead = pool.submit(first.collect)
        rows = second.collect()
        return ahead.result(), rows
