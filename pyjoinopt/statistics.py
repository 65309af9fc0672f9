"""Public functions to show, delete, add and declare statistics of relations.

    pyjoinopt.statistics.show(df)            # statistics of the relations of a query, with source and age
    pyjoinopt.statistics.forget(df)          # deletes the stored statistics of these relations
    pyjoinopt.statistics.register(source)    # adds a source of your own, used before the others
    pyjoinopt.statistics.declare("orders", key="id")    # declares a key that cannot be counted

The implementation of `show` and `forget` is `pyjoinopt.api.known_statistics`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyjoinopt.estimation.sources.declared_keys import declare, forget_declared
from pyjoinopt.estimation.sources.registry import (
    Column,
    Files,
    Known,
    Relation,
    StatisticsSource,
    register,
    registered,
    unregister,
)
from pyjoinopt.feedback.match_metrics import Observation

if TYPE_CHECKING:
    import pandas
    from pyspark.sql import DataFrame

__all__ = [
    "Column", "Files", "Known", "Observation", "Relation", "StatisticsSource", "declare", "forget",
    "forget_declared", "register", "registered", "show", "unregister",
]  # fmt: skip


def show(df: DataFrame, **options: Any) -> pandas.DataFrame:
    """The statistics of the relations that a query reads. Starts no Spark job.

    Args:
        df: a classic DataFrame.
        **options: options of `optimize_joins`; `statistics` and `store` affect the result.

    Returns:
        A pandas DataFrame with one row per relation: `relation`, `format`, `rows`, `bytes`, `source`, `exact`, `age` (a
        timedelta; missing for statistics that were read now), `columns` (columns with statistics), `distinct` (column
        -> number of distinct values, by sketch or dictionary), `sample` (rows of its sample), `sample_columns`,
        `sample_age`, `keys` (declared or proved keys), `note`. Then one row for each join whose true rows were counted
        in an earlier run: its `relation` has the names of its relations, its `source` is "feedback".

    Raises:
        ValueError, TypeError: an unknown option, or a value that is not allowed.
        PyJoinOptError: the DataFrame has no JVM.

    Example:
        >>> pyjoinopt.statistics.show(spark.table("orders"))    # doctest: +SKIP
    """
    from pyjoinopt.api import known_statistics

    return known_statistics.show(df, **options)


def forget(df: DataFrame | None = None, **options: Any) -> None:
    """Delete stored statistics: of the relations of a query, or, without one, all.

    Args:
        df: a classic DataFrame, or None.
        **options: `store`, to use another store than the session's.

    Example:
        >>> pyjoinopt.statistics.forget()    # doctest: +SKIP
    """
    from pyjoinopt.api import known_statistics

    known_statistics.forget(df, **options)
