"""What tests of early aggregates have in common."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.prefilters import checked
from tests.support.run import session_for_tiny_tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: With these constants an early aggregate pays for tables of a few rows.
FREE = str(Path(__file__).parent / "free_aggregates.json")
#: Facts have NULLs, keys without a partner, repetitions, and groups in which all values are NULL; `d.id` is no key.
TABLES = {
    "f": """select if(id % 11 = 0, null, cast(id % 23 as int)) as k, cast(id % 7 as int) as g,
        if(id % 5 = 0 or id % 7 = 3, null, cast(id % 13 - 3 as int)) as v, concat('t', id % 9) as s,
        if(id % 6 = 0, null, cast(id % 5 as double)) as x, if(id = 7, 9000000000000000000, id) as b,
        if(id % 8 = 0, null, id * 1000) as i64,
        30000000000000 - id as i45,
        if(id % 4 = 1, null, cast(id % 50 - 20 as decimal(7, 2)) / 10) as m,
        if(id % 4 = 2, null, cast(id % 50 - 20 as decimal(28, 4))) as m28,
        cast(id % 50 as decimal(29, 4)) as m29, cast(id % 50 as decimal(38, 4)) as m38,
        cast(concat('b', id % 3) as binary) as y, date_add(DATE '2020-01-01', cast(id % 10 as int)) as t,
        id % 3 = 0 as q, cast(id % 100 as tinyint) as i8, cast(id % 100 as smallint) as i16 from range(300)""",
    "d": """select if(id % 17 = 5, null, cast(id % 29 as int)) as id, concat('n', id % 8) as n,
        if(id % 9 = 0, null, cast(id % 6 as int)) as w, concat('t', id % 12) as ds, cast(id % 6 as double) as dx,
        cast(concat('b', id % 4) as binary) as dy from range(40)""",
    "e": "select if(id % 5 = 0, null, cast(id % 12 as int)) as k, cast(id % 4 as int) as z from range(20)",
    "nothing": "select cast(id as int) as id, 'n1' as n from range(0)",
}


def session_with(spark: SparkSession, folder: Path, tables: Mapping[str, str] = TABLES) -> SparkSession:
    """A session with tables of one file each."""
    session = session_for_tiny_tables(spark)
    for name, text in tables.items():
        session.sql(text).coalesce(1).write.parquet(str(folder / name))
        session.read.parquet(str(folder / name)).createOrReplaceTempView(name)
    return session


def early_aggregates(session: SparkSession, text: str, **options: object) -> list[str]:
    """The early aggregates of a query, after rows and schema were compared with plain Spark's."""
    return checked(session.sql(text), **options).eager_aggregations
