"""The smaller suite for every supported Spark: end-to-end runs on real data, and differences between versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import pyjoinopt
from pyjoinopt import testing
from pyjoinopt.bridge.shim import bridge_for
from tests.support import tpc
from tests.support.compare import assert_same_rows, assert_same_schema
from tests.support.run import collect_both

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def check(df: DataFrame, changed: bool | None = True, **options: Any) -> DataFrame:
    """Optimise, run both, compare; gives the optimised DataFrame."""
    fast = df.optimize_joins(strict=True, **options)
    assert_same_schema(df, fast)
    rows, fast_rows = collect_both(df, fast)
    assert_same_rows(rows, fast_rows, label=("plain Spark", "optimised"))
    if changed is not None:
        assert fast._pyjoinopt_report.changed is changed
    return fast


@pytest.fixture(scope="module")
def small(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    """fact (2000 rows), mid (200), dim (20) and note (10) as Parquet views, with NULLs and duplicates."""
    session = spark.newSession()
    folder = tmp_path_factory.mktemp("small")
    for name, rows, keys in (("fact", 2000, 200), ("mid", 200, 20), ("dim", 20, 10), ("note", 10, 5)):
        session.range(rows).selectExpr(
            f"CASE WHEN id % 17 = 3 THEN NULL ELSE CAST(id % {keys} AS int) END AS {name}_f",
            f"CAST(id AS int) AS {name}_k",
            f"CAST(id % 5 AS int) AS {name}_v",
        ).write.parquet(str(folder / name))
        session.read.parquet(str(folder / name)).createOrReplaceTempView(name)
    return session


BAD_ORDER = """
    SELECT fact_k, mid_v, dim_v FROM fact JOIN mid ON fact_f = mid_k JOIN dim ON mid_f = dim_k
    WHERE dim_v = 1 AND fact_v < 4
