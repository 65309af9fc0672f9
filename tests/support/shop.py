"""A small database with a bad written join order, and the checks for the tests of the guarantee.

`lines ⋈ orders` over the region has 16,000 rows; joining `orders ⋈ vip` first gives a few. So a test that adds an
operator between, above or below these joins can also check whether the optimizer still reorders them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from tests.support.compare import assert_same_rows, assert_same_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    import pyjoinopt

TABLES = {
    "regions": "SELECT i::INT AS r_id, 'region ' || i AS r_name FROM range(5) t(i)",
    "customers": """SELECT i::INT AS c_id, CASE WHEN i % 9 <> 0 THEN (i % 5)::INT END AS c_region,
        CASE WHEN i % 7 <> 0 THEN 'name ' || (i % 13) END AS c_name FROM range(40) t(i)""",
    "orders": """SELECT i::INT AS o_id, CASE WHEN i % 11 <> 0 THEN (i % 40)::INT END AS o_customer,
        CASE WHEN i % 13 <> 0 THEN (i % 5)::INT END AS o_region,
        DATE '2024-01-01' + (i % 90)::INT AS o_day FROM range(200) t(i)""",
    "lines": """SELECT (i % 210)::INT AS l_order, (i % 5)::INT AS l_region,
        CASE WHEN i % 6 <> 0 THEN (i % 8)::INT END AS l_qty, (i % 16) / 4.0::DOUBLE AS l_price FROM range(400) t(i)""",
    "vip": "SELECT (i * 7 + 1)::INT AS v_customer, (i % 2)::INT AS v_rank FROM range(3) t(i)",
}
SLOW = "lines JOIN orders ON l_region = o_region JOIN vip ON v_customer = o_customer"


def write(folder: Path) -> None:
    """One Parquet file a table."""
    with duckdb.connect() as connection:
        for name, text in TABLES.items():
            connection.execute(f"COPY ({text}) TO '{(folder / name).as_posix()}.parquet'")


def register(spark: SparkSession, folder: Path) -> None:
    """One temporary view a table."""
    for name in TABLES:
        spark.read.parquet(str(folder / f"{name}.parquet")).createOrReplaceTempView(name)


def slow(spark: SparkSession) -> DataFrame:
    """The bad order as a frame, with all columns."""
    from pyspark.sql import functions as F

    lines, orders, vip = (spark.table(name) for name in ("lines", "orders", "vip"))
    return lines.join(orders, F.col("l_region") == F.col("o_region")).join(
        vip, F.col("v_customer") == F.col("o_customer")
    )


def optimised(df: DataFrame, **options: Any) -> tuple[DataFrame, pyjoinopt.JoinReport]:
    """The optimised frame and its report; every error and every refusal of the whole query is raised.

    Inner joins remain what they are: what is tested are the orders of joins as they are written.
    """
    fixed = {"strict": True, "cost": "c_out", "rewrites_without": "inner_to_semi_joins"}
    fast = df.optimize_joins(**{**fixed, **options})
    return fast, fast._pyjoinopt_report


def unharmed(df: DataFrame, *, reordered: bool, **options: Any) -> DataFrame:
    """Compare rows and schema of the optimised frame with the plain one, and return it.

    Args:
        df: the frame as written.
        reordered: whether a join group must get another order. An unchanged plan has the same rows too, so every
            check specifies whether that is allowed.
        **options: for `optimize_joins`.
    """
    fast, report = optimised(df, **options)
    assert_same_schema(df, fast)
    assert_same_rows(df, fast, label=("plain Spark", "optimised"))
    assert any(group.changed for group in report.groups) is reordered, report.to_text()
    return fast


def analysed(df: DataFrame) -> str:
    """The analysed plan as text."""
    return str(df._jdf.queryExecution().analyzed().toString())


def executed(df: DataFrame) -> str:
    """The physical plan as text."""
    return str(df._jdf.queryExecution().executedPlan().toString())


def joined_tables(df: DataFrame) -> list[str]:
    """The joins of the optimised logical plan as text, outermost first. Joins of cached plans are not included."""
    text = str(df._jdf.queryExecution().optimizedPlan().toString())
    lines = [line.strip(" :+-") for line in text.splitlines()]
    return [line for line in lines if line.startswith("Join ")]
