"""Two predicates that may fail, written in two places, of which one keeps rows from the other one.

Which one Spark evaluates first depends on the shape of the query. Whatever it is: a query that runs as written runs
when it is optimised.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tests.support.compare import assert_same_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: The first one fails for x = 0 and the second one for y = 0; both are false for 1 and true for 6.
P, Q = "12 DIV {0}.x < 3", "12 DIV {0}.y < 3"
#: Of the table a: a row for which one of them fails and the other one is false, and a row for which both are true.
SHIELDED = {"by the first": [(1, 1, 0), (2, 6, 6)], "by the second": [(1, 0, 1), (2, 6, 6)]}

#: {p} and {q}: predicates over a; {pb} and {qb}: over a and b.
QUERIES = {
    "on, where": "SELECT a.k, c.k FROM b JOIN c ON TRUE JOIN a ON {p} WHERE {q}",
    "where, on": "SELECT a.k, c.k FROM b JOIN c ON TRUE JOIN a ON {q} WHERE {p}",
    "on, on": "SELECT a.k, c.k FROM a JOIN b ON {p} JOIN c ON {q}",
    "two relations": "SELECT a.k, b.k FROM a JOIN b ON {p} WHERE {q}",
    "projection": "SELECT t.k, c.k FROM (SELECT a.* FROM a JOIN b ON {p}) t JOIN c ON TRUE WHERE {q_t}",
    "projection of three": "SELECT t.k FROM (SELECT a.* FROM a JOIN b ON {p} JOIN d ON TRUE) t JOIN c ON TRUE "
    "WHERE {q_t}",
    "right side": "SELECT a.k, c.k FROM c JOIN (a JOIN b ON {p}) ON {q} JOIN d ON TRUE",
    "right side of three": "SELECT a.k FROM c JOIN (a JOIN b ON {p} JOIN d ON TRUE) ON {q}",
    "both read two": "SELECT a.k, c.k FROM a JOIN b ON {pb} JOIN c ON c.k = b.k WHERE {qb}",
    "both read two, later": "SELECT a.k, c.k FROM a JOIN b ON {pb} JOIN c ON c.k = b.k AND {qb}",
    "grouped": "SELECT a.k, a.x, a.y FROM b JOIN c ON TRUE JOIN a ON {p} GROUP BY a.k, a.x, a.y HAVING {q}",
    "grouped, two": "SELECT a.k, b.k, a.x, a.y, b.z FROM a JOIN b ON {pb} JOIN c ON c.k = b.k "
    "GROUP BY a.k, b.k, a.x, a.y, b.z HAVING {qb}",
    "left join": "SELECT a.k, c.k FROM c LEFT JOIN a ON c.k = a.k AND {p} JOIN b ON {q}",
    "below a left join": "SELECT a.k, c.k FROM a JOIN b ON {p} LEFT JOIN c ON c.k = a.k WHERE {q}",
    "semi": "SELECT a.k FROM a JOIN b ON {p} WHERE {q} AND EXISTS (SELECT 1 FROM c WHERE c.k = b.k)",
}  # fmt: skip


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> Callable[[str], SparkSession]:
    def make(shielded: str) -> SparkSession:
        session = spark.newSession()
        session.conf.set("spark.sql.ansi.enabled", "true")
        session.createDataFrame(SHIELDED[shielded], "k INT, x INT, y INT").createOrReplaceTempView("a")
        for name in "bcd":
            rows = [(k, 0) for k in range(1, 4)]
            session.createDataFrame(rows, "k INT, z INT").createOrReplaceTempView(name)
        return session

    return make


def written(text: str) -> str:
    both = {"pb": "12 DIV (a.x + b.z) < 3", "qb": "12 DIV (a.y + b.z) < 3"}
    return text.format(p=P.format("a"), q=Q.format("a"), q_t=Q.format("t"), **both)


def rows_or_none(df: DataFrame) -> list[object] | None:
    try:
        return list(df.collect())
    except Exception as error:
        assert "DIVIDE_BY_ZERO" in str(error)
        return None


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_that_runs_still_runs(name: str, tables: Callable[[str], SparkSession]) -> None:
    ran = 0
    for shielded in SHIELDED:
        plain = tables(shielded).sql(written(QUERIES[name]))
        rows = rows_or_none(plain)
        if rows is not None:
            ran += 1
            for options in ({"cost": "c_out"}, {}):
                assert_same_rows(rows, plain.optimize_joins(strict=True, **options))
    assert ran, "Spark itself fails with both tables, so this shows nothing"


@pytest.mark.parametrize("shielded", SHIELDED)
def test_filters_above_each_other(shielded: str, tables: Callable[[str], SparkSession]) -> None:
    """As DataFrames are written: Spark evaluates the later one first if there are three inputs."""
    session = tables(shielded)
    joined = session.sql("SELECT a.k, a.x, a.y, c.k AS ck FROM b JOIN c ON TRUE JOIN a ON TRUE")
    for first, second in ((P, Q), (Q, P)):
        plain = joined.filter(first.format("a").replace("a.", "")).filter(second.format("a").replace("a.", ""))
        rows = rows_or_none(plain)
        if rows is not None:
            assert_same_rows(rows, plain.optimize_joins(strict=True, cost="c_out"))


def test_predicates_of_one_operator_do_not_keep_the_order(tables: Callable[[str], SparkSession]) -> None:
    session = tables("by the first")
    both = f"{P.format('a')} AND {Q.format('a')}"
    df = session.sql(f"SELECT a.k, c.k FROM b, c, a WHERE b.k = c.k AND b.k = a.k AND {both}")
    report = df.optimize_joins(strict=True, cost="c_out").join_report()
    assert report.groups and not report.refusals
    assert rows_or_none(df) is not None
