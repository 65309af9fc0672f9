"""A self-join used as an existence check becomes a semi join if duplicates don't matter, and otherwise stays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.guarantee.avoided_joins.tables import checked, outcome, semi_joins, setting
from tests.support import shop

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PAIRS = "t a join t b on a.k = b.k and a.x <> b.x"


@pytest.mark.parametrize(
    "text",
    [
        "select * from d where k in (select a.k from {})",
        "select * from d where exists (select 1 from {} where a.k = d.k)",
        "select * from d where not exists (select 1 from {} where a.k = d.k)",
        "select distinct a.k, a.y from {}",
        "select d.* from d left anti join (select b.k, b.y from {}) q on d.z = q.y",
        "select distinct b.k, b.y from {}",
        "select a.k from {} group by a.k",
        "select max(a.y) from {}",
        "select a.k from {} intersect select k from d",
        "select a.k, min(a.y), max(a.s), count(distinct a.x), sum(distinct a.y) from {} group by a.k",
        "select a.k, bool_or(a.y > 1), bit_and(a.x) from {} group by a.k having max(a.y) > 1",
        "select a.k, count(distinct a.x) filter (where a.y > 1) from {} group by a.k",
        "select k from d except select a.k from {}",
        "select distinct k from (select a.k from {} union all select k from d)",
        "select distinct a.s from {} where a.y > 2",
        "select distinct k, q from (select a.k, a.x + 1 q, b.y - 1 r from {})",
        "select k, z from (select a.k, 1 z from {}) union select k, z from d",
        "select distinct a.k, z.n from {} left join d z on z.k = a.k",
        "select distinct a.k, z.n from {} right join d z on z.k = a.k",
        "select distinct z.n from d z full join (select a.k from {}) q on z.k = q.k",
        "select distinct a.k from {} where a.x in (select z from d)",
        "select distinct a.k, (select max(z) from d where d.k = a.k) m from {}",
        "select d.k, (select max(a.y) from {} where a.x = d.k) m from d",
        "select * from d, lateral (select max(a.y) m from {} where a.k = d.k)",
        "select distinct k from (select a.k from {} order by a.y, a.k)",
        "select distinct k from (select /*+ rebalance(k) */ a.k from {})",
        "select max(k) from (select /*+ repartition(2, y) */ a.k, a.y from {})",
    ],
)
def test_nobody_counts(tiny: SparkSession, text: str) -> None:
    df = tiny.sql(text.format(PAIRS))
    fast, spared = checked(df)
    assert len(spared) == 1 and spared[0].endswith("only looks for a partner: made a semi join")
    assert semi_joins(fast) == semi_joins(df) + 1


@pytest.mark.parametrize(
    "text",
    [
        "select a.k from {}",
        "select a.k, count(*) from {} group by a.k",
        "select sum(a.y) from {}",
        "select avg(a.y), max(a.y) from {}",
        "select a.k from {} union all select k from d",
        "select a.k from {} intersect all select k from t",
        "select k from t except all select a.k from {}",
        "select a.k from {} group by a.k having count(*) > 10",
        "select distinct k from (select a.k from {} order by a.k nulls last limit 3)",
        "select sort_array(collect_list(a.y)) from {}",
        "select distinct k, n from (select a.k, row_number() over (partition by a.k order by a.y) n from {})",
        "select distinct k, n from (select a.k, count(*) over (partition by a.k) n from {})",
        "select percentile(a.y, 0.5) from {}",
        "select distinct k, c from (select a.k, count(*) c from {} group by a.k)",
        "select bit_xor(a.x) from {}",
        "select mode(a.y) from {}",
        "select distinct a.k, b.x from {}",
        "select distinct a.k from {} where b.y > a.y or b.x in (select z from d)",
        "select d.k, (select count(*) from {} where a.x = d.k) c from d",
        "select * from d where 20 < (select count(*) from {} where a.k = d.k)",
        "select distinct a.k, (select max(z) from d where d.k = b.x) m from {}",
        "select /*+ broadcast(b) */ distinct a.k from {}",
        "select k, grouping(k) from (select a.k from {}) group by rollup (k)",
        "select d.k, z.k from d left join (select a.k from {}) z on d.k = z.k",
        "select distinct e from (select explode(array_agg(a.k)) e from {})",
        "select distinct a.k, rand() < 2 from {}",
    ],
)
def test_somebody_counts_or_reads(tiny: SparkSession, text: str) -> None:
    df = tiny.sql(text.format(PAIRS))
    fast, spared = checked(df)
    assert spared == [] and semi_joins(fast) == semi_joins(df)


@pytest.mark.parametrize(
    ("source", "changes"),
    [
        ("t a join t b on a.k = b.k", 1),
        ("t a, t b where a.k = b.k and (a.x > b.x or b.s like 'a%')", 1),
        ("t a join t b on a.k = b.k where b.y > 3", 1),
        ("t a join (select x, k from t where y > 1) b on a.k = b.k", 1),
        ("t a natural join t b", 1),
        ("t a join t b using (k)", 1),
        ("t a join t b on a.s = b.s and a.k < b.k", 1),
        ("t a join t b on a.f = b.f", 1),
        ("empty a join empty b on a.k = b.k", 1),
        ("t b join t a on a.k = b.k", 1),
        ("t a join t b on a.k = b.k join t c on b.x = c.x and b.y <> c.y", 1),
        ("t a join t b on a.k = b.k join t c on a.x = c.x", 2),
        ("t a join d z on z.k = a.k join t b on a.k = b.k", 1),
        ("t a join t b on a.k = b.x", 0),
        ("t a join t b on a.k < b.k", 0),
        ("t a join u b on a.k = b.k", 0),
        ("t a join t b on a.k = b.k + 0", 0),
        ("t a left join t b on a.k = b.k", 0),
        ("t a cross join t b", 0),
        ("t a join (select k from t limit 9) b on a.k = b.k", 0),
        ("t a join (select distinct k from t) b on a.k = b.k", 0),
    ],
)
def test_what_is_a_self_join(tiny: SparkSession, source: str, changes: int) -> None:
    columns = "k" if "using" in source or "natural" in source else "a.k, a.s"
    fast, spared = checked(tiny.sql(f"select distinct {columns} from {source}"))
    assert len(spared) == changes == semi_joins(fast)


@pytest.mark.parametrize(
    "text",
    [
        "select distinct a.k from t a join t b on a.k = b.k and 10 / b.x > a.y where b.x <> 0",
        "select distinct a.k from t a join t b on a.k = b.k and 10 / a.x > b.y where a.x <> 0",
        "select distinct a.k from t a left anti join d on a.x = d.z join t b on a.k = b.k and 10 / a.x > b.y",
        "select distinct k, 10 / q from (select a.k, a.x q from t a join t b on a.k = b.k and a.x <> 0)",
        "select distinct k from (select a.k, 10 / b.x w from t a join t b on a.k = b.k)",
    ],
)
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_does_not_fail_where_spark_does_not(tiny: SparkSession, text: str, ansi: str) -> None:
    with setting(tiny, "spark.sql.ansi.enabled", ansi):
        df = tiny.sql(text)
        fast, report = shop.optimised(df)
        assert report.spared_joins or ansi == "true"
        assert outcome(fast) == outcome(df) != "failed"


@pytest.mark.parametrize(
    "text",
    [
        "select distinct a.k from t a join d on a.x = d.k and d.n = 'n1' join t b on a.k = b.k and 10 / a.x > b.y",
        "select distinct a.k from t a join d on a.x = d.z + 1 join t b on a.k = b.k and 10 / a.x > b.y",
    ],
)
def test_fails_where_spark_does_not(tiny: SparkSession, text: str) -> None:
    """Spark pushes a semi join down to the relation it reads, where its condition sees rows that a join removes."""
    with setting(tiny, "spark.sql.ansi.enabled", "true"):
        df = tiny.sql(text)
        assert outcome(shop.optimised(df)[0]) == outcome(df) != "failed"


def test_frames(tiny: SparkSession) -> None:
    from pyspark.sql import functions as F

    t = tiny.table("t")
    a, b = t.alias("a"), t.alias("b")
    joined = a.join(b, F.col("a.k") == F.col("b.k"))
    fast, spared = checked(joined.groupBy("a.k").agg(F.max("a.y").alias("m")))
    assert len(spared) == semi_joins(fast) == 1 and fast.columns == ["k", "m"]
    assert len(checked(joined.select("a.k", "a.x").distinct())[1]) == 1
    assert shop.optimised(joined.select("a.k", "a.x").dropDuplicates(["k"]))[1].spared_joins == []
    looked: DataFrame = tiny.table("d").join(joined.select("a.k"), "k", "left_semi")
    assert len(checked(looked)[1]) == 1
    odd = F.udf(lambda value: value is not None and value % 2 == 1, "boolean")
    assert len(checked(joined.where(odd("a.x")).groupBy("a.k").agg(F.max("a.y")))[1]) == 1
    assert checked(joined.where(odd("b.x")).groupBy("a.k").agg(F.max("a.y")))[1] == []
    assert checked(a.join(b.hint("broadcast"), F.col("a.k") == F.col("b.k")).groupBy("a.k").agg(F.max("a.y")))[1] == []
    joined.cache()
    try:
        assert checked(joined.groupBy("a.k").agg(F.max("a.y")))[1] == []
    finally:
        joined.unpersist(blocking=True)
