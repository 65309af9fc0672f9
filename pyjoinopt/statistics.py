"""How many rows: where counts come from, what is known of columns, and estimates of everything above.

    pyjoinopt.statistics.show(df)            # what is known of the relations of a query, from where, how old
    pyjoinopt.statistics.forget(df)          # gather it anew next time
    pyjoinopt.statistics.register(source)    # a source of your own, asked before the others
    pyjoinopt.statistics.declare("orders", key="id")    # what no count can prove

`show` and `forget` are this room's front door for users. They cross to Spark, which nothing else in here does, so they
only hand on to `pyjoinopt.api.known_statistics`.
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
    """What is known of the relations that a query reads. Starts no Spark job.

    Args:
        df: a classic DataFrame.
        **options: as of `optimize_joins`; `statistics` and `store` matter here.

    Returns:
        A pandas DataFrame, a row a relation: `relation`, `format`, `rows`, `bytes`, `source`, `exact`, `age` (a
        timedelta; missing for what is known by looking now), `columns` (those of which something is known),
        `distinct` (column -> different values, by sketch or dictionary), `sample` (rows of its sample),
        `sample_columns`, `sample_age`, `keys` (declared or proved ones), `note`. Then a row for each join of which the
        true rows were counted when the query ran before: its `relation` is their names, its `source` "feedback".

    Raises:
        ValueError, TypeError: an unknown option, or a value that is not allowed.
        PyJoinOptError: no JVM behind the DataFrame.

    Example:
        >>> pyjoinopt.statistics.show(spark.table("orders"))    # doctest: +SKIP
    """
    from pyjoinopt.api import known_statistics

    return known_statistics.show(df, **options)


def forget(df: DataFrame | None = None, **options: Any) -> None:
    """Forget what the store remembers: of the relations of a query, or, without one, everything.

    Args:
        df: a classic DataFrame, or None.
        **options: `store` names another store than the session's.

    Example:
        >>> pyjoinopt.statistics.forget()    # doctest: +SKIP
    """
    from pyjoinopt.api import known_statistics

    known_statistics.forget(df, **options)
