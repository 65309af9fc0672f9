"""Self-joins in common table expressions: the rewrite must suit every reference, and unused columns are dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.guarantee.avoided_joins.tables import checked, semi_joins, setting
from tests.support.compare import assert_can_be_combined, assert_same_rows
from tests.support.shop import optimised

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAIRS = "t a join t b on a.k = b.k and a.x <> b.x"
W = f"with w as (select a.k, b.x bx, a.y, b.s from {PAIRS}) "
ALL = f"with w as (select b.*, a.* from {PAIRS}) "
NAMES = "w w(k1, x1, y1, s1, f1, k2, x2, y2, s2, f2)"


@pytest.mark.parametrize(
    "text",
    [
        W + "select d.* from d where k in (select k from w) and k in (select e.k from d e, w where e.k = w.k)",
        W + "select distinct y from w union select k from w",
        W + "select distinct k, y from w",
        W + "select d.* from d left semi join w on d.k = w.k left anti join w v on d.z = v.y",
        W + ", v as (select k, y from w) select distinct k from v union select y from v",
        W + ", v as (select distinct k, y from w) select k, y, count(*) from v group by k, y",
        W
        + ", v as (select k, 1 q from w union all select y, 2 from w) select d.* from d left semi join v on v.k = d.k",
        W + "select * from (select max(y) c from w where k > 1) p, (select min(k) s from w where y < 4) q where c > s",
        W + ", v as (select w.k, q.y from w join w q on w.k = q.k) select distinct k from v union select y from v",
        ALL + f"select d.k from d left semi join {NAMES} on d.k = k2 "
        f"union select d.z from d left semi join {NAMES} on d.z = y2",
        f"with w as (select b.x, b.x, a.k, a.k, a.y from {PAIRS}) select distinct y from w union select max(y) from w",
        f"with w(p, q, r, s) as (select a.k, b.x, a.y, a.k from {PAIRS}) "
        "select distinct s, r from w where s > 0 union select p, r from w",
        f"with o as (with w as (select a.k, b.x, a.y from {PAIRS}) select k, y from w) "
        "select distinct k from o union select y from o",
        f"with w as (select a.k, b.x, a.y from {PAIRS}) select * from (with o as (select k, y from w) "
        "select distinct k from o union select y from o) z join (select max(k) m from w) on true",
        f"select * from d where k in (with w as (select a.k, b.x, a.y from {PAIRS}) "
        "select k from w union select y from w)",
    ],
)
def test_all_readers_agree(tiny: SparkSession, text: str) -> None:
    df = tiny.sql(text)
    fast, spared = checked(df)
    assert any("only looks for a partner" in line for line in spared)
    assert semi_joins(fast) > semi_joins(df)


@pytest.mark.parametrize(
    "text",
    [
        W + "select count(*) from w",
        W + "select k, y from w",
        W + "select d.* from d left semi join w on d.k = w.k join (select count(*) c from w) on true",
        W + "select d.*, (select count(*) from w) c from d left semi join w on d.k = w.k",
        W + "select d.* from d left semi join w on d.k = w.k where d.z < (select count(*) from w)",
        W + "select d.* from d left semi join w on d.k = w.k left semi join w v on d.z = v.bx",
        W + ", v as (select k, count(*) y from w group by k) select distinct k from v union select y from w",
        W + "select * from d where k in (select k from w where y > (select count(*) - 200 from w))",
        W + "select distinct k from w union all select s from w",
        W + "select distinct k, bx from w union select y, k from w",
        ALL + f"select d.k from d left semi join {NAMES} on d.k = k2 "
        f"union select d.z from d left semi join {NAMES} on d.z = y1",
        f"with w as (select a.k, b.x, a.y, rand(3) r from {PAIRS}) "
        "select distinct k, r < 2 from w union select y, r < 2 from w",
        f"with w as (select a.k, a.y from {PAIRS} order by a.k nulls last, a.y limit 5) "
        "select distinct k from w union select k from w",
    ],
)
def test_one_reader_counts_or_reads(tiny: SparkSession, text: str) -> None:
    df = tiny.sql(text)
    fast, spared = checked(df)
    assert spared == [] and semi_joins(fast) == semi_joins(df)


def test_recursion(tiny: SparkSession) -> None:
    if tuple(map(int, tiny.version.split(".")[:2])) < (4, 1):
        pytest.skip("no recursive definitions")
    counted = "with recursive r(n) as (select 1 union all select n + 1 from r {} where n < 6) select n from r"
    step = f"left semi join (select a.k from {PAIRS}) q on q.k = r.n"
    assert len(checked(tiny.sql(counted.format(step)))[1]) == 1
    plain = "with recursive r(n) as (select 1 union all select n + 1 from r where n < 6) select n from r"
    assert checked(tiny.sql(f"{plain} join (select a.k from {PAIRS}) q on q.k = n"))[1] == []
    assert len(checked(tiny.sql(f"{plain} join (select distinct a.k from {PAIRS}) q on q.k = n"))[1]) == 1


def test_views(tiny: SparkSession) -> None:
    tiny.sql(f"create or replace temp view pairs as select a.k kk, a.y yy, b.x xx from {PAIRS}")
    assert len(checked(tiny.sql("select distinct kk from pairs"))[1]) == 1
    assert (
        len(checked(tiny.sql("select d.* from d where k in (select kk from pairs) and z in (select xx from pairs)"))[1])
        == 2
    )
    assert checked(tiny.sql("select kk from pairs"))[1] == []


#: For all that is known the division might fail, so the first IN is given back as it was written.
RESTORED = "9 / (d.k + 5) > 1 and d.k in (select k from w where y = 7)"


@pytest.mark.parametrize("further", ["", "d.z in (select y from w)", "d.z not in (select k from w where y > 2)"])
def test_a_subquery_that_is_given_back_reads_all_columns(tiny: SparkSession, further: str) -> None:
    text = f"with w as (select a.k, b.x bx, a.y, a.s from {PAIRS}) select d.* from d where {RESTORED}"
    text += f" and {further}" if further else ""
    with setting(tiny, "spark.sql.ansi.enabled", "true"):
        checked(tiny.sql(text))


def test_beside_the_frame_that_it_was_made_of(tiny: SparkSession) -> None:
    """The definition has lost a column in one of them, and Spark finds definitions by ids of the whole query."""
    df = tiny.sql(W + "select distinct k, y from w union select y, k from w")
    fast, avoided = checked(df)  # this also combines both frames
    assert avoided and fast.exceptAll(df).count() == 0 == df.exceptAll(fast).count()
    assert fast.join(df, ["k", "y"]).count() == df.join(df.toDF("k", "y"), ["k", "y"]).count()
    again = fast.union(df).optimize_joins(strict=True)
    assert_same_rows(df.union(df), again)


CHAIN = """with a as (select k, x, y from t where y > 0), b as (select k, max(x) m from a group by k),
    c as (select k, m from b where m < 10) select l.k, r.m from t join c l on t.k = l.k join c r on l.k = r.m
    join (select distinct k from d where z = 1) e on e.k = l.k"""
NESTED = """with v as (select k, x, y from t where x > 0), w as (select a.k, b.x from v a join v b on a.x = b.x
    join d on d.k = a.k where d.z = 1), g as (select k, count(*) n from w group by k)
    select p.k, q.n, w.x from g p join g q on p.k = q.k join w on w.k = p.k"""


@pytest.mark.parametrize("text", [CHAIN, NESTED])
def test_definitions_that_read_others(tiny: SparkSession, text: str) -> None:
    """Those that are read once are written out before, and others read what changed, or are not read any more."""
    df = tiny.sql(text)
    fast, report = optimised(df)
    assert report.changed
    assert_same_rows(df, fast)
    assert_can_be_combined(df, fast)
