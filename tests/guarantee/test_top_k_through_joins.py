"""The first rows by an order are chosen before they are joined, with the same result."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from pyspark.sql import functions as F

from tests.support.eager import session_with
from tests.support.prefilters import checked, enabled

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Orders, customers, and events of orders, several each; with NULLs, and partners that are missing.
TABLES = {
    "o": """SELECT cast(id * 37 % 300 AS int) id, if(id % 7 = 3, null, cast(id % 90 AS int)) k,
        if(id % 5 = 1, null, cast(id % 11 AS int)) day FROM range(300)""",
    "c": "SELECT cast(id AS int) id, concat('n', id % 9) name, cast(id % 4 AS int) region FROM range(60)",
    "r": "SELECT cast(id AS int) id, concat('r', id) region FROM range(3)",
    "e": "SELECT cast(id * 3 % 280 AS int) o, cast(id % 4 AS int) kind FROM range(900)",
}
NOTE = "are chosen before the joins"

REPLACED = {
    "a left join": "SELECT o.id, name FROM o LEFT JOIN c ON o.k = c.id ORDER BY o.id LIMIT 7",
    "a right join": "SELECT o.id, name FROM c RIGHT JOIN o ON o.k = c.id ORDER BY o.id LIMIT 7",
    "two joins": """SELECT o.id, name, r.region FROM o LEFT JOIN c ON o.k = c.id LEFT JOIN r ON r.id = c.region
        ORDER BY o.id LIMIT 12""",
    "joins by turns": """SELECT o.id, name, e.kind FROM (SELECT o, min(kind) kind FROM e GROUP BY o) e RIGHT JOIN
        (SELECT o.id, name FROM o LEFT JOIN c ON o.k = c.id) o ON e.o = o.id ORDER BY o.id LIMIT 12""",
    "several partners": "SELECT o.id, o.day FROM o LEFT JOIN e ON e.o = o.id ORDER BY o.id DESC LIMIT 10",
    "NULLs first and last": """SELECT o.id, o.day, name FROM o LEFT JOIN c ON o.k = c.id
        ORDER BY o.day DESC NULLS FIRST, o.k ASC NULLS LAST, o.id LIMIT 20""",
    "by what is not selected": "SELECT name FROM o LEFT JOIN c ON o.k = c.id ORDER BY o.id LIMIT 9",
    "by what is computed": "SELECT name FROM o LEFT JOIN c ON o.k = c.id ORDER BY -o.id, o.day + 1 LIMIT 9",
    "by another name": "SELECT name, 300 - o.id AS back FROM o LEFT JOIN c ON o.k = c.id ORDER BY back LIMIT 9",
    "by a name of a name": """SELECT name, b2 FROM (SELECT name, b + 1 b2 FROM (SELECT name, -o.id b FROM o
        LEFT JOIN c ON o.k = c.id)) ORDER BY b2 LIMIT 9""",
    "a further condition": """SELECT o.id, name FROM o LEFT JOIN c ON o.k = c.id AND name > 'n3' AND o.day > 2
        ORDER BY o.id LIMIT 7""",
    "an inner join below": """SELECT o.id, name, kind FROM o JOIN (SELECT o, max(kind) kind FROM e GROUP BY o) e
        ON e.o = o.id LEFT JOIN c ON o.k = c.id ORDER BY o.id LIMIT 7""",
    "a filter below": "SELECT o.id, name FROM o LEFT JOIN c ON o.k = c.id WHERE day > 3 ORDER BY o.id LIMIT 7",
    "in a subquery": """SELECT region, count(*) FROM (SELECT o.id, c.region FROM o LEFT JOIN c ON o.k = c.id
        ORDER BY o.id LIMIT 40) GROUP BY region""",
    "joined again": """SELECT x.id, e.kind FROM (SELECT o.id, name FROM o LEFT JOIN c ON o.k = c.id ORDER BY o.id
        LIMIT 7) x JOIN e ON e.o = x.id""",
    "more than there are": "SELECT o.id, name FROM o LEFT JOIN c ON o.k = c.id ORDER BY o.id LIMIT 1000",
    "none": "SELECT o.id, name FROM o LEFT JOIN c ON o.k = c.id ORDER BY o.id LIMIT 0",
    "a product": "SELECT o.id, r.id x FROM o LEFT JOIN r ON true WHERE o.id < 50 ORDER BY o.id LIMIT 9",
}
KEPT = {
    "an inner join": "SELECT o.id, name FROM o JOIN c ON o.k = c.id ORDER BY o.id LIMIT 7",
    "a full join": "SELECT o.id, name FROM o FULL JOIN c ON o.k = c.id ORDER BY o.id NULLS LAST, c.id LIMIT 7",
    "a semi join": "SELECT o.id FROM o LEFT SEMI JOIN c ON o.k = c.id ORDER BY o.id LIMIT 7",
    "by the other side": """SELECT o.id, c.id d FROM o LEFT JOIN c ON o.k = c.id
        ORDER BY c.id NULLS LAST, o.id LIMIT 7""",
    "by both sides": "SELECT o.id FROM o LEFT JOIN e ON e.o = o.id ORDER BY o.id + coalesce(kind, 0), o.id LIMIT 7",
    "an offset": "SELECT o.id, name FROM o LEFT JOIN c ON o.k = c.id ORDER BY o.id LIMIT 7 OFFSET 3",
    "a filter of the other side": """SELECT o.id, name FROM o LEFT JOIN c ON o.k = c.id
        WHERE coalesce(name, 'n8') = 'n8' ORDER BY o.id LIMIT 7""",
    "distinct rows": "SELECT DISTINCT o.day FROM o LEFT JOIN e ON e.o = o.id ORDER BY o.day LIMIT 5",
    "groups": "SELECT o.day, count(*) FROM o LEFT JOIN e ON e.o = o.id GROUP BY o.day ORDER BY o.day LIMIT 5",
    "ranks": """SELECT id, n FROM (SELECT o.id, row_number() OVER (ORDER BY o.id, e.kind) n FROM o
        LEFT JOIN e ON e.o = o.id) ORDER BY id, n LIMIT 7""",
    "limited already": """SELECT x.id, name FROM (SELECT * FROM o ORDER BY id LIMIT 50) x LEFT JOIN c ON x.k = c.id
        ORDER BY x.id LIMIT 7""",
    "no join": "SELECT o.id FROM o ORDER BY o.id LIMIT 7",
    "for each row": """SELECT r.id, x.id FROM r, LATERAL (SELECT o.id FROM o LEFT JOIN c ON o.k = c.id
        WHERE o.day = r.id ORDER BY o.id LIMIT 3) x""",
    "a constant": "SELECT count(*) FROM (SELECT 1 x FROM o LEFT JOIN c ON o.k = c.id ORDER BY x LIMIT 7)",
}


@pytest.fixture(scope="module")
def orders(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    return session_with(spark, tmp_path_factory.mktemp("orders"), TABLES)


@pytest.fixture(params=["true", "false"])
def ansi(request: pytest.FixtureRequest, orders: SparkSession) -> Iterator[None]:
    orders.conf.set("spark.sql.ansi.enabled", request.param)
    yield
    orders.conf.unset("spark.sql.ansi.enabled")


def early(session: SparkSession, text: str, **options: object) -> int:
    """How often the first rows are chosen early, after rows and schema were compared with plain Spark's."""
    return sum(NOTE in note for note in checked(session.sql(text), **options).spared_joins)


