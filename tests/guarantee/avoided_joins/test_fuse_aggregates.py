"""Cross-joined aggregates over the same rows are fused, and give the same row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.guarantee.avoided_joins.tables import checked, relations
from tests.support import shop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def product(*parts: str) -> str:
    return "select * from " + ", ".join(f"({part}) q{i}" for i, part in enumerate(parts))


def over(source: str, first: str, second: str) -> str:
    """A count and a maximum over one source, each with its filter."""
    return product(
        f"select count(*) c, sum(y) s from {source} where {first}",
        f"select count(*) d, max(y) m from {source} where {second}",
    )


FILTERS = [
    ("x = 1", "x = 2"),
    ("x = 99", "x = 98"),
    ("x = 1", "k = 2"),
    ("x is null", "x is not null"),
    ("x = 1 and y > 3", "x = 1 and y < 3"),
    ("x in (1, 2)", "x in (2, 1)"),
    ("x in (1, null)", "x not in (2, null)"),
    ("k between 1 and 3 and y between 0 and 6", "k between 2 and 5 and y between 0 and 6"),
    ("x = 1 or s is null", "s like 'a%'"),
    ("(x = 1) = (y = 2)", "coalesce(x, 0) = y"),
    ("s like 'a!%' escape '!'", "s like 'a!%' escape '/'"),
    ("x = 1", "x = 1"),
    ("not (x > 1)", "x <= 1"),
    ("(x = 1 and y > 2) or (x = 1 and y < 0)", "(x = 2 and y > 2) or (x = 2 and s = 'a')"),
]


@pytest.mark.parametrize(("first", "second"), FILTERS)
def test_filters(tiny: SparkSession, first: str, second: str) -> None:
    for source in ("t", "empty"):
        fast, spared = checked(tiny.sql(over(source, first, second)))
        assert spared == ["d, m and c, s are computed together: they are aggregates over the same relations"]
        assert relations(fast) == 1 and not shop.joined_tables(fast)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("count(*) c", "count(*) d"),
        ("sum(x) + 1 c, 7 e, count(*) * 2 z", "concat(max(s), min(s)) d, 5 five"),
        ("count(x) c, sum(x) filter (where y > 2) e, count(distinct s) h", "min(f) mf, avg(f) af, sum(f) sf"),
        ("count(distinct x) c", "count(distinct s) d, count(distinct k, x) e"),
        ("count(distinct x) filter (where y > 1) c", "sum(distinct y) d, count(*) filter (where k = 1) e"),
        ("try_sum(x) c, sum(x) e", "sum(x) d"),
        ("stddev(f) c, corr(f, x) e", "variance(f) d, covar_pop(x, y) g"),
        ("bool_and(x > 1) c, every(y > 0) e", "some(x > 2) d, bit_or(x) g"),
        ("sum(case when x > 1 then y end) c", "sum(if(x > 2, y, 0)) d"),
        ("count(distinct f) c", "max(f) d"),
    ],
)
def test_functions(tiny: SparkSession, first: str, second: str) -> None:
    for filters in (("x >= 1", "x < 3"), ("x = 99", "y > 1")):
        parts = [f"select {s} from t where {f}" for s, f in zip((first, second), filters)]
        fast, spared = checked(tiny.sql(product(*parts)))
        assert len(spared) == 1 and not shop.joined_tables(fast)


@pytest.mark.parametrize(
    "function",
    [
        "first(x)",
        "collect_list(x)",
        "percentile(x, 0.5)",
        "max_by(s, x)",
        "sum(cast(s as int))",
        "sum(10 / x)",
        "count(*) + (select max(k) from d)",
    ],
)
def test_functions_that_stay(tiny: SparkSession, function: str) -> None:
    text = product(f"select {function} c from t where y < -5", f"select {function} d from t where y < -6")
    assert checked(tiny.sql(text))[1] == []


def test_five_at_once(tiny: SparkSession) -> None:
    parts = [
        f"select count(*) c{i}, sum(y) s{i} from t join d on t.k = d.k where d.z = {i % 2} and d.n = 'n{i % 3}'"
        for i in range(5)
    ]
    fast, spared = checked(tiny.sql(product(*parts)))
    assert len(spared) == 4 and len(shop.joined_tables(fast)) == 1


def test_two_tables_two_aggregates(tiny: SparkSession) -> None:
    parts = [f"select count(*) c{i} from {name} where x = {i}" for i, name in enumerate("tutu")]
    fast, spared = checked(tiny.sql(product(*parts)))
    assert len(spared) == 2 and relations(fast) == 2


@pytest.mark.parametrize(
    ("one", "other", "fused"),
    [
        ("t join d on t.k = d.k where t.x = 1", "d join t on d.k = t.k where t.x = 2", True),
        ("t join d on t.k = d.k where d.z = 1", "t join d on t.k = d.k where d.z = 0", True),
        ("t, d where t.x = 1", "t, d where t.x = 2", True),
        ("t a join t b on a.k = b.y where a.x = 1", "t a join t b on a.k = b.y where a.x = 2", True),
        ("t a join t b on a.k = b.y where a.x = 1", "t b join t a on a.k = b.y where b.x = 2", False),
        ("t join d on t.k = d.k where t.x = 1", "t join d on t.k = d.k where d.z = 0", False),
        ("t join d on t.k = d.k where t.x = 1 and d.z = 1", "t join d on t.k = d.k where t.x = 1 and d.n = 'n0'", True),
        ("t join d on t.k = d.k where t.x = 1 and d.z = 1", "t join d on t.k = d.k where t.x = 2 and d.z = 0", False),
        ("t join d on t.k = d.k and t.x < d.z", "t join d on t.k = d.k and t.x > d.z", False),
        ("t join d on t.k = d.k", "t join d on t.x = d.k", False),
        ("t", "u", False),
        ("t", "t, d", False),
        ("t left join d on t.k = d.k", "t left join d on t.k = d.k", True),
        ("t left join d on t.k = d.k", "t join d on t.k = d.k", False),
        ("t left semi join d on t.k = d.k", "t left semi join d on t.k = d.k", True),
        ("t left semi join d on t.k = d.k", "t left anti join d on t.k = d.k", False),
        ("(select * from t limit 3)", "(select * from t limit 3)", False),
        ("(select x from t union all select x from u)", "(select x from t union all select y from u)", False),
        (
            "(select k, max(x) m from t group by k) where m > 1",
            "(select k, max(x) q from t group by k) where q < 3",
            True,
        ),
        ("(select k, max(x) m from t group by k)", "(select x, max(x) m from t group by x)", False),
        ("t where rand() < 0.5 and x = 99", "t where x = 1", False),
        ("t where x in (select z from d)", "t where x = 1", False),
        ("t where x = 1 and false", "t where x = 2", False),
        ("t", "t group by k having k = 1", False),
    ],
)
def test_what_is_read(tiny: SparkSession, one: str, other: str, fused: bool) -> None:
    df = tiny.sql(product(f"select count(*) c from {one}", f"select count(*) d from {other}"))
    fast, spared = checked(df)
    assert bool(spared) is fused
    assert (relations(fast) < relations(df)) is fused


@pytest.mark.parametrize(
    ("text", "fused"),
    [
        ("select b.c, a.c from ({x1}) a, ({x2}) b", 1),
        ("select b.*, a.*, a.c from ({x1}) a, ({x2}) b", 1),
        ("select a.c from ({x1}) a, ({x2}) b where a.c < b.c", 1),
        ("select a.c from ({x1}) a join ({x2}) b using (c)", 1),
        ("select a.c from ({x1}) a, ({x2}) b where a.c > b.c or b.c is null", 1),
        ("select * from ({x1}) a join ({x2}) b on a.c = b.c join d on d.k = a.c", 1),
        ("select d.*, a.c, b.c from ({x1}) a join d on d.k < a.c join ({x2}) b on b.c > d.z", 1),
        ("select * from (select b.c, a.c from ({x1}) a, ({x2}) b) q, ({x3}) r", 1),
        ("select * from (({x1}) a cross join ({x2}) b) cross join ({x3}) r", 2),
        ("select * from (select a.c + b.c e from ({x1}) a, ({x2}) b) q, ({x3}) r", 1),
        ("select * from d where k in (select b.c - a.c from ({x1}) a, ({x2}) b)", 1),
        ("select (select a.c - b.c from ({x1}) a, ({x2}) b) from d", 1),
        ("select d.k from d where exists (select 1 from ({x1}) a, ({x2}) b where b.c - a.c = d.k)", 1),
        ("select * from ({x1}) a left join ({x2}) b on true", 0),
        ("select * from ({x1}) a full join ({x2}) b on a.c = b.c", 0),
        ("select * from ({x1}) a left semi join ({x2}) b on a.c <> b.c", 0),
        ("{x1} union all {x2}", 0),
        ("select /*+ broadcast(a) */ * from ({x1}) a, ({x2}) b", 0),
        ("select * from ({x1} group by k) a, ({x2} group by k) b", 0),
        ("select * from ({x1} having count(*) > 0) a, ({x2} having count(*) > 99) b", 0),
        ("with w as ({x1}) select * from w a, w b", 0),
        (
            "with w as (select k, x from t) select * from (select count(*) from w) a, (select max(x) from w) b",
            1,
        ),
    ],
)
def test_where_they_stand(tiny: SparkSession, text: str, fused: int) -> None:
    counts = {f"x{i}": f"select count(*) c from t where x = {i}" for i in (1, 2, 3)}
    assert len(checked(tiny.sql(text.format(**counts)))[1]) == fused
