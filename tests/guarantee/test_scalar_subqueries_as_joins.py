"""The optimizer treats a correlated scalar subquery over an aggregate as the left join that Spark makes of it later."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from pyjoinopt import disable, enable, last_reports
from pyjoinopt.bridge.decode import decode
from pyjoinopt.bridge.shim import bridge_for
from pyjoinopt.plan.expressions import CORRELATED
from pyjoinopt.plan.nodes import LEFT, Aggregate, Filter, Join
from pyjoinopt.plan.relation_names import source_names
from pyjoinopt.plan.traversal import post_order
from tests.guarantee.drawn_orders import in_drawn_orders
from tests.support.compare import assert_same_rows, assert_same_schema
from tests.support.shop import SLOW, joined_tables, optimised, unharmed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

INNER = "lines JOIN orders ON l_region = o_region"
OUTER = f"{INNER} LEFT JOIN regions ON r_id = l_qty"
#: A predicate -> how many left joins it becomes.
JOINED = {
    "an average": ("o_id * 0.1 < (SELECT 1.2 * avg(c_id) FROM customers WHERE c_region = o_region)", 1),
    "of the same table": ("o_id > (SELECT avg(x.o_id) FROM orders x WHERE x.o_customer = orders.o_customer)", 1),
    "count, empty groups": ("l_qty < 1 + (SELECT count(*) FROM vip WHERE v_customer = o_customer)", 1),
    "count, zero is wanted": ("(SELECT count(v_rank) FROM vip WHERE v_customer = o_customer) = 0", 1),
    "count distinct": ("l_qty < (SELECT count(DISTINCT c_name) FROM customers WHERE c_region = l_qty)", 1),
    "sum, empty groups": ("(SELECT sum(v_rank) FROM vip WHERE v_customer = o_customer) IS NULL AND l_qty = 2", 1),
    "a value in its place": ("coalesce((SELECT sum(v_rank) FROM vip WHERE v_customer = o_customer), 5) > l_qty", 1),
    "under or": ("l_qty = 3 OR o_id < (SELECT avg(c_id) FROM customers WHERE c_region = o_region)", 1),
    "two in one": (
        "l_qty > (SELECT min(v_rank) FROM vip WHERE v_customer = o_customer)"
        " + (SELECT count(*) FROM customers WHERE c_id = o_id)", 2,
    ),
    "two beside each other": (
        "l_qty <= (SELECT max(c_id) FROM customers WHERE c_region = o_region)"
        " AND o_id > (SELECT min(c_id) FROM customers WHERE c_region = o_region)", 2,
    ),
    "by two columns": ("l_qty < (SELECT max(c_id) FROM customers WHERE c_region = o_region AND c_id = o_customer)", 1),
    "by null": ("o_id > (SELECT max(c_id) FROM customers WHERE c_region <=> o_region)", 1),
    "by another type": ("o_id > (SELECT max(c_id) FROM customers WHERE CAST(c_region AS BIGINT) = o_region)", 1),
    "over joins": (
        "o_id > (SELECT avg(c_id) FROM customers JOIN vip ON v_customer <= c_id WHERE c_region = o_region)", 1,
    ),
    "a count of groups": (
        "l_qty > (SELECT count(*) FROM (SELECT c_name FROM customers WHERE c_region = o_region GROUP BY c_name))", 1,
    ),
    "beside in": (
        "o_customer IN (SELECT c_id FROM customers WHERE c_region < 4)"
        " AND o_id > (SELECT avg(x.o_id) FROM orders x WHERE x.o_customer = orders.o_customer)", 1,
    ),
    "beside exists": (
        "NOT EXISTS (SELECT 1 FROM vip WHERE v_customer = o_customer)"
        " AND l_qty < (SELECT count(*) FROM customers WHERE c_region = o_region)", 1,
    ),
    "around in": (
        "o_id > (SELECT max(c_id) FROM customers WHERE c_region = o_region"
        " AND c_id IN (SELECT v_customer FROM vip))", 1,
    ),
    "around another value": (
        "o_id > (SELECT max(c_id) FROM customers WHERE c_region = o_region"
        " AND c_id < (SELECT max(v_customer) FROM vip))", 1,
    ),
    "within in": (
        "o_customer IN (SELECT c_id FROM customers WHERE c_id > (SELECT max(v_rank) FROM vip WHERE v_customer = c_id))",
        1,
    ),
    "within a plain value": (
        "o_id > (SELECT avg(c_id) FROM customers WHERE c_id > (SELECT max(v_rank) FROM vip WHERE v_customer = c_id))",
        1,
    ),
    "of a row that may be missing": ("coalesce(r_id, 9) > (SELECT min(c_region) FROM customers WHERE c_id = r_id)", 1),
    "beside a plain value": (
        "l_qty + (SELECT max(v_rank) FROM vip) > (SELECT min(c_id) FROM customers WHERE c_region = o_region)", 1,
    ),
    "a hint inside": ("o_id > (SELECT /*+ BROADCAST(c) */ max(c_id) FROM customers c WHERE c_region = o_region)", 1),
}  # fmt: skip
KEPT = {
    "by an order": "l_price < (SELECT max(c_id) FROM customers WHERE c_region = o_region AND c_id > l_qty)",
    "a function that Spark replaces": "l_qty < (SELECT count_if(c_id > 9) FROM customers WHERE c_region = o_region)",
    "having": "l_qty < (SELECT count(*) FROM customers WHERE c_region = o_region HAVING count(*) > 7)",
    "having a maximum": "l_qty < (SELECT max(c_id) FROM customers WHERE c_region = o_region HAVING count(*) > 6)",
    "a sum of a count": "l_qty > (SELECT sum(n) FROM (SELECT count(*) n FROM customers WHERE c_region = o_region))",
    "the time": "o_day < (SELECT max(current_date()) FROM customers WHERE c_region = o_region)",
    "beside in, in one": (
        "(o_id IN (SELECT v_customer FROM vip)) = (l_qty < (SELECT max(c_id) FROM customers WHERE c_id = o_customer))"
    ),
    "around exists": (
        "o_id > (SELECT max(c_id) FROM customers WHERE c_region = o_region"
        " AND EXISTS (SELECT 1 FROM vip WHERE v_customer = c_id))"
    ),
    "around a value for each row": (
        "o_id > (SELECT max(c_id) FROM customers WHERE c_region = o_region"
        " AND c_id > (SELECT max(v_customer) FROM vip WHERE v_rank = c_region))"
    ),
    "within exists": (
        "EXISTS (SELECT 1 FROM customers WHERE c_id = o_customer"
        " AND c_id > (SELECT max(v_rank) FROM vip WHERE v_customer = c_id))"
    ),
}


def exported(df: DataFrame, strategy: str = "auto") -> tuple[int, int]:
    """How many left joins with an aggregate a call gets, and how many filters with correlated values."""
    bridge = bridge_for(df)
    export = decode(bridge.export(df._jdf, f'{{"optimizing": true, "strategy": "{strategy}"}}'))
    bridge.release(export.handle)
    joins = [n for n in export.nodes if isinstance(n, Join) and n.join_type == LEFT]
    made = sum(any(isinstance(below, Aggregate) for below in post_order(join.right)) for join in joins)
    return made, sum(isinstance(n, Filter) and bool(n.condition.contains & CORRELATED) for n in export.nodes)


def same_rows(df: DataFrame, **options: str) -> DataFrame:
    """The optimised frame, after its rows and its schema were compared."""
    fast, _ = optimised(df, **options)
    assert_same_schema(df, fast)
    assert_same_rows(df, fast, label=("plain Spark", "optimised"))
    return fast


@pytest.mark.parametrize("name", JOINED)
def test_it_is_a_left_join(db: SparkSession, name: str) -> None:
    predicate, joins = JOINED[name]
    df = db.sql(f"SELECT * FROM {OUTER} WHERE {predicate}")
    assert exported(df)[0] == joins
    same_rows(df)


@pytest.mark.parametrize("name", KEPT)
def test_others_are_kept(db: SparkSession, name: str) -> None:
    df = db.sql(f"SELECT * FROM {OUTER} WHERE {KEPT[name]}")
    if db.version > "4" or name not in ("having", "having a maximum", "a sum of a count"):
        assert exported(df)[0] == 0
    same_rows(df)


@pytest.mark.ci
@pytest.mark.parametrize("name", JOINED)
def test_in_any_legal_order(db: SparkSession, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    plain = db.sql(f"SELECT * FROM {OUTER} WHERE {JOINED[name][0]}")
    drawn = in_drawn_orders(plain, monkeypatch, name, 3)
    assert any(one != other for shown in drawn for one, other in shown)


def test_a_comparison_makes_it_an_inner_join_of_the_group(db: SparkSession) -> None:
    df = db.sql(f"SELECT * FROM {INNER} WHERE o_id < (SELECT min(v_rank) FROM vip WHERE v_customer = o_customer)")
    fast = unharmed(df, reordered=False)  # it is made where it belongs
    (group,) = fast._pyjoinopt_report.groups
    assert group.order_before == "(lines ⋈ (orders ⋈ aggregate))"
    assert fast._pyjoinopt_report.eliminated_outer_joins


@pytest.mark.parametrize("comparison", ["o_id >", "o_day IS NOT NULL AND 3 >="])
def test_it_is_made_below_the_joins_of_which_it_reads_one_side(db: SparkSession, comparison: str) -> None:
    """There Spark's PushDownPredicates has the filter when it makes the join."""
    value = "(SELECT count(*) FROM customers WHERE c_region = o_region)"
    df = db.sql(f"SELECT * FROM lines x JOIN ({SLOW}) USING (l_qty) WHERE {comparison} {value}")
    bridge = bridge_for(df)
    export = decode(bridge.export(df._jdf, '{"optimizing": true, "strategy": "auto"}'))
    bridge.release(export.handle)
    (join,) = [n for n in post_order(export.root) if isinstance(n, Join) and n.join_type == LEFT]
    assert [source_names(leaf) for leaf in post_order(join.left) if not leaf.children] == [("orders.parquet",)]
    same_rows(df)


