"""Whether two plans of a query have the same rows, run as they are."""

from __future__ import annotations

from typing import Any

from pyjoinopt.bridge.rule_of_thread import OFF, rule_of_thread
from pyjoinopt.util.same_rows import same_rows


def compare_rows(df: Any, other: Any, most: int) -> tuple[int, bool | None]:
    """Number of rows of a result, and whether both results have the same; None if only the counts are compared.

    Both are run as new queries: the DataFrames may be planned already, by the rule of their session.

    Args:
        df: the query as written.
        other: the same query with another plan.
        most: results with more rows are compared by their counts.
    """
    with rule_of_thread(df.sparkSession, OFF):
        count = df.count()
        if count > most:
            return count, None if other.count() == count else False
        return count, same_rows(df.select("*").collect(), other.select("*").collect())
