"""Left joins of which only the rows without a partner are kept become anti joins, and give the same rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pyjoinopt.plan.nodes import ANTI, FULL, INNER, LEFT, RIGHT, Filter, Join, LogicalPlan
from pyjoinopt.plan.traversal import post_order
from pyjoinopt.rewrites.left_join_to_anti_join import outer_join_as_anti_join
from tests.support import shop
from tests.support.compare import assert_same_rows, assert_same_schema
from tests.support.letters import Letters

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def query(w: Letters, test: str, join_type: str = LEFT, on: str = "a1 = b1", read: str = "a1 a2") -> LogicalPlan:
    a, b = w.relation("a", "a1 a2"), w.relation("b", "b1 b2")
    return w.project(read, Filter(w(test), Join(a, b, join_type, w(on))))


def types(plan: LogicalPlan) -> list[str]:
    return [node.join_type for node in post_order(plan) if isinstance(node, Join)]


@pytest.mark.parametrize(
    ("test", "on", "changes"),
    [
        ("b1 is null", "a1 = b1", True), ("b1 is null and a2 > 1", "a1 = b1", True),
        ("b1 is null and b2 is null", "a1 = b1", True), ("b2 is null", "a1 = b1 and b2 > 3", True),
        ("b2 is null", "a1 = b1", False),  # there may be partners with a NULL
        ("b1 is null", "a1 <=> b1", False), ("b1 is null or a2 > 1", "a1 = b1", False),
        ("b1 is null and coalesce(b2, 1) = 1", "a1 = b1", False), ("b1 is not null", "a1 = b1", False),
        ("a1 is null", "a1 = b1", False), ("b1 is null and a2 = b2", "a1 = b1", False),
    ],
)  # fmt: skip
def test_which_tests_keep_only_padded_rows(w: Letters, test: str, on: str, changes: bool) -> None:
    plan = query(w, test, LEFT, on)
    result = outer_join_as_anti_join(plan).plan
    assert types(result) == [ANTI if changes else LEFT]
    assert (result is plan) is not changes


def test_filters_on_the_padded_side(w: Letters) -> None:
    a, b = w.relation("a", "a1 a2"), w.relation("b", "b1 b2")
    filtered = w.project("b1 b2", Filter(w("b2 > 3"), b))
    plan = w.project("a1", Filter(w("b2 is null"), Join(a, filtered, LEFT, w("a1 = b1"))))
    assert types(outer_join_as_anti_join(plan).plan) == [ANTI]


def test_the_other_side(w: Letters) -> None:
    plan, notes = outer_join_as_anti_join(query(w, "a1 is null", RIGHT, read="b1 b2"))
    (join,) = (node for node in post_order(plan) if isinstance(node, Join))
    assert join.join_type == ANTI and [a.name for a in join.left.output] == ["b1", "b2"]
    assert notes == ("right join of a and b became anti: (a1 IS NULL) keeps only rows of b without a partner",)
    assert types(outer_join_as_anti_join(query(w, "a1 is null", FULL, read="b1")).plan) == [FULL]


def test_not_if_somebody_reads_the_padded_side(w: Letters) -> None:
    for read in ("a1 b1", "b2"):
        plan = query(w, "b1 is null", read=read)
        assert outer_join_as_anti_join(plan).plan is plan
    whole = query(w, "b1 is null").children[0]
    assert outer_join_as_anti_join(whole).plan is whole, "all its columns are the result"
    hidden = query(w, "b1 is null")
    hidden.info["hidden"] = [next(a.bit for a in whole.output if a.name == "b2")]
    assert outer_join_as_anti_join(hidden).plan is hidden, "a USING join's column can still be asked for"


def test_what_is_computed_from_padded_columns_goes_with_them(w: Letters) -> None:
    """A projection between the join and the reader computes a column that nobody reads."""
    a, b, c = w.relation("a", "a1 a2"), w.relation("b", "b1 b2"), w.relation("c", "c1")
    padded = Filter(w("b1 is null"), Join(a, b, LEFT, w("a1 = b1")))
    between = w.project("a1 a2", padded, w.alias("n", "b2 + 1"))
    plan = w.project("a2", Join(between, c, INNER, w("a2 = c1")))
    result = outer_join_as_anti_join(plan)
    assert types(result) == [ANTI, INNER]
    for node in post_order(result):
        below = sum({child.output_set for child in node.children})
        assert not node.children or not node.references & ~below, node


def test_through_joins_above(w: Letters) -> None:
    a, b, c = w.relation("a", "a1 a2"), w.relation("b", "b1 b2"), w.relation("c", "c1")
    padded = Filter(w("b1 is null"), Join(a, b, LEFT, w("a1 = b1")))
    plan = w.project("a2", Join(padded, c, INNER, w("a2 = c1")))
    assert types(outer_join_as_anti_join(plan).plan) == [ANTI, INNER]
    plan = w.project("a2", Join(padded, c, LEFT, w("a2 = c1 and b2 is null")))
    assert types(outer_join_as_anti_join(plan).plan) == [LEFT, LEFT]


def test_not_if_the_condition_may_fail(w: Letters) -> None:
    """Spark would move the anti join down to `a`, where it meets rows that the join with `c` takes away."""
    a, b, c = w.relation("a", "a1 a2"), w.relation("b", "b1"), w.relation("c", "c1")
    joined = Join(a, c, INNER, w("a1 = c1"))
    for on in ("a1 = b1 and risky(a2) > 1", "risky(a1) = b1"):
        plan = w.project("a1", Filter(w("b1 is null"), Join(joined, b, LEFT, w(on))))
        assert outer_join_as_anti_join(plan).plan is plan
    computed = w.project("a1", joined, w.alias("x", "risky(a2)"))
    plan = w.project("a1", Filter(w("b1 is null"), Join(computed, b, LEFT, w("a1 = b1 and x > 1"))))
    assert outer_join_as_anti_join(plan).plan is plan
    plan = w.project("a1", Filter(w("b1 is null"), Join(computed, b, LEFT, w("a1 = b1"))))
    assert types(outer_join_as_anti_join(plan).plan) == [INNER, ANTI]


# -- real rows, with NULLs and partners more than one ----------------------------------------------------------------


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop")
    shop.write(folder)
    shop.register(spark, folder)
    spark.sql(
        "CREATE OR REPLACE TEMP VIEW padded_customers AS SELECT c_id, c_region, o_customer k, o_day || '' d "
        "FROM customers LEFT JOIN orders ON c_id = o_customer"
    )
    return folder


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("select c_id, c_name from customers left join orders on c_id = o_customer where o_customer is null", True),
        ("select c_id from orders right join customers on c_id = o_customer and o_region = c_region "
         "where o_region is null and c_name is not null", True),
        ("select o_id, c_name from orders left join lines on o_id = l_order and l_qty > 6 join customers "
         "on o_customer = c_id where l_order is null", True),
        ("select o_region, count(*) from orders left join lines on o_id = l_order and l_price > 3 left join vip "
         "on v_customer = o_customer where l_price is null group by o_region", True),
        ("select c_id from customers where c_id in (select o_id from orders left join vip on o_customer = v_customer "
         "where v_customer is null)", True),
        ("select c_id, o_day from customers left join orders on c_id = o_customer where o_customer is null", False),
        ("select c_id from customers left join orders on c_id = o_customer where o_region is null", False),
        ("select * from customers left join orders on c_id = o_customer where o_customer is null", False),
        ("select c_id from customers left join orders on c_id = o_customer where o_customer is null "
         "union all select v_customer from vip", True),
        # Columns of the padded side are computed from below, and read by nobody.
        ("select x.c_id, r_name from (select c_id, c_region, o_customer k, upper(o_day) d from customers "
         "left join orders on c_id = o_customer) x join regions on r_id = c_region where k is null", True),
        ("select c_id from padded_customers join regions on r_id = c_region where k is null", True),
        ("select c_region, count(*) from (select c_region, c_id, o_customer k, o_day || '' d from customers "
         "left join orders on c_id = o_customer) where k is null group by c_region with rollup", True),
        ("select c_id, row_number() over (partition by c_region order by c_id) n from (select c_region, c_id, "
         "o_customer k, o_day || '' d from customers left join orders on c_id = o_customer) where k is null", True),
    ],
)  # fmt: skip
def test_the_same_rows(spark: SparkSession, tables: Path, text: str, changes: bool) -> None:
    df = spark.sql(text)
    fast, report = shop.optimised(df)
    assert_same_schema(df, fast)
    assert_same_rows(df, fast, label=("plain Spark", "optimised"))
    assert any("became anti" in line for line in report.eliminated_outer_joins) is changes, report.to_text()
    if changes:
        assert "LeftAnti" in shop.executed(fast)