@pytest.mark.usefixtures("free", "ansi")
@pytest.mark.parametrize("name", REPLACED)
def test_rows_are_chosen_early(orders: SparkSession, name: str) -> None:
    assert early(orders, REPLACED[name]) == 1


@pytest.mark.usefixtures("free")
@pytest.mark.parametrize("name", KEPT)
def test_others_are_left_alone(orders: SparkSession, name: str) -> None:
    assert early(orders, KEPT[name]) == 0


@pytest.mark.usefixtures("free")
def test_the_order_is_kept(orders: SparkSession) -> None:
    for name in ("a left join", "NULLs first and last", "by what is computed", "a product"):
        df = orders.sql(REPLACED[name])
        assert [row[0] for row in df.optimize_joins(strict=True).collect()] == [row[0] for row in df.collect()]


@pytest.mark.usefixtures("free")
def test_an_optimised_query_is_optimised_again(orders: SparkSession) -> None:
    fast = orders.sql(REPLACED["two joins"]).optimize_joins(strict=True)
    assert not any(NOTE in note for note in checked(fast).spared_joins)


@pytest.mark.usefixtures("free")
def test_sorted_partitions_are_not_sorted_rows(orders: SparkSession) -> None:
    o, c = orders.table("o"), orders.table("c")
    joined = o.join(c.selectExpr("id AS cid", "name"), F.col("k") == F.col("cid"), "left").select("id", "name")
    fast = joined.sortWithinPartitions("id").limit(5).optimize_joins(strict=True)
    assert not any(NOTE in note for note in fast._pyjoinopt_report.spared_joins)
    assert any(NOTE in note for note in checked(joined.sort("id").limit(5)).spared_joins)


