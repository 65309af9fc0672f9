"""Joins of rows with their predecessors and successors in ANSI mode: `rn + 1` may fail for an INT, but not for a rank.

The tables contain the smallest and the largest INT, for which one of the sums fails, on rows that other joins remove.
Orders are drawn from all legal ones.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.guarantee.drawn_orders import in_drawn_orders

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

LOWEST, HIGHEST = -(2**31), 2**31 - 1
STEPS = "x.g = y.g and x.g = z.g and x.rn = y.rn + 1 and x.rn = z.rn - 1"
JOINED = "numbered x, numbered y, numbered z"
QUERIES = {
    "all three": f"select x.v, y.v, z.v from {JOINED} where {STEPS}",
    "one more": f"select x.v, k, z.v from {JOINED}, few where {STEPS} and k = x.v",
    "another one counts": f"select x.v, k from {JOINED}, few where {STEPS} and k = y.g and x.rn = 3",
    "outer": "select x.v, y.v, z.v from numbered x left join numbered y on x.g = y.g and x.rn = 1 + y.rn"
    " join numbered z on x.g = z.g and x.rn = z.rn - 1 join few on k = z.v",
    "compared with another column": "select x.v, y.v, w from numbered x join numbered y on x.g = y.g"
    " and x.rn = y.rn + 1 join few on k = x.rn and j = y.g",
    "compared with another column by a cast": "select v, k from (select x.v, y.g, cast(x.rn as int) as rn"
    " from numbered x join numbered y on x.g = y.g and x.rn = y.rn + 1) join few on k = rn and j = g",
    "compared with another column in a view": "select v, k from pairs join few on k = rn and j = g",
    "compared with another column in a subquery": "with w as (select x.v, x.rn, y.g, k from numbered x join numbered y"
    " on x.g = y.g and x.rn = y.rn + 1 join few on j = y.g)"
    " select v, (select count(*) from w where rn = k), (select max(w.v) from w where rn = k and k > 1) from t",
    "ranks in the result": f"select x.v, x.rn, z.v, z.rn from {JOINED}, few where {STEPS} and k = x.rn",
    "mixed with other columns": "select x.v, y.v, z.v from mixed y join few on k = y.v and w between 3 and 4"
    " join mixed x on x.g = y.g and x.rn = y.rn + 1 join mixed z on z.g = y.g and z.v = x.v",
}


@pytest.fixture(scope="module")
def numbered(spark: SparkSession) -> Iterator[SparkSession]:
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", "true")
    values = [(g, v) for g in range(4) for v in (LOWEST, 1, 2, 2, 3, HIGHEST)] + [(None, 1), (1, None)]
    session.createDataFrame(values, "g int, v int").createOrReplaceTempView("t")
    few = [(LOWEST, 2, 1), (1, 4, 1), (2, 3, 1), (3, 3, 2), (HIGHEST, 5, 1)]
    session.createDataFrame(few, "k int, w int, j int").createOrReplaceTempView("few")
    session.sql(
        "select g, v, row_number() over (partition by g order by v) as rn from t"
    ).createOrReplaceTempView("numbered")  # fmt: skip
    session.sql(
        "create temp view pairs as"
        " select x.v, y.g, x.rn from numbered x join numbered y on x.g = y.g and x.rn = y.rn + 1"
    )
    session.sql("select g, v, rn from numbered union all select g, v, v from t").createOrReplaceTempView("mixed")
    yield session


#: By default every fifth query.
_FEWER = [pytest.param(name, marks=[pytest.mark.ci] if i % 5 else []) for i, name in enumerate(QUERIES)]


@pytest.mark.parametrize("name", _FEWER)
def test_rows_are_those_as_written(numbered: SparkSession, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    plain = numbered.sql(QUERIES[name])
    assert plain.collect(), "plain Spark answers"
    in_drawn_orders(plain, monkeypatch, name, 8)


def test_a_step_back_is_a_key_in_any_order(numbered: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = in_drawn_orders(numbered.sql(QUERIES["all three"]), monkeypatch, "any", 20)
    first = {frozenset(re.findall(r"\((\w) ⋈ (\w)\)", order)[0]) for ((_, order),) in drawn}
    assert first == {frozenset("xy"), frozenset("xz"), frozenset("yz")}