def test_an_in_beside_it_is_copied_into_it(db: SparkSession) -> None:
    """Spark copies the predicate across the equality of the left join, so it must not be a join by then."""
    df = db.sql(f"""SELECT * FROM {INNER} WHERE o_customer IN (SELECT v_customer FROM vip)
        AND o_id > (SELECT avg(x.o_id) FROM orders x WHERE x.o_customer = orders.o_customer)""")
    for frame in (df, same_rows(df)):
        assert sum("LeftSemi" in join for join in joined_tables(frame)) == 2


@pytest.mark.parametrize("strategy", ["spark", "heuristic"])
def test_reimplementations_of_sparks_rules_see_the_subquery(db: SparkSession, strategy: str) -> None:
    df = db.sql(f"SELECT * FROM {SLOW} WHERE {JOINED['an average'][0]}")
    assert exported(df, strategy) == (0, 1)
    same_rows(df, strategy=strategy)
    assert exported(df) == (1, 0)


def test_nothing_is_rewritten_while_something_is_cached(db: SparkSession) -> None:
    df = db.sql(f"SELECT * FROM {SLOW} WHERE {JOINED['an average'][0]}")
    cached = db.sql("SELECT * FROM lines WHERE l_order > 3").cache()
    try:
        assert exported(df) == (0, 1)
        same_rows(df)
    finally:
        cached.unpersist(blocking=True)
    assert exported(df) == (1, 0)


