"""Subqueries, LATERAL, common table expressions and views are optimised inside, and stay in place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.shop import SLOW, optimised, unharmed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INSIDE = {
    "exists": f"EXISTS (SELECT 1 FROM {SLOW} WHERE o_id = c_id)",
    "not exists": f"NOT EXISTS (SELECT 1 FROM {SLOW} WHERE o_id = c_id)",
    "in": f"c_id IN (SELECT o_id FROM {SLOW})",
    "not in": f"c_id NOT IN (SELECT o_id FROM {SLOW})",
    "in that looks outward": f"c_region IN (SELECT l_qty FROM {SLOW} WHERE o_customer = c_id)",
    "scalar": f"c_id < (SELECT max(o_id) FROM {SLOW})",
    "scalar that looks outward": f"c_id <= (SELECT count(*) FROM {SLOW} WHERE o_customer = c_id)",
    "under or": f"c_id < 5 OR EXISTS (SELECT 1 FROM {SLOW} WHERE o_id = c_id)",
    "nested": f"c_id IN (SELECT r_id FROM regions WHERE r_id < (SELECT max(o_id) FROM {SLOW}))",
}


@pytest.mark.parametrize("predicate", INSIDE.values(), ids=INSIDE)
def test_joins_inside_a_subquery_are_ordered(db: SparkSession, predicate: str) -> None:
    unharmed(db.sql(f"SELECT * FROM customers WHERE {predicate}"), reordered=True)


@pytest.mark.parametrize("predicate", INSIDE.values(), ids=INSIDE)
def test_subquery_above_joins(db: SparkSession, predicate: str) -> None:
    text = f"SELECT o_id, c_id, v_rank FROM {SLOW} JOIN customers ON c_id = o_customer WHERE {predicate}"
    unharmed(db.sql(text), reordered=True)


@pytest.mark.parametrize(
    "predicate",
    [
        "o_id > (SELECT avg(c_id) FROM customers WHERE c_region = l_region)",
        "EXISTS (SELECT 1 FROM customers WHERE c_region = l_qty AND c_id <> o_id)",
        "NOT EXISTS (SELECT 1 FROM customers, regions WHERE c_region = r_id AND c_id = o_id AND r_id = l_qty)",
        "(l_qty, o_region) IN (SELECT c_region, r_id FROM customers JOIN regions ON c_region = r_id)",
        "l_qty NOT IN (SELECT c_region FROM customers WHERE c_id = v_customer)",
    ],
)
def test_correlated_subquery_over_several_joined_tables(db: SparkSession, predicate: str) -> None:
    unharmed(db.sql(f"SELECT * FROM {SLOW} WHERE {predicate}"), reordered=True)


def test_scalar_subquery_in_the_select_list(db: SparkSession) -> None:
    unharmed(db.sql(f"""SELECT o_id, (SELECT max(c_name) FROM customers WHERE c_id = o_customer) AS name,
        (SELECT count(*) FROM {SLOW.replace('orders', 'orders o2')}) AS n FROM {SLOW}"""), reordered=True)  # fmt: skip


def test_scalar_subquery_in_a_join_condition(db: SparkSession) -> None:
    unharmed(db.sql(f"SELECT * FROM {SLOW} AND o_id < (SELECT max(c_id) FROM customers)"), reordered=True)


@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN", "CROSS JOIN"])
def test_lateral_subquery(db: SparkSession, kind: str) -> None:
    on = "" if kind == "CROSS JOIN" else "ON true"
    lateral = f"LATERAL (SELECT c_name, c_id FROM customers WHERE c_region = l_qty AND c_id > o_id) {on}"
    unharmed(db.sql(f"SELECT * FROM {SLOW} {kind} {lateral}"), reordered=True)


def test_joins_inside_a_lateral_subquery(db: SparkSession) -> None:
    unharmed(
        db.sql(f"""SELECT * FROM customers, LATERAL (SELECT count(*) AS n, max(l_qty) AS q
        FROM {SLOW} WHERE o_customer = c_id)"""),
        reordered=True,
    )


def test_lateral_view_and_table_function(db: SparkSession) -> None:
    unharmed(db.sql(f"SELECT o_id, e FROM {SLOW} LATERAL VIEW explode(array(o_id, l_qty)) t AS e"), reordered=True)
    unharmed(db.sql(f"SELECT o_id, e FROM {SLOW}, LATERAL explode(sequence(1, v_rank + 1)) t(e)"), reordered=True)


def test_common_table_expression_used_once(db: SparkSession) -> None:
    unharmed(db.sql(f"WITH t AS (SELECT o_id, v_rank FROM {SLOW}) SELECT * FROM t WHERE v_rank = 1"), reordered=True)


def test_common_table_expression_used_twice_is_ordered_once(db: SparkSession) -> None:
    df = db.sql(f"""WITH t AS (SELECT o_id, l_qty FROM {SLOW} WHERE l_qty > 1)
        SELECT a.o_id, b.l_qty FROM t a JOIN t b ON a.o_id = b.o_id JOIN customers ON c_id = a.o_id""")
    unharmed(df, reordered=True)
    _, report = optimised(df)
    assert sum(any("lines" in relation.name for relation in group.relations) for group in report.groups) == 1


def test_nested_common_table_expressions(db: SparkSession) -> None:
    unharmed(db.sql(f"""WITH t AS (WITH u AS (SELECT o_id, v_rank FROM {SLOW}) SELECT * FROM u WHERE v_rank = 1),
        w AS (SELECT t.o_id AS w_id FROM t JOIN customers ON c_id = o_id)
        SELECT * FROM t, w WHERE t.o_id = w.w_id AND t.o_id IN (SELECT w_id FROM w)"""), reordered=True)  # fmt: skip


def test_common_table_expression_referenced_from_a_subquery(db: SparkSession) -> None:
    unharmed(db.sql(f"""WITH t AS (SELECT o_id, l_qty FROM {SLOW}) SELECT * FROM customers
        WHERE c_id IN (SELECT o_id FROM t) AND c_region < (SELECT max(l_qty) FROM t)"""), reordered=True)  # fmt: skip


def test_nondeterministic_common_table_expression_stays_one(db: SparkSession) -> None:
    df = db.sql(f"""WITH t AS (SELECT o_id, l_order, rand() AS r FROM {SLOW})
        SELECT count(*) FROM t a JOIN t b ON a.o_id = b.o_id AND a.l_order = b.l_order AND a.r = b.r""")
    fast, _ = optimised(df)
    assert df.collect() == fast.collect() != [(0,)]


def test_recursive_common_table_expression(db: SparkSession) -> None:
    df = db.sql(f"""WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 5)
        SELECT * FROM {SLOW} JOIN t ON n = l_qty""")
    unharmed(df, reordered=True)


def test_temporary_and_stored_views(db: SparkSession) -> None:
    db.sql(f"SELECT o_id, l_qty, v_rank FROM {SLOW}").createOrReplaceTempView("slow_view")
    db.sql("CREATE OR REPLACE TEMP VIEW slow_sql_view AS SELECT * FROM slow_view WHERE l_qty > 2")
    for name in ("slow_view", "slow_sql_view"):
        unharmed(db.table(name), reordered=True)
        unharmed(db.sql(f"SELECT * FROM {name} JOIN customers ON c_id = o_id"), reordered=True)
        twice = db.sql(f"SELECT a.o_id FROM {name} a JOIN {name} b ON a.o_id = b.o_id WHERE a.v_rank = 1")
        unharmed(twice, reordered=True)


def test_permanent_view(db: SparkSession) -> None:
    db.sql("CREATE DATABASE IF NOT EXISTS shopdb")
    db.sql("CREATE OR REPLACE TEMP VIEW lines_v AS SELECT * FROM lines")
    for name in ("lines", "orders", "vip"):
        db.table(name).write.mode("overwrite").saveAsTable(f"shopdb.{name}")
    text = SLOW
    for name in ("lines", "orders", "vip"):
        text = text.replace(f"{name} ", f"shopdb.{name} {name} ")
    db.sql(f"CREATE OR REPLACE VIEW shopdb.slow AS SELECT o_id, CAST(l_qty AS BIGINT) AS q FROM {text}")
    unharmed(db.table("shopdb.slow"), reordered=True)
    unharmed(db.sql("SELECT * FROM shopdb.slow s JOIN customers ON c_id = s.o_id WHERE q > 1"), reordered=True)
    db.sql("DROP DATABASE shopdb CASCADE")


def test_what_is_defined_is_estimated_alike_however_it_is_written(db: SparkSession) -> None:
    """One definition is reordered; for the other the written order is the best one."""
    known = []
    for written in (SLOW, "orders JOIN vip ON v_customer = o_customer JOIN lines ON l_region = o_region"):
        df = db.sql(f"""WITH t AS (SELECT o_id, count(*) AS n FROM {written} GROUP BY o_id)
            SELECT * FROM t a JOIN t b ON a.o_id = b.o_id JOIN customers ON c_id = b.n""")
        outer = optimised(df)[1].groups[-1]
        known.append(sorted((r.name, r.rows, r.bound) for r in outer.relations))
    assert len(known[0]) == 3 and known[0] == known[1]
