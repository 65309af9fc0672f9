"""Rows that are stored together and share values make fewer groups than as many rows drawn one by one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pyjoinopt.bridge.shim import bridge_for
from tests.statistics.test_semi_joins import estimate_of
from tests.support.shop import optimised

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: 10,000 orders of twelve lines each, by 20,000 customers, on 1,000 days; a line has an article of its own.
ORDER = "floor(id / 12)"
LINES = [
    f"cast(({ORDER} * 7919) % 20000 as int) as l_customer", f"cast(({ORDER} * 31) % 1000 as int) as l_day",
    "pmod(hash(id), 500) as l_article", "cast(id % 90 as int) as l_price",
]  # fmt: skip
CUSTOMERS = ["cast(id as int) as c_id", "concat('name', id) as c_name"]
DAYS = ["cast(id as int) as d_id", "cast(id % 12 as int) as d_month"]
ARTICLES = ["cast(id as int) as a_id", "concat('kind', id % 10) as a_kind"]


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    folder = tmp_path_factory.mktemp("runs")
    tables = {
        "lines": (120_000, LINES), "customers": (20_000, CUSTOMERS), "days": (1000, DAYS), "articles": (500, ARTICLES),
    }  # fmt: skip
    for name, (rows, columns) in tables.items():
        path = folder / name
        spark.range(0, rows, 1, 1).selectExpr(*columns).write.parquet(str(path))
        for n, file in enumerate(sorted(path.glob("*.parquet"))):
            file.rename(path / f"part-{n}.parquet")
        spark.read.parquet(str(path)).createOrReplaceTempView(f"runs_{name}")
    bridge_for(spark.range(1)).forgetSamples()
    yield spark
    for name in tables:
        spark.catalog.dropTempView(f"runs_{name}")


JOINED = "runs_lines JOIN runs_days ON l_day = d_id JOIN runs_customers ON l_customer = c_id"
QUERIES = {
    "buyers of a month": f"SELECT c_id, c_name, sum(l_price) s FROM {JOINED} WHERE d_month = 3 GROUP BY c_id, c_name",
    "all buyers": f"SELECT c_id, c_name, sum(l_price) s FROM {JOINED} GROUP BY c_id, c_name",
    "buyers by the referring column": f"SELECT l_customer, sum(l_price) s FROM {JOINED} WHERE d_month = 3 GROUP BY 1",
    "buyers of a kind of articles": f"""SELECT c_id, c_name, sum(l_price) s FROM {JOINED}
        JOIN runs_articles ON l_article = a_id WHERE a_kind = 'kind3' GROUP BY c_id, c_name""",
}


@pytest.mark.parametrize("name", QUERIES)
def test_groups_of_runs(shop: SparkSession, name: str) -> None:
    """The groups are joined, so it matters how many there are."""
    groups = QUERIES[name]
    truth = shop.sql(groups).count()
    df = shop.sql(f"SELECT * FROM ({groups}) g JOIN runs_customers o ON g.{_key(groups)} = o.c_id")
    assert truth / 1.5 < estimate_of(df) < truth * 1.5, (estimate_of(df), truth)


def _key(groups: str) -> str:
    return "l_customer" if "SELECT l_customer" in groups else "c_id"


def test_runs_are_remembered(shop: SparkSession, tmp_path: Path) -> None:
    """What the store has of a sample has its runs, too."""
    groups = QUERIES["buyers of a month"]
    df = shop.sql(
        f"SELECT * FROM ({groups}) g JOIN runs_customers o ON g.c_id = o.c_id JOIN runs_days ON o.c_id = d_id"
    )

    def rows() -> float:
        _, report = optimised(df, store=str(tmp_path / "store.sqlite"), statistics_ms=60_000)
        return next(r.rows for r in report.groups[-1].relations if r.name.startswith(("g", "aggregate")))

    first = rows()
    bridge_for(df).forgetSamples()
    assert rows() == first < 1500
