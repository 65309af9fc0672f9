"""Tables of a PostgreSQL server: different tables have different names, and no name contains a secret."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

import pyjoinopt
from pyjoinopt.statistics import Known

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pyjoinopt.estimation.sources.registry import Relation
    from tests.formats.postgres import Postgres

pytestmark = pytest.mark.formats


@pytest.fixture(scope="module")
def db(postgres: Postgres) -> Postgres:
    postgres.execute(
        """CREATE TABLE orders AS SELECT n AS o_id, n % 100 AS o_customer FROM generate_series(1, 10000) n;
        CREATE TABLE customers AS SELECT n AS c_id, n % 3 AS c_group FROM generate_series(0, 99) n;
        CREATE TABLE groups AS SELECT n AS g_id, 'g' || n AS g_name FROM generate_series(0, 2) n;"""
    )
    return postgres


@pytest.fixture(params=["options", "address"])
def read(spark: SparkSession, db: Postgres, request: pytest.FixtureRequest) -> Any:
    """A table or query, with user and password as options, or in the address."""

    def of(**what: str) -> DataFrame:
        if request.param == "options":
            more = {"url": db.url, "user": db.user, "password": db.password}
        else:
            more = {"url": f"{db.url}?user={db.user}&password={db.password}"}
        return spark.read.format("jdbc").option("driver", "org.postgresql.Driver").options(**more, **what).load()

    return of


class Counts:
    """A source that finds tables by their names."""

    name = "counts"
    rows = {"orders": 10000.0, "customers": 100.0, "public.groups": 3.0}

    def __init__(self) -> None:
        self.requested: set[str] = set()

    def lookup(self, relation: Relation) -> Known | None:
        self.requested.add(relation.name)
        rows = self.rows.get(relation.name.partition(" at ")[0])
        return None if rows is None else Known(rows=rows)


@pytest.fixture
def counts() -> Iterator[Counts]:
    source = Counts()
    pyjoinopt.statistics.register(source)
    yield source
    pyjoinopt.statistics.unregister(source)


def joined(read: Any) -> DataFrame:
    orders, customers, groups = read(dbtable="orders"), read(dbtable="customers"), read(dbtable="public.groups")
    on = (orders.o_customer == customers.c_id) & (customers.c_group == groups.g_id)
    return orders.crossJoin(groups).join(customers, on)


def test_a_source_distinguishes_tables(read: Any, db: Postgres, counts: Counts, same: Any) -> None:
    report = same(joined(read))
    where = db.url.removeprefix("jdbc:")
    assert counts.requested == {f"{table} at {where}" for table in counts.rows}
    assert {r.name: r.rows for r in report.groups[0].relations} == {
        f"{table} at {where}": rows for table, rows in counts.rows.items()
    }
    assert report.changed and "cheaper" in str(report)
    assert db.password not in str(report) and db.user not in str(report)


def test_nothing_is_cheaper_where_nothing_is_known(read: Any, db: Postgres, same: Any) -> None:
    report = same(joined(read))
    assert {r.source for r in report.groups[0].relations} == {"default"}
    text = str(report)
    assert "cheaper" not in text and "orders at postgresql://" in text
    assert db.password not in text and db.password not in report.to_html()


def test_queries_and_declared_keys(read: Any, db: Postgres) -> None:
    where = db.url.removeprefix("jdbc:")
    query = read(query="SELECT c_id,   c_group FROM customers")
    (row,) = pyjoinopt.statistics.show(query, store="off").to_dict("records")
    assert row["relation"] == f"(SELECT c_id, c_group FROM customers) at {where}"
    for table in ("customers", f"customers at {where}", row["relation"]):
        pyjoinopt.statistics.declare(table, key="c_id")
        try:
            shown = [
                pyjoinopt.statistics.show(df, store="off").to_dict("records")[0]["keys"]
                for df in (read(dbtable="customers"), read(dbtable="orders"), query)
            ]
        finally:
            pyjoinopt.statistics.forget_declared()
        assert [bool(keys) for keys in shown] == [table != row["relation"], False, table == row["relation"]]