def test_in_a_computed_column_it_is_kept(db: SparkSession) -> None:
    df = db.sql(f"SELECT o_id, (SELECT max(c_id) FROM customers WHERE c_region = o_region) m FROM {SLOW}")
    assert exported(df) == (0, 0)
    same_rows(df)


def test_of_groups(db: SparkSession) -> None:
    value = "(SELECT avg(c_id) FROM customers WHERE c_region = l_region)"
    df = db.sql(f"SELECT l_region, count(*) n FROM {SLOW} GROUP BY l_region HAVING count(*) > {value}")
    assert exported(df) == (1, 0)
    same_rows(df)


def test_a_second_value_is_still_an_error(db: SparkSession) -> None:
    if db.version < "4":
        pytest.skip("Spark 3.5 requires an aggregate here")
    df = db.sql(f"SELECT * FROM {SLOW} WHERE o_id > (SELECT c_id FROM customers WHERE c_region = o_region)")
    assert exported(df) == (0, 1)
    for frame in (df, df.optimize_joins()):
        with pytest.raises(Exception, match="SCALAR_SUBQUERY_TOO_MANY_ROWS"):
            frame.collect()


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize(
    "predicate",
    [
        "l_qty <> 0 AND 100 DIV l_qty > (SELECT avg(c_id) FROM customers WHERE c_region = o_region)",
        "l_qty <> 0 AND o_id > (SELECT max(c_id) FROM customers WHERE c_id = 100 DIV l_qty)",
        "o_id > (SELECT max(100 DIV c_region) FROM customers WHERE c_region = o_region AND c_region > 0)",
        "o_region > 0 AND o_id > (SELECT 100 DIV max(c_region) FROM customers WHERE c_region = o_region)",
    ],
)
def test_what_may_fail(db: SparkSession, ansi: str, predicate: str) -> None:
    db.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        df = db.sql(f"SELECT * FROM {SLOW} WHERE {predicate}")
        assert exported(df) == (1, 0)
        same_rows(df)
    finally:
        db.conf.unset("spark.sql.ansi.enabled")


