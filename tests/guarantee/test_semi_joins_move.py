"""Semi and anti joins, written as such or born from INTERSECT and EXCEPT, move among inner joins without harm."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.shop import SLOW, unharmed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KINDS = ("SEMI", "ANTI")
INNER = "lines JOIN orders ON l_region = o_region"


def order_of(df) -> str:
    (group,) = (g for g in df._pyjoinopt_report.groups if g.changed)
    return group.order_after


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("comparison", ["=", "<=>", "<"])
def test_a_join_that_only_looks_is_done_before_a_large_one(db: SparkSession, kind: str, comparison: str) -> None:
    df = db.sql(f"SELECT * FROM {INNER} LEFT {kind} JOIN vip ON v_customer {comparison} o_customer")
    fast = unharmed(df, reordered=True)
    inside = f"(orders {'⋉' if kind == 'SEMI' else '▷'} vip)"
    assert order_of(fast) in (f"(lines ⋈ {inside})", f"({inside} ⋈ lines)")


@pytest.mark.parametrize("kind", KINDS)
def test_its_condition_reads_two_relations(db: SparkSession, kind: str) -> None:
    join = f"{SLOW} LEFT {kind} JOIN customers ON c_id = o_customer AND c_region <=> l_region"
    unharmed(db.sql(f"SELECT o_id, l_qty FROM {join}"), reordered=True)


@pytest.mark.parametrize("kind", KINDS)
def test_its_condition_also_tests_one_side(db: SparkSession, kind: str) -> None:
    join = f"{SLOW} LEFT {kind} JOIN customers ON c_id = o_customer AND l_qty > 2 AND c_name IS NOT NULL"
    unharmed(db.sql(f"SELECT * FROM {join}"), reordered=True)


@pytest.mark.parametrize("kind", KINDS)
def test_what_it_looks_into_is_joined_as_well(db: SparkSession, kind: str) -> None:
    vip, orders, lines = (db.table(t) for t in ("vip", "orders", "lines"))
    looked = orders.join(vip, orders.o_customer == vip.v_customer, f"left_{kind.lower()}")
    to_lines, to_vip = orders.o_region == lines.l_region, lines.l_qty == vip.v_customer
    unharmed(looked.join(lines, to_lines).join(vip, to_vip), reordered=True)
    unharmed(looked.join(vip, orders.o_id == vip.v_customer).join(lines, to_lines), reordered=True)


@pytest.mark.parametrize("kind", KINDS)
def test_it_looks_into_joins(db: SparkSession, kind: str) -> None:
    inside = "(SELECT c_id FROM customers JOIN orders o2 ON c_region = o2.o_region JOIN vip v2 ON c_id = v2.v_customer)"
    unharmed(db.sql(f"SELECT * FROM {SLOW} LEFT {kind} JOIN {inside} i ON i.c_id = o_customer"), reordered=True)


@pytest.mark.parametrize("kind", KINDS)
def test_a_computed_column_between(db: SparkSession, kind: str) -> None:
    between = f"SELECT *, l_qty + o_region AS s FROM {SLOW}"
    unharmed(db.sql(f"SELECT * FROM ({between}) LEFT {kind} JOIN customers ON c_id = s"), reordered=True)


@pytest.mark.parametrize("operation", ["INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"])
@pytest.mark.parametrize("swap", [False, True])
def test_set_operations_over_joins(db: SparkSession, operation: str, swap: bool) -> None:
    joins = f"SELECT o_id, l_qty, v_rank FROM {SLOW}"
    single = "SELECT l_order, l_qty, l_region FROM lines"
    one, other = (single, joins) if swap else (joins, single)
    unharmed(db.sql(f"{one} {operation} {other}"), reordered=True)


@pytest.mark.parametrize("operation", ["INTERSECT", "EXCEPT"])
def test_the_semi_join_of_a_set_operation_takes_part(db: SparkSession, operation: str) -> None:
    df = db.sql(f"SELECT o_customer FROM {INNER} {operation} SELECT v_customer FROM vip")
    fast = unharmed(df, reordered=True)
    sign = "⋉" if operation == "INTERSECT" else "▷"
    assert any(sign in group.order_before for group in fast._pyjoinopt_report.groups)
