"""Semi and anti joins stay in their place in an order, although Spark pushes such joins down."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pyjoinopt
from pyjoinopt.joins.emit import emit_plan, pinned_semi_joins
from tests.guarantee.drawn_orders import in_drawn_orders
from tests.support.compare import assert_same_rows
from tests.support.shop import SLOW, unharmed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MANY = "customers JOIN orders ON c_id = o_customer JOIN vip ON v_customer = c_id"
ASKED = {
    "in": "o_id IN (SELECT l_order FROM lines)",
    "exists": "EXISTS (SELECT 1 FROM lines WHERE l_order = o_id AND l_region <> o_region)",
    "not exists": "NOT EXISTS (SELECT 1 FROM lines WHERE l_order = o_id AND l_qty < 3)",
    "two of one": "o_id IN (SELECT l_order FROM lines) AND NOT EXISTS (SELECT 1 FROM regions WHERE r_id = o_region)",
    "null is a key": "EXISTS (SELECT 1 FROM lines WHERE l_qty <=> o_region)",
}


def lines_of(df: DataFrame) -> list[str]:
    """Joins of the optimised plan and the tables below them, from the top."""
    text = df._jdf.queryExecution().optimizedPlan().toString()
    return [line for line in text.splitlines() if re.search(r"(^|- )(Join|Relation)", line)]


@pytest.fixture
def all_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pinned_semi_joins, "FEWER", 1e9)


@pytest.mark.parametrize("predicate", ASKED.values(), ids=ASKED)
def test_late_in_the_order_is_late_in_the_plan(db: SparkSession, predicate: str) -> None:
    plain = db.sql(f"SELECT o_id, c_name FROM {MANY} WHERE {predicate}")
    assert "Existence" not in str(lines_of(plain))
    fast = unharmed(plain, reordered=True)
    (group,) = fast._pyjoinopt_report.groups
    assert re.search(r"\) [⋉▷] lines\)", group.order_after), group.order_after
    joins = [line for line in lines_of(fast) if "Join" in line]
    (late,) = (number for number, line in enumerate(joins) if "ExistenceJoin" in line)
    assert "Inner" in joins[late + 1]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.plugins", "org.apache.spark.CometPlugin"),
        ("spark.plugins", "a.b.OtherPlugin,org.apache.gluten.GlutenPlugin"),
        ("spark.sql.extensions", "org.apache.comet.CometSparkSessionExtensions"),
    ],
)
def test_none_is_held_where_a_native_engine_is_loaded(db: SparkSession, key: str, value: str) -> None:
    """The keys are static, so the test sets them in the SQLConf; `tests/formats/test_comet.py` runs the engine."""
    df = db.sql(f"SELECT o_id, c_name FROM {MANY} WHERE {ASKED['in']}")
    assert "ExistenceJoin" in str(lines_of(df.optimize_joins(strict=True)))
    conf = db._jsparkSession.sessionState().conf()
    conf.setConfString(key, value)
    try:
        fast = unharmed(df, reordered=True)
        assert "ExistenceJoin" not in str(lines_of(fast)) and fast.join_report().groups
    finally:
        conf.unsetConf(key)


def test_unheld_spark_undoes_it(db: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The assumption of the other tests: a join that is not pinned is pushed down."""
    monkeypatch.setattr(pinned_semi_joins, "FEWER", -1.0)
    fast = unharmed(db.sql(f"SELECT o_id, c_name FROM {MANY} WHERE {ASKED['in']}"), reordered=True)
    (group,) = fast._pyjoinopt_report.groups
    assert group.order_after.endswith("⋉ lines)")
    assert "Inner" in lines_of(fast)[0]


@pytest.mark.usefixtures("all_held")
@pytest.mark.parametrize("predicate", ASKED.values(), ids=ASKED)
@pytest.mark.parametrize("tables", [SLOW, f"{MANY} LEFT JOIN regions r2 ON r2.r_id = o_region"])
def test_held_in_any_legal_order(
    db: SparkSession, monkeypatch: pytest.MonkeyPatch, tables: str, predicate: str
) -> None:
    in_drawn_orders(db.sql(f"SELECT * FROM {tables} WHERE {predicate}"), monkeypatch, tables + predicate, 2)


def test_a_null_aware_join_is_not_held(db: SparkSession) -> None:
    """Spark has a special operator for NOT IN, which an existence join would prevent."""
    df = db.sql(f"SELECT o_id FROM {MANY} WHERE o_id NOT IN (SELECT l_order FROM lines WHERE l_qty > 5)")
    fast = unharmed(df, reordered=True)
    assert "Existence" not in str(lines_of(fast))


@pytest.mark.usefixtures("all_held")
def test_a_join_that_may_prune_partitions_is_not_held(db: SparkSession, tmp_path: Path) -> None:
    rows = db.sql("SELECT o_id AS d_order, o_customer AS d_customer, o_id % 20 AS d_day FROM orders")
    rows.write.partitionBy("d_day").parquet(str(tmp_path / "daily"))
    db.read.parquet(str(tmp_path / "daily")).createOrReplaceTempView("daily")
    joined = "SELECT d_order, c_name FROM customers JOIN daily ON c_id = d_customer JOIN vip ON v_customer = c_id"
    for key, name in (("d_day", "LeftSemi"), ("d_order", "ExistenceJoin")):
        fast = unharmed(db.sql(f"{joined} WHERE {key} IN (SELECT l_order FROM lines)"), reordered=True)
        (group,) = fast._pyjoinopt_report.groups
        assert re.search(r"\) ⋉ lines\)", group.order_after), group.order_after
        assert any(name in line for line in lines_of(fast)), lines_of(fast)