@pytest.mark.parametrize("setting", ["decorrelateInnerQuery.enabled", "legacy.scalarSubqueryCountBugBehavior"])
@pytest.mark.parametrize("value", ["true", "false"])
def test_settings_of_spark(db: SparkSession, setting: str, value: str) -> None:
    key = f"spark.sql.{'optimizer.' * setting.startswith('d')}{setting}"
    db.conf.set(key, value)
    try:
        for name in ("count, empty groups", "count distinct", "a value in its place", "two in one"):
            df = db.sql(f"SELECT * FROM {OUTER} WHERE {JOINED[name][0]}")
            assert exported(df)[0] > 0
            same_rows(df)
    finally:
        db.conf.unset(key)


def test_columns_are_found_as_before(db: SparkSession) -> None:
    orders = db.table("orders").alias("o")
    lines = db.table("lines")
    df = orders.join(lines, orders.o_region == lines.l_region)
    df = df.where("o_id > (SELECT avg(c_id) FROM customers WHERE c_region = o_region) AND l_qty > 2")
    fast, report = optimised(df)
    assert report.changed and fast.columns == df.columns and fast.schema == df.schema
    assert fast.select("o.o_id", df["l_qty"], orders["o_day"]).count() == df.count()
    narrow = df.select("o_id", "o_region").where("o_id > (SELECT max(c_id) FROM customers WHERE c_region = o_region)")
    fast, report = optimised(narrow)
    assert report.changed and fast.orderBy("l_qty").columns == ["o_id", "o_region"]
    assert fast.where("l_qty > 3").count() == narrow.where("l_qty > 3").count()


@pytest.fixture(scope="module")
def enabled(db: SparkSession) -> Iterator[SparkSession]:
    enable(db)
    db.conf.set("spark.pyjoinopt.timeout", "60s")
    yield db
    db.conf.unset("spark.pyjoinopt.timeout")
    disable(db)


@pytest.mark.ci
def test_a_call_in_an_enabled_session(enabled: SparkSession) -> None:
    for predicate, _ in JOINED.values():
        df = enabled.sql(f"SELECT * FROM {OUTER} WHERE {predicate}")
        enabled.conf.set("spark.pyjoinopt.enabled", "false")
        written = df.collect()
        enabled.conf.set("spark.pyjoinopt.enabled", "true")
        fast, _ = optimised(df)
        assert_same_rows(written, fast, label=("plain Spark", predicate))
    assert all(report.error is None for report in last_reports(enabled))


AGGREGATES = ("avg({})", "sum({})", "min({})", "max({})", "count({})", "count(*)", "count(DISTINCT {})",
              "1.5 * avg({})", "coalesce(sum({}), -1)", "count({}) + min({})", "max({}) IS NULL")  # fmt: skip