"""


@pytest.mark.parametrize("number", range(1, 23))
def test_tpch(tpch: SparkSession, number: int) -> None:
    text = dict(tpc.spark_queries("tpch"))[number]
    check(tpch.sql(text), changed=True if number in tpc.REORDERED else None)


def test_the_report(small: SparkSession) -> None:
    report = pyjoinopt.join_report(small.sql(BAD_ORDER), strict=True)
    (group,) = report.groups
    assert group.changed and group.cost_after < group.cost_before
    assert {r.source for r in group.relations} == {"footers", "footers, sample"}
    assert "((fact ⋈ mid) ⋈ dim)" in report.to_text()


@pytest.mark.parametrize("strategy", ["auto", "spark", "heuristic", "none"])
def test_every_strategy(small: SparkSession, strategy: str) -> None:
    check(small.sql(BAD_ORDER), changed=None, strategy=strategy)


def test_outer_joins_go_and_columns_between_joins_do_not_matter(small: SparkSession) -> None:
    from pyspark.sql.functions import col

    fact, mid, dim = (small.table(name) for name in ("fact", "mid", "dim"))
    df = (
        fact.join(mid, col("fact_f") == col("mid_k"), "left")
        .withColumn("doubled", col("mid_v") * 2)
        .join(dim, col("mid_f") == col("dim_k"))
        .where("dim_v = 1 AND doubled > 0")
    )
    fast = check(df)
    assert len(fast._pyjoinopt_report.eliminated_outer_joins) == 1
    assert fast.select(fact["fact_k"], fast["doubled"]).columns == ["fact_k", "doubled"]


@pytest.mark.parametrize(
    ("text", "spared"),
    [
        ("SELECT * FROM (SELECT count(*) few, sum(DISTINCT fact_f) s FROM fact JOIN mid ON fact_f = mid_k "
         "WHERE mid_v = 1), "
         "(SELECT count(mid_f) more FROM fact JOIN mid ON fact_f = mid_k WHERE mid_v BETWEEN 2 AND 2 + 1)", 1),
        ("WITH w AS (SELECT fact_f, fact_v, count(*) n, max(fact_k) k FROM fact GROUP BY 1, 2) "
         "SELECT a.n, b.*, c.k FROM w a, w b, w c WHERE a.fact_f = b.fact_f AND b.fact_f = c.fact_f "
         "AND a.fact_v = 1 AND b.fact_v = 2 AND c.fact_v = 2 AND c.k > 50", 1),
        ("WITH w AS (SELECT a.fact_f f, a.fact_v, b.fact_v AS other FROM fact a, fact b WHERE a.fact_f = b.fact_f "
         "AND a.fact_v <> b.fact_v) SELECT * FROM mid WHERE mid_k IN (SELECT f FROM w) "
         "AND mid_v IN (SELECT f FROM w)", 1),
    ],
)  # fmt: skip
def test_joins_are_spared(small: SparkSession, text: str, spared: int) -> None:
    assert len(check(small.sql(text))._pyjoinopt_report.spared_joins) == spared


def test_subqueries_ctes_and_set_operations(small: SparkSession) -> None:
    check(small.sql(f"WITH t AS ({BAD_ORDER}) SELECT * FROM t x JOIN t y ON x.fact_k = y.fact_k WHERE x.mid_v = 2"))
    check(small.sql(f"SELECT * FROM note WHERE note_k IN (SELECT mid_v FROM ({BAD_ORDER}))"))
    check(small.sql(f"{BAD_ORDER} UNION ALL {BAD_ORDER}"))


def test_semi_anti_and_full_joins_keep_their_rows(small: SparkSession) -> None:
    for kind in ("LEFT SEMI", "LEFT ANTI", "FULL", "RIGHT"):
        columns = "a.*" if kind.startswith("LEFT") else "a.*, note_v"
        check(small.sql(f"SELECT {columns} FROM ({BAD_ORDER}) a {kind} JOIN note ON a.mid_v = note_k"), cost="c_out")


def test_a_cached_join_stays_cached(small: SparkSession) -> None:
    cached = small.sql("SELECT * FROM fact JOIN mid ON fact_f = mid_k").cache()
    try:
        cached.count()
        joined = cached.join(small.table("dim"), cached["mid_f"] == small.table("dim")["dim_k"])
        fast = joined.join(small.table("note"), joined["dim_f"] == small.table("note")["note_k"]).where("note_v = 1")
        fast = check(fast, changed=None)
        assert "InMemoryTableScan" in fast._jdf.queryExecution().executedPlan().toString()
    finally:
        cached.unpersist()


def test_your_hint_keeps_its_place(small: SparkSession) -> None:
    text = BAD_ORDER.replace("SELECT", "SELECT /*+ MERGE(mid) */", 1)
    report = pyjoinopt.join_report(small.sql(text), strict=True)
    assert not any(group.changed for group in report.groups)
    assert any("hint" in refusal.reason for refusal in report.refusals)


def test_streams_and_wrong_options_are_told(small: SparkSession) -> None:
    stream = small.readStream.format("rate").load()
    with pytest.raises(pyjoinopt.RefusedError, match="streaming"):
        stream.optimize_joins(strict=True)
    assert stream.optimize_joins() is stream
    with pytest.raises(ValueError, match="strategy"):
        small.table("dim").optimize_joins(strategy="fastest")


def test_nothing_is_left_open(small: SparkSession) -> None:
    df = small.sql(BAD_ORDER)
    for _ in range(20):
        df.optimize_joins(strict=True)
    assert bridge_for(df).openHandles() == 0


def test_assertions_for_tests_of_users(small: SparkSession) -> None:
    """They read Spark's physical plan and its metrics."""
    df = small.sql(BAD_ORDER)
    testing.assert_reordered(df, cost="c_out", strict=True)
    testing.assert_same_rows(df, df.optimize_joins(cost="c_out"))
    rows = small.sql("SELECT 1 FROM mid JOIN dim ON mid_f = dim_k WHERE dim_v = 1").count()
    testing.assert_max_rows(df, ["mid", "dim"], rows, cost="c_out")
    with pytest.raises(AssertionError, match=f"mid ⋈ dim gives {rows} rows"):
        testing.assert_max_rows(df, ["mid", "dim"], rows - 1, cost="c_out")
    testing.assert_no_cartesian(df)
    with pytest.raises(AssertionError, match="BroadcastNestedLoopJoin of the rows"):
        testing.assert_no_cartesian(small.sql("SELECT fact_k + note_k FROM fact, note"))
    testing.assert_no_cartesian(small.sql("SELECT fact_k / total FROM fact, (SELECT sum(fact_k) AS total FROM fact)"))
