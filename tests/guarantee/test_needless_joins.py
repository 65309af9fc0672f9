"""Removing or relaxing joins with a unique side does not change the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.shop import SLOW, unharmed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ONE_EACH = "(SELECT o_customer AS k, count(*) AS n FROM orders GROUP BY o_customer) u"


@pytest.mark.parametrize("columns", ["o_id, l_qty", "count(*)", "o_id, k"])
def test_a_left_join_among_others(db: SparkSession, columns: str) -> None:
    joined = f"{SLOW} LEFT JOIN {ONE_EACH} ON k = o_customer JOIN customers ON c_id = o_customer"
    df = db.sql(f"SELECT {columns} FROM {joined}")
    report = unharmed(df, reordered=True)._pyjoinopt_report
    assert bool(report.eliminated_outer_joins) == ("k" not in columns)


@pytest.mark.parametrize("columns", ["*", "o_id", "count(*)"])
def test_a_semi_join_on_a_key(db: SparkSession, columns: str) -> None:
    df = db.sql(f"SELECT {columns} FROM {SLOW} LEFT SEMI JOIN {ONE_EACH} ON k = o_customer AND n > l_qty")
    unharmed(df, reordered=True)


def test_the_same_columns_above_a_semi_join(db: SparkSession) -> None:
    """The right side of the semi join is also joined above: its columns must not occur twice."""
    unique = db.table("orders").select("o_customer").distinct()
    df = db.table("customers").join(unique, db.table("customers")["c_id"] == unique["o_customer"], "left_semi")
    joined = df.join(unique, df["c_id"] == unique["o_customer"], "left")
    regions = db.table("regions")
    unharmed(joined.join(regions, joined["c_region"] == regions["r_id"]), reordered=True)
