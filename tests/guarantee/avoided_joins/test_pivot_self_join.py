"""Self-joins whose sides are distinguished by constants become one pass over the table, with the same rows."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from tests.guarantee.avoided_joins.tables import checked, outcome, relations, setting
from tests.support import shop

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

YEARLY = "with w as (select k, x, count(*) n, sum(y) v, max(s) s, avg(f) f from t group by k, x) "


@pytest.mark.parametrize(
    "text",
    [
        "select a.k, a.v - b.v d, a.n, b.n from w a join w b on a.k = b.k where a.x = 1 and b.x = 2",
        "select * from w a, w b where a.k = b.k and a.x = 1 and b.x = 3",
        "select a.*, b.x from w a join w b using (k) where a.x = 2 and b.x = 1 + 2",
        "select b.k, a.f, b.s, a.x from w a, w b where a.k = b.k and a.x = 1 and b.x = 2 and a.v > 1 and b.s like 'a%'",
        "select a.k from w a, w b where a.k = b.k and a.x = 1 and b.x = 2 and a.v < b.v",
        "select count(*), sum(a.v * b.v) from w a, w b where a.k = b.k and a.x = 1 and b.x = 2",
        "select a.x, b.v, d.n from w a, w b, d where a.k = b.k and a.x = 1 and b.x = 2 and d.k = b.k",
        "select a.v, b.v from w a, w b where a.k = b.k and a.x = 1 and b.x = 1",
        "select a.v, b.v from w a, w b where a.k = b.k and a.x = 1 and b.x = 99",
        "select a.k, c.v from w a, w c where a.x = c.x and a.k = 1 and c.k = 2",
        "select d.k from d where d.k in (select a.k from w a, w b where a.k = b.k and a.x = 1 and b.x = 2)",
    ],
)
def test_two_readers_are_one(tiny: SparkSession, text: str) -> None:
    fast, spared = checked(tiny.sql(YEARLY + text))
    assert len(spared) == 1 and "one pass" in spared[0]
    assert relations(fast) == relations(tiny.sql(YEARLY + text)) - 1


@pytest.mark.parametrize(
    ("text", "fewer"),
    [
        ("select a.v, b.v, c.v from w a, w b, w c "
         "where a.k = b.k and b.k = c.k and a.x = 1 and b.x = 2 and c.x = 3", 2),
        ("select a.v, b.v, c.v from w a, w b, w c "
         "where a.k = b.k and a.k = c.k and a.x = 1 and b.x = 2 and c.n > 1", 1),
        ("select a.v, b.v, c.v from w a, w c, w b "
         "where a.k = b.k and c.k > b.k and a.x = 1 and b.x = 2 and c.x = 3", 1),
        ("select * from (select a.k, b.v from w a, w b where a.k = b.k and a.x = 1 and b.x = 2) p "
         "left join (select a.k, b.v from w a, w b where a.k = b.k and a.x = 2 and b.x = 3) q on p.k = q.k", 2),
    ],
)  # fmt: skip
def test_more_readers(tiny: SparkSession, text: str, fewer: int) -> None:
    fast, spared = checked(tiny.sql(YEARLY + text))
    assert spared and relations(fast) == relations(tiny.sql(YEARLY + text)) - fewer


@pytest.mark.parametrize(
    "text",
    [
        YEARLY + "select a.v from w a, w b where a.k = b.k and a.x = 1 and b.x > 1",
        YEARLY + "select a.v from w a, w b where a.k = b.k and a.x = 1",
        YEARLY + "select a.v from w a, w b where a.x = b.x and a.x = 1 and b.x = 1",
        YEARLY + "select a.v from w a, w b where a.k <=> b.k and a.x = 1 and b.x = 2",
        YEARLY + "select a.v from w a, w b where a.k = b.k + 0 and a.x = 1 and b.x = 2",
        YEARLY + "select a.v from w a left join w b on a.k = b.k and b.x = 2 where a.x = 1",
        YEARLY + "select a.v from w a left join d on a.k = d.k join w b on a.k = b.k where a.x = 1 and b.x = 2",
        YEARLY + "select a.v from w a left semi join w b on a.k = b.k and b.x = 2 where a.x = 1",
        YEARLY + "select /*+ broadcast(b) */ a.v from w a join w b on a.k = b.k where a.x = 1 and b.x = 2",
        YEARLY + ", z as (select * from w) select a.v from w a, z b where a.k = b.k and a.x = 1 and b.x = 2",
        "with w as (select f, x, sum(y) v from t group by f, x) "
        "select a.v from w a, w b where a.f = b.f and a.x = 1 and b.x = 2",
        "with w as (select k, x, s, sum(y) v from t group by k, x, s) "
        "select a.v from w a, w b where a.k = b.k and a.x = 1 and b.x = 2",
        "with w as (select k, x, y v from t) select a.v from w a, w b where a.k = b.k and a.x = 1 and b.x = 2",
        "with w as (select k, x, map('a', 1) m from t group by k, x) "
        "select a.m from w a, w b where a.k = b.k and a.x = 1 and b.x = 2",
    ],
)
def test_what_stays_as_it_is(tiny: SparkSession, text: str) -> None:
    assert not any("one pass" in line for line in checked(tiny.sql(text))[1])


@pytest.mark.parametrize(
    ("text", "fires"),
    [
        ("select a.k from w a join w b on a.k = b.k and a.v <> b.v "
         "where a.x = 1 and b.x = 2 and 10 / (a.v - b.v) > 0", True),
        ("select a.k from w a, w b where a.k = b.k and a.x = 1 and b.x = 2 and a.v <> 0 and 10 / a.v > 1", True),
        ("select a.k, 10 / a.n from w a, w b where a.k = b.k and a.x = 1 and b.x = 2", True),
    ],
)  # fmt: skip
def test_nothing_fails_that_did_not(tiny: SparkSession, text: str, fires: bool) -> None:
    with setting(tiny, "spark.sql.ansi.enabled", "true"):
        df = tiny.sql(YEARLY + text)
        fast, report = shop.optimised(df)
        assert bool(report.spared_joins) is fires
        assert outcome(fast) == outcome(df) != "failed"


def test_an_extra_reader_still_reads(tiny: SparkSession) -> None:
    text = YEARLY + (
        "select a.k, b.v, (select max(v) from w) m from w a, w b where a.k = b.k and a.x = 1 and b.x = 2 "
        "union all select k, v, n from w"
    )
    fast, spared = checked(tiny.sql(text))
    assert len(spared) == 1 and relations(fast) == 3


def test_names_resolve_on_the_result(tiny: SparkSession) -> None:
    fast, _ = checked(tiny.sql(YEARLY + "select a.k, b.v from w a, w b where a.k = b.k and a.x = 1 and b.x = 2"))
    assert fast.select(fast["v"], "k").where("k > 1").count() == fast.where(fast.k > 1).count()
    assert fast.join(tiny.table("d"), "k").groupBy("k").count().count() > 0


@pytest.mark.ci
@pytest.mark.parametrize("seed", range(6))
def test_drawn_readers(tiny: SparkSession, seed: int) -> None:
    """Readers with drawn constants, filters, columns and neighbours."""
    r = random.Random(seed)
    fired = 0
    for _ in range(8):
        names = "abc"[: r.randint(2, 3)]
        grouped, equal = r.choice([("k, x", "k"), ("x, k", "k"), ("k, x, s", "s"), ("k", "k")])
        fixed = [column for column in grouped.split(", ") if column != equal]
        listed = ", ".join(r.choice([f"{n}.v", f"{n}.{equal}", f"{n}.n", f"{n}.v + 1"]) for n in names for _ in "12")
        values = {"x": ["0", "1", "2", "3"], "k": ["1", "2"], "s": ["'a'", "'ab'"]}
        tests = [f"{names[0]}.{equal} = {n}.{equal}" for n in names[1:]]
        tests += [f"{n}.{c} = {r.choice(values[c])}" for n in names for c in fixed if r.random() < 0.9]
        tests += [f"{r.choice(names)}.{r.choice(['v > 1', 'n < 4', 'v is null', 'v is not null'])}" for _ in range(2)]
        tests += ["a.v < b.v"] if r.random() < 0.3 else []
        r.shuffle(tests)
        of = r.choice(["t", "u", "t", "(select t.* from t join d on t.k = d.k) t", "empty"])
        text = f"with w as (select {grouped}, sum(y) v, count(x) n from {of} group by {grouped}) select {listed} from "
        text += ", ".join(f"w {n}" for n in names) + f" where {' and '.join(tests)}"
        fired += bool(checked(tiny.sql(text))[1])
    assert fired >= 3


def test_filters_of_floating_numbers(tiny: SparkSession, tmp_path: Path) -> None:
    """Spark's reader skips the rows of 0.0 for `x = -0.0` alone, and not for an OR."""
    rows = "select cast(id as int) k, 0D x from range(9) union all select cast(id as int), 1D from range(9)"
    tiny.sql(rows).repartition(2, "x").write.parquet(str(tmp_path / "zeros"))
    tiny.read.parquet(str(tmp_path / "zeros")).createOrReplaceTempView("zeros")
    df = tiny.sql(
        "with w as (select k, x, count(*) n from zeros group by k, x) "
        "select a.n, b.n from w a, w b where a.k = b.k and a.x = -0D and b.x = 1D"
    )
    fast = df.optimize_joins(strict=True)
    assert fast.collect() == df.collect() and not fast.join_report().spared_joins


@pytest.mark.parametrize("computed", ["lower(a.s) = b.s", "a.s = concat(b.s, '')", "length(a.s) = b.k"])
def test_a_comparison_of_what_is_computed_of_the_keys_remains(tiny: SparkSession, computed: str) -> None:
    text = f"""with w as (select upper(s) s, x, max(k) k, sum(y) v from t group by upper(s), x)
        select a.s, a.v, b.v from w a join w b on a.s = b.s and {computed} where a.x = 1 and b.x = 2"""
    assert checked(tiny.sql(text))[1]
