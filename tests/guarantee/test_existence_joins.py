"""IN and EXISTS under OR become existence joins before the joins are ordered, or remain predicates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from pyjoinopt import disable, enable, last_reports
from tests.support.compare import assert_same_rows
from tests.support.shop import SLOW, analysed, executed, unharmed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EXISTS = "EXISTS (SELECT 1 FROM customers WHERE c_id = o_customer)"
#: Conjuncts over `lines JOIN orders JOIN vip`, and how many existence joins they become.
MARKED = {
    "exists": (f"o_id > 150 OR {EXISTS}", 1),
    "not exists": (f"o_id > 150 OR NOT {EXISTS}", 1),
    "in": ("o_id > 190 OR o_customer IN (SELECT c_region FROM customers)", 1),
    "in, with no rows": ("o_id > 190 OR o_customer IN (SELECT c_region FROM customers WHERE c_id < 0)", 1),
    "in, of two columns": ("o_id IS NULL OR (o_customer, o_region) IN (SELECT c_id, c_region FROM customers)", 1),
    "in, that looks outward": ("o_id > 190 OR o_customer IN (SELECT c_id FROM customers WHERE c_region < o_region)", 1),
    "of its own table": ("o_id > 190 OR o_customer IN (SELECT o_id FROM orders)", 1),
    "of joins": (f"o_id > 190 OR {EXISTS.replace('WHERE', 'JOIN regions ON r_id = c_region WHERE')}", 1),
    "of a limit": ("o_id > 190 OR o_customer IN (SELECT c_id FROM customers ORDER BY c_id LIMIT 3)", 1),
    "of a group": ("o_id > 190 OR o_id IN (SELECT count(*) FROM customers GROUP BY c_region)", 1),
    "two": (f"{EXISTS} OR o_id IN (SELECT l_order FROM lines WHERE l_qty = 2)", 2),
    "with AND": (f"(o_id > 150 AND {EXISTS}) OR (o_id < 9 AND o_id IN (SELECT c_id FROM customers))", 2),
    "of two conjuncts": (f"(o_id > 150 OR {EXISTS}) AND (o_id < 190 OR NOT {EXISTS})", 2),
    "nested": (
        "o_id > 190 OR o_customer IN (SELECT c_id FROM customers WHERE c_region IN (SELECT r_id FROM regions))", 1,
    ),
    "next to an anti join": (
        f"(o_id > 150 OR {EXISTS}) AND NOT EXISTS (SELECT 1 FROM vip x WHERE x.v_rank = l_qty)", 1,
    ),
    "fails on rows that others remove": ("o_id <> 0 AND (10 / o_id > 1 OR o_id IN (SELECT c_id FROM customers))", 1),
    "of several relations": ("l_price > 1.0D OR v_rank IN (SELECT c_region FROM customers)", 1),
    "on several relations": (
        "l_order IN (SELECT c_id FROM customers WHERE c_id > 2) OR v_rank IN (SELECT r_id FROM regions)", 2,
    ),
}  # fmt: skip
#: Conjuncts that remain predicates.
KEPT = {
    "not in": "o_id > 190 OR o_customer NOT IN (SELECT c_region FROM customers)",
    "negated": f"NOT (o_id > 150 AND o_customer IN (SELECT c_id FROM customers) AND {EXISTS})",
    "is null": "o_id > 190 OR (o_customer IN (SELECT c_region FROM customers)) IS NULL",
    "compared": f"o_id > 190 OR ({EXISTS}) = (o_id > 7)",
    "case": f"CASE WHEN {EXISTS} THEN o_id > 7 ELSE o_id < 100 END OR o_id > 190",
    "uncorrelated": "o_id > 190 OR EXISTS (SELECT 1 FROM customers WHERE c_id = 3)",
    "with an OR inside": "o_id > 190 OR EXISTS (SELECT 1 FROM customers WHERE c_id = o_customer OR c_region = o_id)",
    "with a scalar": f"o_id > (SELECT max(c_id) FROM customers WHERE c_region = o_region) OR {EXISTS}",
    "compares several relations": (
        "l_qty > 6 OR EXISTS (SELECT 1 FROM customers WHERE c_id = o_customer AND c_region = l_qty)"
    ),
    "of the largest relation": "l_order > 190 OR o_id IN (SELECT c_id FROM customers)",
    "may fail, next to a semi join": (
        "o_id IN (SELECT l_order FROM lines WHERE l_order > 0)"
        " AND (10 / o_id > 1 OR o_id IN (SELECT c_id FROM customers))"
    ),
    "may fail, next to another": (
        "o_id NOT IN (SELECT r_id FROM regions) AND (10 / o_id > 1 OR o_id IN (SELECT c_id FROM customers))"
    ),
    "of several relations, may fail": "10 / l_order > 1 OR v_rank IN (SELECT c_id FROM customers)",
}


def written(name: str) -> str:
    if name in MARKED:
        return MARKED[name][0]
    return KEPT[name] if "semi join" in name else f"o_id <> 0 AND l_order <> 0 AND ({KEPT[name]})"


def marks(df: DataFrame) -> int:
    return analysed(df).count("ExistenceJoin")


@pytest.mark.parametrize("name", MARKED)
def test_they_become_existence_joins(db: SparkSession, name: str) -> None:
    predicate, count = MARKED[name]
    fast = unharmed(db.sql(f"SELECT * FROM {SLOW} WHERE {predicate}"), reordered=True, hints=False)
    assert marks(fast) == count, analysed(fast)


@pytest.mark.parametrize("name", KEPT)
def test_others_remain_predicates(db: SparkSession, name: str) -> None:
    df = db.sql(f"SELECT * FROM {SLOW} WHERE {written(name)}")
    assert marks(unharmed(df, reordered=True)) == 0


#: Of several relations Spark makes them above the joins.
@pytest.mark.parametrize("name", [name for name in MARKED if not name.endswith("several relations")])
def test_the_joins_are_where_spark_makes_them(db: SparkSession, name: str) -> None:
    """The plans differ in the order of the other joins at most, so each existence join has the same left side."""
    predicate, _ = MARKED[name]
    df = db.sql(f"SELECT o_id FROM lines JOIN orders ON l_region = o_region WHERE {predicate}")
    assert left_sides(df.optimize_joins(strict=True, hints=False)) == left_sides(df)


def left_sides(df: DataFrame) -> list[list[str]]:
    """Names of the columns of each existence join's left side."""
    found, waiting = [], [df._jdf.queryExecution().optimizedPlan()]
    while waiting:
        node = waiting.pop()
        children = [node.children().apply(i) for i in range(node.children().size())]
        if node.nodeName() == "Join" and node.joinType().toString().startswith("ExistenceJoin"):
            output = children[0].output()
            found.append(sorted(output.apply(i).name() for i in range(output.size())))
        waiting += children
    return sorted(found)