@pytest.mark.usefixtures("free")
def test_what_others_read_too_is_not_limited(orders: SparkSession) -> None:
    text = """WITH x AS (SELECT id, k, max(day) OVER (PARTITION BY k) d FROM o)
        SELECT id, name, n FROM (SELECT x.id, name FROM x LEFT JOIN c ON x.k = c.id ORDER BY x.id LIMIT 7)
        CROSS JOIN (SELECT count(*) n FROM x)"""
    assert early(orders, text) == 1


def test_switched_off(orders: SparkSession, free: None) -> None:
    assert early(orders, REPLACED["two joins"], rewrites_without="top_k_through_joins") == 0
    assert early(orders, REPLACED["two joins"], strategy="heuristic") == 0


@pytest.fixture(scope="module")
def large(orders: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Tables that are too large to be broadcast."""
    folder = tmp_path_factory.mktemp("large")
    for name, rows in (("large", 1_200_000), ("other", 300_000)):
        text = f"SELECT cast(id AS int) id, cast(id * 7919 % 300000 AS int) k, concat('v', id) v FROM range({rows})"
        orders.sql(text).coalesce(1).write.parquet(str(folder / name))
        orders.read.parquet(str(folder / name)).createOrReplaceTempView(name)
    conf = "spark.sql.autoBroadcastJoinThreshold"
    before = orders.conf.get(conf)
    orders.conf.set(conf, "100kb")
    yield orders
    orders.conf.set(conf, before)


LARGE = "SELECT large.id, a.v FROM large LEFT JOIN other a ON a.id = large.k ORDER BY large.id LIMIT {}"


@pytest.mark.ci
def test_only_where_it_pays(large: SparkSession) -> None:
    assert early(large, LARGE.format(10), statistics="full") == 1
    assert early(large, LARGE.format(1_150_000), statistics="full") == 0
    tiny = "SELECT o.id, name FROM o LEFT JOIN c ON o.k = c.id ORDER BY o.id LIMIT 7"
    assert early(large, tiny, statistics="full") == 0


@pytest.mark.ci
def test_in_an_enabled_session(large: SparkSession) -> None:
    text = LARGE.format(10).replace("ORDER", "LEFT JOIN other b ON b.id = large.id ORDER")
    plain = large.sql(text).collect()
    with enabled(large, "") as report_of:
        fast = large.sql(text).collect()
        report = report_of()
    assert fast == plain and report.error is None
    assert any(NOTE in note for note in report.spared_joins)


@pytest.mark.ci
@pytest.mark.usefixtures("free", "ansi")
@pytest.mark.parametrize("seed", range(4))
def test_drawn_queries(orders: SparkSession, seed: int) -> None:
    draw = random.Random(seed)
    found = sum(early(orders, _drawn(draw)) > 0 for _ in range(16))
    assert found >= 5


def _drawn(draw: random.Random) -> str:
    """The first orders of some joins: whatever is selected is the same for all rows that are equal by the order."""
    joins = ["o"]
    for name, condition in draw.sample([("c", "o.k = c.id"), ("e", "e.o = o.id"), ("r", "r.id = o.day")], 2):
        kind = draw.choice(["LEFT", "LEFT", "LEFT", "LEFT", "INNER", "FULL", "LEFT SEMI", "LEFT ANTI"])
        more = draw.choice(["", "", " AND o.day > 3", " AND o.id % 2 = 0"])
        joins.append(f"{kind} JOIN {name} ON {condition}{more}")
    where = draw.choice(["", "", "WHERE o.day IS NOT NULL", "WHERE o.id > 20 AND o.day < 9"])
    direction = draw.choice(["", "DESC", "ASC NULLS LAST", "DESC NULLS FIRST"])
    order = draw.choice([f"o.id {direction}", f"o.day {direction}, o.id", f"coalesce(o.day, 4) {direction}, o.id"])
    limit = draw.choice([1, 3, 8, 30, 150])
    first = f"SELECT o.id, o.day + 1 AS later FROM {' '.join(joins)} {where} ORDER BY {order} LIMIT {limit}"
    return draw.choice([first, first, f"SELECT later, count(*) n FROM ({first}) GROUP BY later"])