INSIDE = {
    "customers": ("c_id", "c_region", {"o_region": "c_region", "o_customer": "c_id", "l_qty": "c_region"}),
    "vip": ("v_customer", "v_rank", {"o_customer": "v_customer", "l_qty": "v_rank", "l_order": "v_customer"}),
    "orders x": ("x.o_id", "x.o_region", {"o_customer": "x.o_customer", "l_order": "x.o_id", "l_qty": "x.o_region"}),
    "customers JOIN vip ON c_id = v_customer": ("c_id", "v_rank", {"o_customer": "c_id", "o_region": "c_region"}),
}
BESIDE = ("", "", "o_customer IN (SELECT v_customer FROM vip)", "l_qty > 1", "o_region IS NOT NULL OR l_qty = 2",
          "EXISTS (SELECT 1 FROM vip WHERE v_rank = l_qty)", "o_day > '2024-01-10'")  # fmt: skip
AROUND = ("SELECT * FROM {f} WHERE {p}", "SELECT o_id, count(*) FROM {f} WHERE {p} GROUP BY o_id",
          "SELECT * FROM (SELECT * FROM {f} WHERE {p}) a LEFT JOIN customers b ON b.c_id = a.o_id",
          "SELECT c_name FROM customers WHERE c_id IN (SELECT o_customer FROM {f} WHERE {p})",
          "SELECT c_name FROM customers c WHERE EXISTS (SELECT 1 FROM {f} WHERE {p} AND o_customer = c.c_id)",
          "SELECT * FROM customers y LEFT JOIN (SELECT l_qty, o_id FROM {f} WHERE {p}) ON o_id = y.c_id",
          "WITH w AS (SELECT o_id, l_qty FROM {f} WHERE {p}) SELECT * FROM w a JOIN w b USING (o_id)")  # fmt: skip
COMPARED = ("{o} < {v}", "{o} >= {v}", "{o} = {v}", "coalesce({v}, 3) > {o}", "{v} <=> {o}",
            "({o} > {v} OR l_qty = 3)", "NOT {o} > {v}", "{v} IS NULL", "{v} + {o} > 5")  # fmt: skip
FROM = (INNER, SLOW, OUTER, "lines LEFT JOIN orders ON l_order = o_id",
        "orders RIGHT JOIN lines ON l_order = o_id JOIN regions ON r_id = l_region")  # fmt: skip


def drawn(rng: random.Random) -> str:
    """A query with one or two values for each row, in the place of a filter."""
    parts = []
    for _ in range(rng.choice((1, 1, 2))):
        table = rng.choice(list(INSIDE))
        *columns, keys = INSIDE[table]
        own = rng.sample(sorted(keys), rng.choice((1, 1, 1, 2)))
        aggregate = rng.choice(AGGREGATES).format(*(rng.choice(columns) for _ in range(2)))
        having = rng.choice(("", "", "", " HAVING count(*) > 1"))
        filters = rng.choice(("", "", f" AND {columns[1]} > 0"))
        equal = " AND ".join(f"{keys[o]} {rng.choice(('=', '=', '<=>'))} {o.replace('o_', 'orders.o_')}" for o in own)
        value = f"(SELECT {aggregate} FROM {table} WHERE {equal}{filters}{having})"
        if aggregate.endswith("NULL"):
            parts.append(rng.choice(("{}", "NOT coalesce({}, false)")).format(value))
        else:
            outer = rng.choice(("l_qty", "orders.o_id", "orders.o_region", "l_order"))
            parts.append(rng.choice(COMPARED).format(v=value, o=outer))
    parts.append(rng.choice(BESIDE))
    rng.shuffle(parts)
    return rng.choice(AROUND).format(f=rng.choice(FROM), p=" AND ".join(part for part in parts if part))


@pytest.mark.ci
@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(n, marks=pytest.mark.slow) for n in range(4, 20))])
def test_drawn_queries(db: SparkSession, seed: int) -> None:
    rng, made = random.Random(f"scalar subqueries {seed}"), 0
    for _ in range(10):
        text = drawn(rng)
        df = db.sql(text)
        cost = rng.choice(("c_out", "spark"))
        try:
            written = df.collect()
        except Exception:  # Spark makes an invalid plan of some scalar subqueries within a correlated EXISTS
            assert "customers c WHERE EXISTS" in text
            continue
        made += exported(df)[0]
        fast, _ = optimised(df, cost=cost)
        assert_same_rows(written, fast, label=("plain Spark", text))
    assert made >= 3