def test_used_again_it_is_a_semi_join_again(db: SparkSession) -> None:
    df = db.sql(f"SELECT o_id, o_region, c_name FROM {MANY} WHERE {ASKED['in']}")
    once = unharmed(df, hints=False, reordered=True)
    assert "ExistenceJoin" in once._jdf.queryExecution().analyzed().toString()
    joined = once.join(db.table("regions"), once.o_region == db.table("regions").r_id)
    again = unharmed(joined, hints=False, reordered=True)
    (group,) = again._pyjoinopt_report.groups
    assert "⋉ lines" in group.order_before and len(group.relations) == 5


@pytest.mark.usefixtures("all_held")
@pytest.mark.parametrize("predicate", [ASKED["in"], ASKED["two of one"]])
def test_used_like_any_frame(db: SparkSession, predicate: str) -> None:
    plain = db.sql(f"SELECT o_id, c_name FROM {MANY} WHERE {predicate}")
    fast = unharmed(plain, reordered=True)
    one, other = fast.alias("one"), fast.alias("other")
    with_itself = plain.alias("one").join(plain.alias("other"), "o_id")
    assert_same_rows(with_itself, one.join(other, "o_id"), label=("plain", "with itself"))
    unharmed(one.join(other, "o_id"), reordered=True)
    fast.createOrReplaceTempView("held_frame")
    inside = db.sql("SELECT count(*) FROM orders WHERE o_id IN (SELECT o_id FROM held_frame)")
    assert inside.collect() == [(plain.select("o_id").distinct().count(),)]
    unharmed(inside, reordered=False)  # the order of the frame, which is the best
    assert_same_rows(plain.union(plain), fast.union(fast), label=("plain", "twice"))
    fast.cache()
    try:
        assert_same_rows(plain, fast, label=("plain", "cached"))
        read = db.table("held_frame").join(db.table("orders"), "o_id")
        # The cached rows are one relation, and the product with one row comes last in any order.
        unharmed(read.join(db.table("vip"), db.table("vip").v_customer == 1), reordered=False)
    finally:
        fast.unpersist(blocking=True)


WITHIN = {
    "a value": "SELECT r_id, (SELECT max(o_id) FROM {joined} AND o_region = r_id) FROM regions",
    "a count": "SELECT r_id, (SELECT count(*) FROM {joined} AND o_region = r_id) FROM regions",
    "exists": "SELECT * FROM regions WHERE EXISTS (SELECT 1 FROM {joined} AND o_region < r_id)",
    "not in": "SELECT * FROM regions WHERE r_id NOT IN (SELECT o_region FROM {joined} AND o_region IS NOT NULL)",
    "lateral": "SELECT * FROM regions, LATERAL (SELECT o_id, c_name FROM {joined} AND o_region = r_id)",
    "left lateral": "SELECT * FROM regions LEFT JOIN LATERAL (SELECT sum(o_id) FROM {joined} AND o_region = r_id)",
    "twice": "WITH t AS (SELECT o_id, c_name FROM {joined}) SELECT * FROM t a JOIN t b USING (o_id)",
}


@pytest.mark.ci
@pytest.mark.usefixtures("all_held")
@pytest.mark.parametrize("text", WITHIN.values(), ids=WITHIN)
def test_within_subqueries(db: SparkSession, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Spark's optimizer pulls correlated predicates out of these subqueries, from around the pinned join."""
    decided = []
    should_pin = pinned_semi_joins.should_pin
    monkeypatch.setattr(emit_plan, "should_pin", lambda *facts: decided.append(should_pin(*facts)) or decided[-1])
    for kind in ("SEMI", "ANTI"):
        joined = f"{MANY} LEFT {kind} JOIN lines ON l_order = o_id AND l_region <> o_region WHERE o_id > 3"
        in_drawn_orders(db.sql(text.format(joined=joined)), monkeypatch, text + kind, 3)
    assert any(decided)


def test_where_spark_moves_nothing_more_nothing_is_held(db: SparkSession) -> None:
    """The session extension comes after the rule that would move them."""
    text = f"SELECT o_id, c_name FROM {MANY} WHERE {ASKED['in']}"
    session = db.newSession()
    for name in ("customers", "orders", "vip", "lines"):
        db.table(name).createOrReplaceGlobalTempView(f"held_{name}")
        text = re.sub(rf"\b{name}\b", f"global_temp.held_{name} {name}", text)
    pyjoinopt.enable(session, cost="c_out")
    try:
        df = session.sql(text)
        top, below = lines_of(df)[:2]
        assert "LeftSemi" in top and "Inner" in below
    finally:
        pyjoinopt.disable(session)
