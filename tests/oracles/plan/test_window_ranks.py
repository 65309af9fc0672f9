"""Rank columns in analysed plans, including the forms in which Spark may rewrite them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pyjoinopt.plan.fallible.window_ranks import ranks
from pyjoinopt.plan.traversal import post_order

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COUNTED = "(select *, {} over (partition by a order by b) as rn from {})"
ROWS = COUNTED.format("row_number()", "values (1, 10, 10L) as t(a, b, l)")

KNOWN = [
    "select x.b from {n} x join {n} y on x.a = y.a and x.rn = y.rn + 1 and x.rn <=> y.rn",
    "select b from {n} where rn between 2 and 3 or rn in (5, 7)",
    "select a from (select a, rn from {n} group by a, rn order by rn limit 5) left join values (1) as u(u) on a = u",
    "with w as (select * from {n}) select x.b from w x, w y where x.rn = y.rn - 1 and x.rn > y.b",
    "select b + b from (select distinct rn, b from {n})",
    "select x.b from {n} x join {n} y on x.rn = y.rn - 7 where x.rn = 0 or x.rn in (-1, 4) or not x.rn = y.rn + 1000",
    "select a from {n} where exists (select 1 from {n} y where y.b = a)",
]
UNKNOWN = {
    "in the result": "select rn from {n}",
    "in the result by another name": "select rn as place from {n}",
    "compared with a column": "select x.a from {n} x join values (1) as y(c) on x.rn = c",
    "compared with a column, in an OR": "select a from {n} where rn = b or a > 5",
    "compared with a column of another type": "select a from {n} where rn = l",
    "compared with a column by another name": "select a from (select rn as place, * from {n}) where place <=> b",
    "compared with what may become a column": "select a from {n} where coalesce(rn, 0) = b",
    "compared with what is no rank": "select a from {n} where rn = -2000000",
    "among what is no rank": "select a from {n} where rn in (1, -2000000)",
    "among columns": "select a from {n} where rn in (1, b)",
    "compared with too long a step": "select x.a from {n} x join {n} y on x.rn = y.rn - 2000000",
    "compared by a cast of its type": "select a from (select cast(rn as int) as rn, a, b from {n}) where rn = b",
    "in the result by a cast of its type": "select cast(rn as int) as rn from {n}",
    "hidden in a function": "select a from (select coalesce(rn, 0) as rn, a, b from {n}) where rn = b",
    "compared by functions": "select x.a from {n} x join {n} y on x.rn = if(y.rn = 1, -2147483648, y.rn)",
    "counted": "select max(rn) from {n}",
    # Read twice, or Spark's analysed plan would hold it where it is read.
    "compared in a common table expression in subqueries":
        "with w as (select * from {n}) select c from values (1) as u(c)"
        " where exists (select 1 from w where rn = b) and exists (select 1 from w where a = c)",
    "compared in a common table expression in a subquery of a subquery":
        "with w as (select * from {n}) select c from values (1) as u(c) where c in"
        " (select a from {n} where a > (select max(a) from w where rn = b)) or c > (select max(a) from w)",
    "compared with subqueries": "select a from {n} where rn = (select max(b) from {n})",
    "looked for": "select a from {n} where rn in (select b from {n})",
    "read in a subquery": "select a from {n} x where exists (select 1 from {n} y where y.b = x.rn)",
    "mixed by a union": "select a from (select a, rn from {n} union all select * from values (1, 2))",
    "compared by an intersection": "select a from (select rn, a from {n} intersect select * from values (1, 2))",
    "compared in a common table expression": "with w as (select * from {n} where rn = b) select a from w where rn > 2",
    "told from others by a number": "select a from (select posexplode(array(rn)), a from {n})",
}


def found(spark: SparkSession, text: str) -> set[str]:
    from pyjoinopt.bridge.decode import decode
    from pyjoinopt.bridge.shim import bridge_for

    df = spark.sql(text)
    nodes = list(post_order(decode(bridge_for(df).export(df._jdf, "{}")).root))
    mask = ranks(nodes)
    return {a.name for node in nodes for a in node.output if a.mask & mask}


@pytest.mark.parametrize("text", KNOWN)
@pytest.mark.parametrize("function", ["row_number()", "rank()", "dense_rank()"])
def test_ranks(spark: SparkSession, text: str, function: str) -> None:
    assert found(spark, text.format(n=ROWS.replace("row_number()", function))) == {"rn"}


@pytest.mark.parametrize("text", UNKNOWN.values(), ids=UNKNOWN)
def test_what_spark_may_put_something_else_in_the_place_of(spark: SparkSession, text: str) -> None:
    assert "rn" in text and not found(spark, text.format(n=ROWS))


@pytest.mark.parametrize("function", ["lag(b)", "sum(b)", "max(b)", "ntile(3)", "first(b)"])
def test_other_functions(spark: SparkSession, function: str) -> None:
    assert not found(spark, KNOWN[0].format(n=ROWS.replace("row_number()", function)))


def test_both_names_of_a_rank(spark: SparkSession) -> None:
    text = f"select a from (select a, rn as place from {ROWS}) where place > 2"
    assert found(spark, text) == {"rn", "place"}


def test_a_view_casts_its_columns_to_what_they_are(spark: SparkSession) -> None:
    session = spark.newSession()
    session.sql(f"create temp view numbered as select * from {ROWS}")
    assert found(session, "select x.b from numbered x join numbered y on x.rn = y.rn + 1") == {"rn"}
    assert not found(session, "select b from numbered where rn = b")
