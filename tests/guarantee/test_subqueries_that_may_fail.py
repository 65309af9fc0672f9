"""A subquery's expression over outer columns may fail, so it must be evaluated on the same rows as in the query.

`ta ⋈ tc` removes all rows with `ak = 0`, and `ta ⋈ tb` is small, so the cheapest order joins the latter first.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.run import session_for_tiny_tables
from tests.support.shop import unharmed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = {
    "ta": "SELECT CAST(id % 6 AS int) AS ak, CAST(id % 400 AS int) AS av FROM range(4000)",
    "tc": "SELECT CAST(1 + id % 5 AS int) AS ck FROM range(50)",
    "tb": "SELECT CAST(id AS int) AS bk, CAST(id * 2 AS int) AS bv FROM range(1, 4)",
    "ts": "SELECT CAST(id AS int) AS s, CAST(id % 3 AS int) AS sv FROM range(1, 5)",
}
JOINED = "ta JOIN tc ON ak = ck JOIN tb ON bv = av"
WITHIN = {
    "under or": "bk = 3 OR EXISTS (SELECT 1 FROM ts WHERE s = 10 div (ak * (bk + 1)))",
    "for a value": "bk <= (SELECT max(s) FROM ts WHERE sv = 10 div (ak * (bk + 1)))",
    "not in": "bk NOT IN (SELECT s FROM ts WHERE s <= 10 / (ak * (bk + 1)))",
    "exists": "EXISTS (SELECT 1 FROM ts WHERE s = 10 div (ak * (bk + 1)))",
    "not exists": "NOT EXISTS (SELECT 1 FROM ts WHERE s = 10 div (ak * (bk + 1)))",
    "in": "10 div (ak * (bk + 1)) IN (SELECT s FROM ts)",
    "in, within": "bk IN (SELECT s FROM ts WHERE s <= 10 / (ak * (bk + 1)))",
    "two values": "bk + 1 <> (SELECT s FROM ts WHERE sv = if(ak * (bk + 1) = 0, 1, 2))",
}
ABOVE = {
    "of a computed column": f"""SELECT * FROM (SELECT ak * (bk + 1) AS z, bk FROM {JOINED})
        WHERE 10 div z > (SELECT min(s) - 1 FROM ts WHERE sv <= z)""",
    "beside a computed column": f"""SELECT * FROM (SELECT ak * 1 AS z, ak, bk FROM {JOINED})
        WHERE 10 div (ak * (bk + 1)) > (SELECT min(s) - 1 FROM ts WHERE sv <= z)""",
    "of a group": f"""SELECT z, count(*) FROM (SELECT ak * (bk + 1) AS z FROM {JOINED}) GROUP BY z
        HAVING 10 div z > (SELECT min(s) - 2 FROM ts)""",
    "of a window": f"""SELECT * FROM (SELECT ak, bk, sum(av) OVER (PARTITION BY ak, bk) AS n FROM {JOINED})
        WHERE 10 div (ak * (bk + 1)) > (SELECT min(s) - 2 FROM ts)""",
    "of a union": f"""SELECT * FROM (SELECT ak, bk FROM {JOINED} UNION ALL SELECT s, sv FROM ts)
        WHERE 10 div (ak * (bk + 1)) > (SELECT min(s) - 2 FROM ts)""",
    "of distinct rows": f"""SELECT * FROM (SELECT DISTINCT ak, bk FROM {JOINED})
        WHERE 10 div (ak * (bk + 1)) > (SELECT min(s) - 2 FROM ts)""",
    "semi join": f"SELECT * FROM {JOINED} LEFT SEMI JOIN ts ON s = 10 div (ak * (bk + 1))",
    "anti join": f"SELECT * FROM {JOINED} LEFT ANTI JOIN ts ON s = 10 div (ak * (bk + 1))",
    "below a hint": f"""SELECT /*+ BROADCAST(x) */ * FROM (SELECT * FROM {JOINED}) y JOIN ts x
        ON s = bk AND 10 div (ak * (bk + 1)) < 9""",
}


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    session = session_for_tiny_tables(spark)
    session.conf.set("spark.sql.ansi.enabled", "true")
    folder: Path = tmp_path_factory.mktemp("fails")
    for name, text in TABLES.items():
        session.sql(text).write.parquet(str(folder / name))
        session.read.parquet(str(folder / name)).createOrReplaceTempView(name)
    return session


def test_the_other_order_is_the_cheapest(tables: SparkSession) -> None:
    fast = unharmed(tables.sql(f"SELECT * FROM {JOINED} WHERE bk <> 99"), reordered=True)
    assert "ta ⋈ tb" in fast._pyjoinopt_report.groups[0].order_after


@pytest.mark.parametrize("name", WITHIN)
def test_within(tables: SparkSession, name: str) -> None:
    # The order that would be the cheapest makes the predicate fail: see the first test.
    fast = unharmed(tables.sql(f"SELECT * FROM {JOINED} WHERE {WITHIN[name]}"), reordered=name == "for a value")
    if name == "for a value":  # a join of the group, which requires all relations that are joined before it
        assert fast._pyjoinopt_report.groups[0].order_after.endswith("⋈ aggregate)")


@pytest.mark.parametrize("text", ABOVE.values(), ids=ABOVE)
def test_above(tables: SparkSession, text: str) -> None:
    unharmed(tables.sql(text), reordered=False)
