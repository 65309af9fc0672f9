"""A query that runs as written runs when it is optimised, wherever the predicates come from that Spark moves down.

Below a hint or a lateral join, another order of the joins of `s` may have rows that the written order drops, and on
which a predicate fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.compare import assert_same_rows, assert_same_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The row of b with y = 0 has no partner in a. The written order begins with the largest table.
TABLES = {
    "a": "SELECT 1 AS k FROM range(5000)",
    "b": "SELECT * FROM VALUES (1, 1, 5, '5'), (2, 1, 0, 'none') t(k, j, y, s)",
    "c": "SELECT 1 AS j, 0 AS z, INTERVAL '1' DAY AS d",
    "d": "SELECT 1 AS k",
    "e": "SELECT 1 AS k, 3 AS v",
    "r": "SELECT * FROM VALUES (0), (1) t(k)",
    "sold": "SELECT * FROM VALUES (1, 1, 10), (2, 2, 10) t(z, y, v)",
    "many": "SELECT CAST(if(id = 0, 1, id + 7) AS INT) AS z, 5 AS k FROM range(5000)",
    "few": "SELECT * FROM VALUES (1, 2), (2, 0) t(y, w)",
}
S = "(SELECT a.k ak, b.y, c.z FROM a JOIN b ON a.k = b.k JOIN c ON b.j = c.j) s"
MOST = "(SELECT max(e.v) m FROM e WHERE e.k = s.ak) t"
QUERIES = {
    "hint": f"SELECT /*+ BROADCAST(s) */ count(*) FROM d JOIN {S} ON d.k = s.ak WHERE 10 / s.y > s.z",
    "above a lateral join": f"SELECT count(*) FROM {S}, LATERAL {MOST} WHERE 10 / s.y > s.z",
    "of a lateral join": f"SELECT count(*) FROM {S} JOIN LATERAL {MOST} ON 10 / s.y > s.z",
    "of a left lateral join": f"SELECT count(*) FROM {S} LEFT JOIN LATERAL {MOST} ON true WHERE 10 / s.y > s.z",
    "beside an IN": f"""SELECT count(*) FROM {S} JOIN (SELECT e.k FROM e JOIN LATERAL (SELECT max(k) m FROM d
        WHERE d.k = e.k) t ON 100 / e.k > 2 WHERE e.k IN (SELECT k FROM r)) u ON u.k = s.ak""",
    "a constant for a column": """SELECT * FROM sold JOIN many ON sold.z = many.z JOIN few ON sold.y = few.y
        WHERE many.k = 5 AND sold.v / few.w >= many.k""",
}


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    session, folder = spark.newSession(), tmp_path_factory.mktemp("moved")
    for name, text in TABLES.items():
        session.sql(text).coalesce(1).write.parquet(str(folder / name))
        session.read.parquet(str(folder / name)).createOrReplaceTempView(name)
    yield session


def unharmed(session: SparkSession, text: str, ansi: str) -> None:
    session.conf.set("spark.sql.ansi.enabled", ansi)
    df = session.sql(text)
    fast = df.optimize_joins(strict=True)
    assert_same_schema(df, fast)
    assert_same_rows(df.collect(), fast.collect())


@pytest.mark.parametrize("text", QUERIES.values(), ids=list(QUERIES))
def test_what_may_fail(tables: SparkSession, text: str) -> None:
    unharmed(tables, text, "true")


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_casts_to_intervals_fail_in_any_mode(tables: SparkSession, ansi: str) -> None:
    text = """SELECT count(*) FROM a JOIN b ON a.k = b.k JOIN c ON b.j = c.j WHERE CAST(b.s AS INTERVAL DAY) > c.d"""
    unharmed(tables, text, ansi)


def test_without_such_a_predicate_the_group_is_reordered(tables: SparkSession) -> None:
    """The written order is a bad one."""
    for text in (QUERIES["hint"], QUERIES["above a lateral join"], QUERIES["of a lateral join"]):
        plain = tables.sql(text.replace("10 / s.y", "10 * s.y"))
        assert any(group.changed for group in plain.join_report().groups)


def test_columns_that_a_cached_plan_pads(tables: SparkSession) -> None:
    """The column is never NULL where it comes from, and in the cached rows it is."""
    one = "(SELECT id AS bid FROM range(1))"
    padded = tables.sql(f"SELECT aid, bid FROM (SELECT id AS aid FROM range(3)) LEFT JOIN {one} ON aid = bid")
    padded.cache().createOrReplaceTempView("padded")
    try:
        text = "SELECT id FROM range(4) LEFT JOIN padded ON id = aid WHERE {} IS NULL"
        for column, ids in (("bid", [1, 2, 3]), ("aid", [3])):
            fast = tables.sql(text.format(column)).optimize_joins(strict=True)
            assert sorted(row.id for row in fast.collect()) == ids
            became_anti = any("became anti" in line for line in fast.join_report().eliminated_outer_joins)
            assert became_anti is (column == "aid"), "only the compared column is NULL in no row of the right side"
    finally:
        padded.unpersist()


def test_columns_that_a_left_lateral_join_pads(tables: SparkSession) -> None:
    text = """SELECT x.k FROM r x LEFT JOIN (SELECT r.k AS cid, t.found FROM r LEFT JOIN LATERAL
        (SELECT 1 AS found FROM d WHERE d.k = r.k) t ON true) p ON x.k = p.cid WHERE p.found IS NULL"""
    assert tables.sql(text).collect() == [(0,)]
    assert tables.sql(text).optimize_joins(strict=True).collect() == [(0,)]
    compared = tables.sql(text.replace("p.found IS NULL", "p.cid IS NULL")).optimize_joins(strict=True)
    assert compared.collect() == [] and "became anti" in str(compared.join_report().eliminated_outer_joins)
