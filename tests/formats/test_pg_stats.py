"""Statistics of a PostgreSQL server: as near to the truth as its own, only for whole tables, and never in the way."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pyjoinopt.report.join_report import JoinReport
    from tests.formats.postgres import Postgres

pytestmark = pytest.mark.formats

ROWS = 20_000
SOURCE = "pg_stats"


@pytest.fixture(scope="module")
def db(postgres: Postgres) -> Postgres:
    """Events, a third of them of one kind; a fifth has no price; most prices are zero. Names of kinds, and people."""
    postgres.execute(
        f"""CREATE TABLE events AS
          SELECT n AS e_id, CASE WHEN n % 3 = 0 THEN 1 ELSE 2 + n % 500 END AS e_kind,
            CASE WHEN n % 5 = 0 THEN NULL WHEN n % 2 = 0 THEN 0 ELSE n / 10.0 END AS e_price,
            DATE '2020-01-01' + n % 1000 AS e_day,
            TIMESTAMPTZ '2020-01-01 00:00:00+00' + n * INTERVAL '1 hour' AS e_time,
            CASE WHEN n % 4 = 0 THEN 'common' ELSE 'rare' || n END AS e_text, n % 2 = 0 AS e_flag
          FROM generate_series(1, {ROWS}) n;
        CREATE TABLE kinds AS SELECT n AS k_id, 'k' || n AS k_name FROM generate_series(1, 501) n;
        CREATE TABLE people AS SELECT n AS p_id, n % 50 AS p_kind FROM generate_series(1, 1000) n;
        CREATE TABLE "Odd Name" AS SELECT n AS id FROM generate_series(1, 777) n;
        CREATE TABLE parent (a int) PARTITION BY RANGE (a);
        CREATE TABLE child1 PARTITION OF parent FOR VALUES FROM (0) TO (500);
        CREATE TABLE child2 PARTITION OF parent FOR VALUES FROM (500) TO (1000);
        INSERT INTO parent SELECT n % 1000 FROM generate_series(1, 5000) n;
        CREATE TABLE fresh AS SELECT n AS f_id FROM generate_series(1, 100) n;
        ANALYZE events; ANALYZE kinds; ANALYZE people; ANALYZE "Odd Name"; ANALYZE parent;"""
    )
    return postgres


@pytest.fixture
def read(spark: SparkSession, db: Postgres) -> Any:
    def of(dbtable: str = "", user: str = db.user, password: str = db.password, **more: str) -> DataFrame:
        options = {"url": db.url, "driver": "org.postgresql.Driver", "user": user, "password": password, **more}
        return spark.read.format("jdbc").options(**options, **({"dbtable": dbtable} if dbtable else {})).load()

    return of


def test_the_statistics_of_a_table(read: Any, known: Any) -> None:
    relation, facts = known(read("events"))
    assert (facts.source, facts.rows, facts.exact) == (SOURCE, ROWS, False)
    columns = facts.columns
    assert columns["e_id"].ndv == ROWS and (columns["e_id"].min, columns["e_id"].max) == (1, ROWS)
    assert 0.85 * 501 <= columns["e_kind"].ndv <= 1.15 * 501
    assert columns["e_price"].nulls == pytest.approx(ROWS / 5, rel=0.05)
    assert columns["e_price"].details["heavy"][0]["value"] == 0.0
    assert columns["e_text"].details["heavy"][0] == {"value": "common", "share": pytest.approx(0.25, rel=0.1)}
    epoch = datetime.date(1970, 1, 1)
    assert columns["e_day"].min == (datetime.date(2020, 1, 1) - epoch).days
    hour, start = 3_600_000_000, 1_577_836_800_000_000
    assert columns["e_time"].min == start + hour and columns["e_time"].max == start + ROWS * hour
    assert columns["e_flag"].ndv == 2


def test_the_rows_are_scaled_to_the_present_size(read: Any, known: Any, db: Postgres) -> None:
    db.execute("CREATE TABLE growing AS SELECT n AS g FROM generate_series(1, 5000) n; ANALYZE growing;")
    db.execute("INSERT INTO growing SELECT n FROM generate_series(1, 15000) n;")
    assert known(read("growing"))[1].rows == pytest.approx(20_000, rel=0.05)


@pytest.mark.parametrize(("table", "rows"), [('"Odd Name"', 777), ("public.kinds", 501), ("parent", 5000)])
def test_names_and_partitioned_tables(read: Any, known: Any, table: str, rows: int) -> None:
    facts = known(read(table))[1]
    assert facts.source == SOURCE and facts.rows == rows
    (column,) = [facts.columns[name] for name in facts.columns if name in ("id", "k_id", "a")]
    assert column.ndv == min(rows, 1000)


@pytest.mark.parametrize(
    "options",
    [
        {"query": "SELECT e_id FROM events WHERE e_id < 10"},
        {"dbtable": "(SELECT e_id FROM events WHERE e_id < 10) AS few"},
        {"dbtable": "fresh"},
        {"dbtable": "events", "sessionInitStatement": "SET search_path = elsewhere"},
    ],
    ids=["query", "subquery", "never analysed", "another session"],
)
def test_without_statistics(read: Any, known: Any, options: dict[str, str]) -> None:
    assert known(read(**options))[1].source == "default"


def test_predicates_need_not_cover_a_table(spark: SparkSession, db: Postgres, known: Any) -> None:
    properties = {"user": db.user, "password": db.password, "driver": "org.postgresql.Driver"}
    some = spark.read.jdbc(db.url, "events", predicates=["e_id < 10", "e_id = 12"], properties=properties)
    assert known(some)[1].source == "default"
    ranges = spark.read.jdbc(
        db.url, "events", column="e_id", lowerBound=1, upperBound=100, numPartitions=3, properties=properties
    )
    assert known(ranges)[1].rows == ROWS  # the bounds of the ranges filter no row


FILTERS = {
    "e_kind = 1": ROWS / 3,
    "e_kind = 77": 2 / 3 * ROWS / 500,
    "e_price <= 0": 0.4 * ROWS,
    "e_price < 1000": 0.6 * ROWS,
    "e_price IS NULL": 0.2 * ROWS,
    "e_day < DATE '2020-04-10'": 0.1 * ROWS,
    "e_time >= TIMESTAMP '2021-05-15 00:00:00'": 0.4 * ROWS,
    "e_text = 'common'": ROWS / 4,
}


@pytest.mark.parametrize("condition", FILTERS)
def test_filters_are_estimated_by_the_values_of_the_server(read: Any, same: Any, condition: str) -> None:
    df = read("events").where(condition)
    assert df.count() == pytest.approx(FILTERS[condition], rel=0.05)
    kinds = read("kinds")
    report: JoinReport = same(df.join(kinds, df.e_kind == kinds.k_id))
    (pair,) = report.pairs
    estimated = {r.name.partition(" at ")[0]: r for r in pair.relations}["events"]
    assert estimated.source == SOURCE
    assert estimated.rows == pytest.approx(FILTERS[condition], rel=0.25)


def test_the_order_follows_the_sizes(read: Any, same: Any) -> None:
    events, kinds, people = read("events"), read("kinds"), read("people")
    df = events.join(people, events.e_kind == people.p_kind).join(kinds, events.e_kind == kinds.k_id)
    report = same(df.where("k_name = 'k7'"))
    assert {relation.source for relation in report.groups[0].relations} == {SOURCE}
    assert report.changed
    assert not report.hints, "the counts of a server are no bounds"
    without = same(df.where("k_name = 'k7'"), statistics_without="database")
    assert {relation.source for relation in without.groups[0].relations} == {"default"}


@pytest.fixture
def reader(db: Postgres) -> Iterator[str]:
    """Another user."""
    db.execute("CREATE ROLE reader LOGIN PASSWORD 'rr'; GRANT SELECT ON events TO reader;")
    yield "reader"
    db.execute("DROP OWNED BY reader; DROP ROLE reader;")


def test_a_server_that_lets_nobody_in(read: Any, known: Any, db: Postgres, reader: str) -> None:
    df = read("events", user=reader, password="rr")
    db.execute("ALTER ROLE reader NOLOGIN")
    facts = known(df)[1]
    assert facts.source == "default" and "cannot be read" in facts.note
    db.execute("ALTER ROLE reader LOGIN")
    assert known(df)[1].source == SOURCE, "an error is not remembered"


def test_a_table_of_a_catalog(spark: SparkSession, db: Postgres, known: Any) -> None:
    prefix = "spark.sql.catalog.pg"
    spark.conf.set(prefix, "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog")
    options = {"url": db.url, "user": db.user, "password": db.password, "driver": "org.postgresql.Driver"}
    for key, value in options.items():
        spark.conf.set(f"{prefix}.{key}", value)
    facts = known(spark.table("pg.public.kinds"))[1]
    assert (facts.source, facts.rows) == (SOURCE, 501)
    assert facts.columns["k_id"].max == 501