@pytest.mark.ci
@pytest.mark.parametrize("name", [*MARKED, *KEPT])
def test_below_other_operators(db: SparkSession, name: str) -> None:
    predicate = written(name)
    for text in (
        f"SELECT o_region, count(*), sum(l_qty) FROM {SLOW} WHERE {predicate} GROUP BY o_region HAVING count(*) > 1",
        f"SELECT DISTINCT o_day FROM (SELECT * FROM {SLOW} WHERE {predicate}) LEFT JOIN regions ON r_id = o_region",
        f"SELECT * FROM regions LEFT JOIN (SELECT * FROM {SLOW} WHERE {predicate}) ON r_id = l_qty",
        f"SELECT * FROM regions WHERE EXISTS (SELECT 1 FROM {SLOW} WHERE l_qty = r_id AND ({predicate}))",
    ):
        df = db.sql(text)
        fast = df.optimize_joins(strict=True, cost="c_out")
        assert_same_rows(df, fast, label=("plain Spark", "optimised"))


def test_in_a_join_condition_and_a_projection(db: SparkSession) -> None:
    """Spark moves the first one into a filter; the others remain where they are."""
    first = f"lines JOIN orders ON l_region = o_region AND (o_id > 150 OR {EXISTS}) JOIN vip ON v_customer = o_customer"
    assert marks(unharmed(db.sql(f"SELECT * FROM {first}"), reordered=True)) == 1
    outer = f"({SLOW}) LEFT JOIN regions ON r_id = l_qty AND (r_id > 3 OR r_id IN (SELECT c_region FROM customers))"
    unharmed(db.sql(f"SELECT * FROM {outer}"), reordered=True)
    column = f"SELECT CASE WHEN {EXISTS} THEN 1 ELSE 2 END AS n FROM {SLOW}"
    assert marks(unharmed(db.sql(column), reordered=True)) == 0


def test_a_relation_that_an_outer_join_pads_keeps_its_predicate(db: SparkSession) -> None:
    padded = "lines LEFT JOIN orders ON l_region = o_region JOIN customers ON c_id = l_order"
    predicate = "o_id IS NULL OR o_customer IN (SELECT v_customer FROM vip)"
    assert marks(unharmed(db.sql(f"SELECT * FROM {padded} WHERE {predicate}"), reordered=True)) == 0


def test_it_is_hinted(db: SparkSession) -> None:
    """Spark takes a join for as large as the product of its sides, so it would sort both."""
    many = "SELECT l_order FROM lines JOIN orders ON l_region = o_region WHERE l_qty = 2 AND o_region = 1"
    df = db.sql(f"SELECT * FROM {SLOW} WHERE o_id > 190 OR o_customer IN ({many})")
    threshold = db.conf.get("spark.sql.autoBroadcastJoinThreshold")
    db.conf.set("spark.sql.autoBroadcastJoinThreshold", "200k")
    try:
        assert "SortMergeJoin" in executed(df)
        fast = unharmed(df, reordered=True)
        assert any(hint.side == "right" and "o_customer = l_order" in hint.join for hint in fast.join_report().hints)
        assert "ExistenceJoin" in executed(fast) and "SortMergeJoin" not in executed(fast)
    finally:
        db.conf.set("spark.sql.autoBroadcastJoinThreshold", threshold)


