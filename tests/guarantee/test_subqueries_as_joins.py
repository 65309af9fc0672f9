"""The optimizer treats IN and EXISTS as semi and anti joins: they become part of join groups, or stay for a reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from pyjoinopt import JoinReport, disable, enable, last_reports
from tests.guarantee.drawn_orders import in_drawn_orders
from tests.support.shop import SLOW, optimised, unharmed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INNER = "lines JOIN orders ON l_region = o_region"
ASKED = {
    "in": ("o_customer IN (SELECT v_customer FROM vip)", "⋉"),
    "in, of two columns": ("(o_customer, l_qty) IN (SELECT v_customer, v_rank FROM vip)", "⋉"),
    "in, that looks outward": ("o_customer IN (SELECT v_customer FROM vip WHERE v_rank < l_qty)", "⋉"),
    "exists": ("EXISTS (SELECT 1 FROM vip WHERE v_customer = o_customer)", "⋉"),
    "exists, by no equality": ("EXISTS (SELECT * FROM vip v WHERE v.v_customer < o_customer AND v_rank <> l_qty)", "⋉"),
    "not exists": ("NOT EXISTS (SELECT 1 FROM vip WHERE v_customer = o_customer)", "▷"),
    "over joins": ("EXISTS (SELECT 1 FROM vip x JOIN customers y ON x.v_customer = y.c_id WHERE y.c_id = l_qty)", "⋉"),
    "nested": (
        "EXISTS (SELECT 1 FROM customers WHERE c_id = o_customer AND c_id IN (SELECT v_customer FROM vip))", "⋉",
    ),
    "of its own table": ("o_id IN (SELECT o_customer FROM orders)", "⋉"),
    "several": (
        "o_id IN (SELECT v_customer FROM vip) AND NOT EXISTS (SELECT 1 FROM customers WHERE c_region = l_qty)", "▷",
    ),
}  # fmt: skip


#: A subquery's own subquery, of which Spark makes an existence join, or a join only later.
INSIDE = {
    "exists or": "EXISTS (SELECT 1 FROM regions WHERE r_id <=> c_region) OR c_id > 3",
    "not exists or": "NOT EXISTS (SELECT 1 FROM regions WHERE r_id = c_region) OR c_id > 3",
    "in or": "c_region IN (SELECT r_id FROM regions WHERE r_id > 0) OR c_id > 3",
    "in or, that looks outward": "c_region IN (SELECT r_id FROM regions WHERE r_id <= c_id) OR c_id IS NULL",
    "not in": "c_region NOT IN (SELECT r_id FROM regions WHERE r_id > 1)",
    "two of them": (
        "(EXISTS (SELECT 1 FROM regions WHERE r_id = c_region)) = (EXISTS (SELECT 1 FROM vip WHERE c_id = v_rank))"
    ),
    "of three": (
        "EXISTS (SELECT 1 FROM regions WHERE r_id = c_region AND"
        " (EXISTS (SELECT 1 FROM vip WHERE v_rank = r_id) OR r_id > 2)) OR c_id > 3"
    ),
}
AROUND = {
    "exists": "EXISTS (SELECT 1 FROM customers WHERE ({}) AND c_id = o_customer)",
    "not exists": "NOT EXISTS (SELECT 1 FROM customers WHERE ({}) AND c_id = o_customer)",
    "in": "o_customer IN (SELECT c_id FROM customers WHERE {})",
    "in a join": "o_customer IN (SELECT c_id FROM customers JOIN regions x ON c_region = x.r_id WHERE {})",
}


@pytest.mark.ci
@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("inside", INSIDE)
def test_a_subquery_in_a_subquery_is_left_to_spark(db: SparkSession, inside: str, around: str) -> None:
    """Spark pulls up its outer references when it optimises the outer subquery, and only then makes a join of it."""
    text = f"SELECT * FROM {INNER} WHERE {AROUND[around].format(INSIDE[inside])}"
    fast = unharmed(db.sql(text), reordered=True, cost="c_out")
    assert "⋉" in signs(fast) or "▷" in signs(fast)


@pytest.fixture(scope="module")
def enabled(db: SparkSession) -> Iterator[SparkSession]:
    enable(db)
    db.conf.set("spark.pyjoinopt.timeout", "60s")
    db.conf.set("spark.pyjoinopt.cost", "c_out")
    yield db
    for key in ("timeout", "cost"):
        db.conf.unset(f"spark.pyjoinopt.{key}")
    disable(db)


@pytest.mark.ci
@pytest.mark.parametrize("around", AROUND)
def test_the_extension_leaves_them_to_spark(enabled: SparkSession, around: str) -> None:
    for inside in INSIDE.values():
        before = last_reports(enabled)
        text = f"SELECT * FROM {INNER} WHERE {AROUND[around].format(inside)}"
        enabled.conf.set("spark.pyjoinopt.enabled", "false")
        written = sorted(map(str, enabled.sql(text).collect()))
        enabled.conf.set("spark.pyjoinopt.enabled", "true")
        assert sorted(map(str, enabled.sql(text).collect())) == written, text
        reports = _added(before, last_reports(enabled))
        assert all(report.error is None for report in reports), text
        orders = [group.order_after or group.order_before for report in reports for group in report.groups]
        assert any(set("⋉▷") & set(order) for order in orders), text


def _added(before: list[JoinReport], after: list[JoinReport]) -> list[JoinReport]:
    """The reports that were added to a list whose oldest ones may have been dropped for them."""
    return next(after[len(before) - k :] for k in range(len(before) + 1) if before[k:] == after[: len(before) - k])


def signs(df) -> str:
    return " ".join(group.order_before for group in df._pyjoinopt_report.groups)


#: Their conditions read both relations, so they come last in any order.
LAST = ("in, of two columns", "in, that looks outward", "exists, by no equality")


@pytest.mark.parametrize("name", ASKED)
def test_they_take_part_in_the_group(db: SparkSession, name: str) -> None:
    predicate, sign = ASKED[name]
    fast = unharmed(db.sql(f"SELECT * FROM {INNER} WHERE {predicate}"), reordered=name not in LAST)
    assert sign in signs(fast)


@pytest.mark.parametrize("predicate", [predicate for predicate, _ in ASKED.values()], ids=ASKED)
def test_in_any_legal_order(db: SparkSession, monkeypatch: pytest.MonkeyPatch, predicate: str) -> None:
    plain = db.sql(f"SELECT * FROM {INNER} LEFT JOIN regions ON r_id = l_qty WHERE {predicate}")
    drawn = in_drawn_orders(plain, monkeypatch, predicate, 3)
    assert any(one != other for shown in drawn for one, other in shown)


def test_one_that_keeps_little_is_joined_first(db: SparkSession) -> None:
    fast = unharmed(db.sql(f"SELECT * FROM {INNER} WHERE o_customer IN (SELECT v_customer FROM vip)"), reordered=True)
    (group,) = fast._pyjoinopt_report.groups
    assert group.order_after in ("(lines ⋈ (orders ⋉ vip))", "((orders ⋉ vip) ⋈ lines)")


@pytest.mark.parametrize(
    "predicate",
    [
        "o_customer NOT IN (SELECT v_customer FROM vip)",
        "o_id NOT IN (SELECT v_customer FROM vip WHERE v_rank = l_qty)",
        "l_qty = 3 OR EXISTS (SELECT 1 FROM vip WHERE v_customer = o_customer)",
        "EXISTS (SELECT 1 FROM vip)",
        "(o_customer IN (SELECT v_customer FROM vip)) = (l_qty > 3)",
    ],
)
def test_others_stay(db: SparkSession, predicate: str) -> None:
    fast = unharmed(db.sql(f"SELECT * FROM {SLOW} WHERE {predicate}"), reordered=True)
    assert not set("⋉▷") & set(signs(fast))


def test_one_that_stays_beside_one_that_does_not(db: SparkSession) -> None:
    df = db.sql(f"""SELECT * FROM {INNER} WHERE o_customer IN (SELECT v_customer FROM vip)
        AND (l_qty = 3 OR EXISTS (SELECT 1 FROM customers WHERE c_id = o_customer)) AND o_id > 3""")
    fast = unharmed(df, reordered=True)
    assert "⋉" in signs(fast)


@pytest.mark.parametrize("strategy", ["spark", "heuristic"])
def test_twins_of_sparks_rules_see_what_these_see(db: SparkSession, strategy: str) -> None:
    df = db.sql(f"SELECT * FROM {SLOW} WHERE l_qty IN (SELECT c_region FROM customers)")
    for fast in (unharmed(df, strategy=strategy, reordered=False), unharmed_in_session(db, df, strategy)):
        assert "⋉" not in signs(fast)
    assert "⋉" in signs(unharmed(df, reordered=True))


def unharmed_in_session(db: SparkSession, df, strategy: str):
    db.conf.set("spark.pyjoinopt.strategy", strategy)
    try:
        return unharmed(df, reordered=False)
    finally:
        db.conf.unset("spark.pyjoinopt.strategy")


def test_nothing_moves_while_something_is_cached(db: SparkSession) -> None:
    df = db.sql(f"SELECT * FROM {INNER} WHERE o_customer IN (SELECT v_customer FROM vip)")
    cached = db.sql("SELECT * FROM lines WHERE l_order IN (SELECT c_id FROM customers)").cache()
    try:
        assert "⋉" not in signs(unharmed(df, reordered=False))  # two relations are left
    finally:
        cached.unpersist(blocking=True)
    assert "⋉" in signs(unharmed(df, reordered=True))


def test_columns_are_found_by_name_and_by_the_frame_as_before(db: SparkSession) -> None:
    orders = db.table("orders").alias("o")
    df = orders.join(db.table("lines"), orders.o_region == db.table("lines").l_region)
    df = df.where("o.o_customer IN (SELECT v_customer FROM vip) AND l_qty > 2")
    fast, _ = optimised(df)
    assert fast.columns == df.columns and fast.schema == df.schema
    assert fast.select("o.o_id", df["l_qty"], orders["o_day"]).count() == df.count()


def test_columns_that_were_left_out_can_still_be_named(db: SparkSession) -> None:
    narrow = db.table("orders").join(db.table("lines"), on=db.table("orders").o_region == db.table("lines").l_region)
    df = narrow.select("o_id", "o_customer").where("o_customer IN (SELECT v_customer FROM vip)")
    fast, report = optimised(df)
    assert report.changed and "⋉" in signs(fast)
    assert fast.orderBy("l_qty").columns == ["o_id", "o_customer"]
    assert fast.where("l_qty > 3").count() == df.where("l_qty > 3").count()
