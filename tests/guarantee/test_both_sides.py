"""Set operations, DISTINCT, aggregates and windows end a join group; the joins below and above are still reordered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.shop import SLOW, unharmed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BELOW = f"SELECT o_region AS r, o_customer AS c FROM {SLOW}"
OTHER = f"SELECT o_region, v_customer FROM {SLOW} WHERE l_qty > 2"
BETWEEN = {
    "intersect": f"{BELOW} INTERSECT {OTHER}",
    "intersect all": f"{BELOW} INTERSECT ALL {OTHER}",
    "except": f"{BELOW} EXCEPT {OTHER}",
    "except all": f"{BELOW} EXCEPT ALL {OTHER}",
    "union": f"{BELOW} UNION {OTHER}",
    "union all": f"{BELOW} UNION ALL {OTHER}",
    "distinct": BELOW.replace("SELECT", "SELECT DISTINCT"),
    "aggregate": f"{BELOW} GROUP BY r, c",
    "window": BELOW.replace("AS c", "AS c, count(*) OVER (PARTITION BY o_region) AS n"),
}
#: How many groups of three relations there are below, and how many of them can be better (a UNION has two branches).
BRANCHES = {"distinct": 1, "aggregate": 1, "window": 1}


@pytest.mark.ci
@pytest.mark.parametrize("between", BETWEEN)
def test_joins_on_both_sides_are_ordered(db: SparkSession, between: str) -> None:
    above = "JOIN lines l2 ON l2.l_region = w.r JOIN vip v2 ON v2.v_customer = w.c"
    fast = unharmed(db.sql(f"SELECT * FROM ({BETWEEN[between]}) w {above}"), reordered=True)
    changed = [group for group in fast._pyjoinopt_report.groups if group.changed]
    assert len(changed) == BRANCHES.get(between, 2) + 1, fast._pyjoinopt_report.to_text()