def test_nothing_changes_while_something_is_cached(db: SparkSession) -> None:
    df = db.sql(f"SELECT * FROM {SLOW} WHERE o_id > 150 OR {EXISTS}")
    cached = db.table("regions").cache()
    try:
        assert marks(unharmed(df, reordered=True)) == 0
    finally:
        cached.unpersist(blocking=True)


@pytest.fixture(scope="module")
def enabled(db: SparkSession) -> Iterator[SparkSession]:
    enable(db)
    db.conf.set("spark.pyjoinopt.timeout", "60s")
    db.conf.set("spark.pyjoinopt.cost", "c_out")
    yield db
    for key in ("timeout", "cost", "enabled"):
        db.conf.unset(f"spark.pyjoinopt.{key}")
    disable(db)


@pytest.mark.ci
@pytest.mark.parametrize("name", [*MARKED, *KEPT])
def test_the_extension_makes_them_too(enabled: SparkSession, name: str) -> None:
    text = f"SELECT * FROM {SLOW} WHERE {written(name)}"
    enabled.conf.set("spark.pyjoinopt.enabled", "false")
    rows = enabled.sql(text).collect()
    enabled.conf.set("spark.pyjoinopt.enabled", "true")
    before = len(last_reports(enabled))
    assert_same_rows(rows, enabled.sql(text).collect(), label=("plain Spark", "extension"))
    reports = last_reports(enabled)[before:]
    assert all(report.error is None for report in reports)
    relations = [r.name for report in reports for group in report.groups for r in group.relations]
    assert any("+" in relation for relation in relations) is (name in MARKED), relations


#: A NOT IN, and whether neither of its sides can be NULL.
NOT_IN = {
    "filtered": ("o_customer > 1 AND o_customer NOT IN (SELECT c_region FROM customers WHERE c_region > 1)", True),
    "of a join key": ("o_customer NOT IN (SELECT c_id FROM customers WHERE c_id IS NOT NULL AND c_region = 2)", True),
    "of no rows": ("o_id > 3 AND o_id NOT IN (SELECT c_region FROM customers WHERE c_region < 0)", True),
    "of two columns": (
        "o_id > 3 AND l_qty < 7"
        " AND (o_id, l_qty) NOT IN (SELECT c_id, c_region FROM customers WHERE c_id + c_region > 3)", True,
    ),
    "that looks outward": (
        "o_id > 3 AND o_id NOT IN (SELECT c_id FROM customers WHERE c_id > 0 AND c_region < o_region)", True,
    ),
    "left may be NULL": ("l_qty NOT IN (SELECT r_id FROM regions WHERE r_id > 3)", False),
    "left may be NULL, no rows": ("l_qty NOT IN (SELECT r_id FROM regions WHERE r_id > 30)", False),
    "right may be NULL": ("o_id > 3 AND o_id NOT IN (SELECT c_region FROM customers)", False),
    "one of two columns may be NULL": (
        "o_id > 3 AND (o_id, l_qty) NOT IN (SELECT c_id, c_region FROM customers WHERE c_id + c_region > 3)", False,
    ),
    "one alternative filters": (
        "(l_qty > 3 OR o_id > 9) AND l_qty NOT IN (SELECT r_id FROM regions WHERE r_id > 3)", False,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NOT_IN)
def test_not_in_of_filled_columns_is_an_anti_join(db: SparkSession, name: str) -> None:
    predicate, is_filled = NOT_IN[name]
    df = db.sql(f"SELECT * FROM {SLOW} WHERE {predicate}")
    fast = unharmed(df, reordered=True)
    signs = " ".join(group.order_before for group in fast.join_report().groups)
    assert ("▷" in signs) is is_filled
    tables = "orders LEFT JOIN lines ON l_order = o_id JOIN vip ON v_rank <> o_id"
    padded = db.sql(f"SELECT * FROM {tables} WHERE {predicate}")
    assert_same_rows(padded, padded.optimize_joins(strict=True, cost="c_out"), label=("plain Spark", "optimised"))


@pytest.mark.parametrize("name", NOT_IN)
def test_the_extension_does_the_same_with_not_in(enabled: SparkSession, name: str) -> None:
    predicate, is_filled = NOT_IN[name]
    text = f"SELECT * FROM {SLOW} WHERE {predicate}"
    enabled.conf.set("spark.pyjoinopt.enabled", "false")
    rows = enabled.sql(text).collect()
    enabled.conf.set("spark.pyjoinopt.enabled", "true")
    before = len(last_reports(enabled))
    assert_same_rows(rows, enabled.sql(text).collect(), label=("plain Spark", "extension"))
    orders = [group.order_before for report in last_reports(enabled)[before:] for group in report.groups]
    assert ("▷" in " ".join(orders)) is is_filled, orders
