"""A predicate that fails on some values must not meet rows that another join takes away first.

Waiting for the last join is not enough: Spark moves a condition down to the lowest join that has all its columns. So an
order that joins those columns early makes a query fail that plain Spark answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from tests.support.compare import assert_same_rows
from tests.support.shop import optimised, unharmed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: The patterns that end in an escape belong to keys that `kept` does not have.
PATTERNS = r"select * from values (1, 'x%', 1), (7, 'a\\', 1), (8, 'a\\', 2), (9, 'y%', 3) as p(pk, p, pj)"
TEXTS = "select * from values ('xy', 1), ('ab', 2) as o(os, oj)"
KEPT = "select * from values (1, 10), (2, 20), (3, 5) as b(bp, bx)"


def written(spark: SparkSession, patterns: str, texts: str) -> tuple[DataFrame, DataFrame]:
    """What is left before the failing predicate may be tested, and the table it is tested with."""
    many = spark.range(30_000).selectExpr("if(id < 29000, 1, 2) as gp")
    left = many.join(spark.sql(KEPT), F.expr("bp = gp")).join(spark.sql(patterns), F.expr("pk = gp"))
    return left, spark.sql(texts)


@pytest.mark.parametrize("cost", ["spark", "c_out"])
@pytest.mark.parametrize("predicate", ["os like p", "pj = oj and os like p"])
@pytest.mark.parametrize("in_filter", [False, True])
def test_malformed_patterns(db: SparkSession, cost: str, predicate: str, in_filter: bool) -> None:
    left, texts = written(db, PATTERNS, TEXTS)
    df = left.crossJoin(texts).where(predicate) if in_filter else left.join(texts, F.expr(predicate))
    assert df.count() == 29_000  # plain Spark answers
    unharmed(df, cost=cost, reordered=True)


def test_spark_s_own_order_is_not_used_if_it_would_fail(db: SparkSession) -> None:
    left, texts = written(db, PATTERNS, TEXTS)
    df = left.join(texts, F.expr("pj = oj and os like p"))
    unharmed(df, strategy="spark")
    unharmed(df, strategy="heuristic")


VARIANTS = """select pk, parse_json(j) as v, pj from values
    (1, '5', 1), (7, '"bad"', 1), (8, '"bad"', 2), (9, '5', 3) as t(pk, j, pj)"""
NUMBERS = "select * from values (5, 1), (6, 2) as n(n, oj)"


@pytest.mark.parametrize("cost", ["spark", "c_out"])
@pytest.mark.parametrize(
    "predicate", ["v::int = n", "pj = oj and v::int <= n", "pj = oj and variant_get(v, '$', 'int') <= n"]
)
@pytest.mark.parametrize("in_filter", [False, True])
def test_variants_of_another_kind(db: SparkSession, cost: str, predicate: str, in_filter: bool) -> None:
    if db.version < "4":
        pytest.skip("Spark 3.5 has no VARIANT")
    left, numbers = written(db, VARIANTS, NUMBERS)
    df = left.crossJoin(numbers).where(predicate) if in_filter else left.join(numbers, F.expr(predicate))
    # Plain Spark answers this, though not its count(). And values of this type are equal only to themselves.
    plain, fast = ([(r.gp, r.bx, r.pk, r.n) for r in frame.collect()] for frame in (df, optimised(df, cost=cost)[0]))
    assert len(plain) == 29_000
    assert_same_rows(plain, fast)


def test_other_predicates_join_them_early(db: SparkSession) -> None:
    """The same tables with a predicate that cannot fail: the order that the tests above must not have is the best."""
    left, texts = written(db, PATTERNS, TEXTS)
    _, report = optimised(left.join(texts, F.expr("pj = oj and os <> p")))
    assert report.groups[0].estimated_rows[0].relations == ("p", "o")
