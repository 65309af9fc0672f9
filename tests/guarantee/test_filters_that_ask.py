"""Filters with subqueries that don't become semi or anti joins: Spark moves them with joins, so groups include them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pyjoinopt.feedback import listener
from tests.guarantee.drawn_orders import in_drawn_orders
from tests.support.shop import SLOW, optimised, unharmed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ASKING = {
    "one relation, one value": "o_id > (SELECT max(v_customer) FROM vip)",
    "one relation, its own value": "o_id >= (SELECT max(c_id) FROM customers WHERE c_region = o_region)",
    "two relations, one value": "o_id + l_qty > (SELECT min(c_id) FROM customers)",
    "two relations, their own value": "o_id - l_qty > (SELECT min(c_id) FROM customers WHERE c_region = o_region)",
    "all relations": "o_id + v_rank <> (SELECT count(*) FROM customers WHERE c_region = l_qty)",
    "no column": "(SELECT count(*) FROM vip) < 4",
    "no column, no row": "(SELECT count(*) FROM vip) > 4",
    "are there any": "EXISTS (SELECT 1 FROM vip WHERE v_rank = 1)",
    "not in": "o_customer NOT IN (SELECT v_customer + 1 FROM vip)",
    "not in, two relations": "o_id NOT IN (SELECT v_customer FROM vip WHERE v_rank < l_qty)",
    "or": "l_qty = 3 OR EXISTS (SELECT 1 FROM customers WHERE c_id = o_customer AND c_region = 1)",
    "or, one relation": "o_id < 9 OR o_customer IN (SELECT c_id FROM customers WHERE c_region = 1)",
    "a test of a test": "(o_customer IN (SELECT c_id FROM customers WHERE c_region < 3)) = (l_qty > 3)",
    "between two": "o_id BETWEEN (SELECT min(v_customer) FROM vip) AND (SELECT max(c_id) FROM customers)",
    "first of each": """o_day = (SELECT min(o.o_day) FROM orders o JOIN customers ON o.o_customer = c_id
        WHERE o.o_customer = v_customer)""",
    "of a row that may be missing": "coalesce(r_id, 9) > (SELECT min(c_region) FROM customers WHERE c_id = l_qty)",
}
LEFT = f"{SLOW} LEFT JOIN regions ON r_id = l_qty"


@pytest.mark.ci
@pytest.mark.parametrize("predicate", ASKING.values(), ids=ASKING)
def test_in_any_legal_order(db: SparkSession, monkeypatch: pytest.MonkeyPatch, predicate: str) -> None:
    plain = db.sql(f"SELECT * FROM {LEFT} WHERE {predicate}")
    drawn = in_drawn_orders(plain, monkeypatch, predicate, 4)
    assert all(any(written.count("⋈") >= 2 for written, _ in shown) for shown in drawn), f"not whole: {drawn}"
    assert sum(any(one != other for one, other in shown) for shown in drawn) >= 2


def test_they_count_where_spark_tests_them(db: SparkSession) -> None:
    predicate = ASKING["one relation, one value"]
    _, without = optimised(db.sql(f"SELECT * FROM {SLOW}"))
    fast = unharmed(db.sql(f"SELECT * FROM {SLOW} WHERE {predicate}"), reordered=True)
    rows = [
        {r.name: r.rows for r in report.groups[0].relations}["orders"]
        for report in (without, fast._pyjoinopt_report)
    ]
    assert rows[1] < rows[0] / 2
    assert not fast._pyjoinopt_report.refusals


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT o_region, count(*) FROM {SLOW} GROUP BY o_region HAVING o_region > (SELECT min(r_id) FROM regions)",
        f"""SELECT * FROM (SELECT o_id, rank() OVER (PARTITION BY o_region ORDER BY o_id, l_order) AS n, o_region
            FROM {SLOW}) WHERE o_region > (SELECT min(r_id) FROM regions)""",
        f"""SELECT * FROM (SELECT o_id, l_qty FROM {SLOW} UNION ALL SELECT c_id, c_region FROM customers)
            WHERE o_id > (SELECT max(v_customer) FROM vip)""",
        f"SELECT * FROM (SELECT DISTINCT o_id FROM {SLOW}) WHERE o_id NOT IN (SELECT v_customer FROM vip)",
    ],
    ids=["group", "window", "union", "distinct"],
)
def test_from_above_they_come_to_the_joins_as_in_spark(db: SparkSession, text: str) -> None:
    fast = unharmed(db.sql(text), reordered=True)
    (group,) = fast._pyjoinopt_report.groups
    assert {relation.name: relation.rows for relation in group.relations}["orders"] <= 150


def test_of_a_computed_column_it_stays(db: SparkSession) -> None:
    """A column that a nested plan references cannot be replaced by the expression that it is computed from."""
    inside = f"SELECT o_id + l_qty AS n, o_customer FROM {SLOW}"
    text = f"SELECT * FROM ({inside}) WHERE n > (SELECT min(c_id) FROM customers WHERE c_region = n % 5)"
    unharmed(db.sql(text), reordered=True)


def test_a_value_for_each_row_that_may_be_two_is_evaluated_for_no_other_row(db: SparkSession) -> None:
    """Spark fails if the subquery returns two values for a row; the written order removes such rows before."""
    if db.version < "4":
        pytest.skip("Spark 3.5 requires an aggregate here")
    text = f"""SELECT * FROM {SLOW} WHERE l_price + o_id <> (SELECT c_id FROM customers WHERE c_id = o_customer + l_qty)
        AND l_qty < 4"""
    unharmed(db.sql(text), reordered=False)  # nothing may move past it


def test_counts_of_a_run_are_those_after_the_subquery_was_evaluated(db: SparkSession) -> None:
    predicate = ASKING["or, one relation"]
    df = db.sql(f"SELECT * FROM {SLOW} WHERE {predicate}")
    fast, report = optimised(df)
    listener.analyze(report, df, fast, True)
    true = db.sql(f"SELECT * FROM orders WHERE ({predicate}) AND o_customer + o_region IS NOT NULL").count()
    counted = {o.rows for run in report.runs for o in run.operators if set(o.relations) == {"orders+customers"}}
    assert counted == {true}, report.runs
