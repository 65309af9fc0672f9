"""Scalar subqueries over one table with different filters read it once, and give the same values."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.guarantee.avoided_joins import draws
from tests.guarantee.avoided_joins.tables import checked, outcome, setting
from tests.guarantee.avoided_joins.test_fuse_aggregates import FILTERS
from tests.support import shop

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

EXCLUDED = "spark.sql.optimizer.excludedRules"
MERGING = ", ".join(
    f"org.apache.spark.sql.catalyst.optimizer.{rule}" for rule in ("MergeScalarSubqueries", "MergeSubplans")
)


def scalars(*parts: str) -> str:
    return "select " + ", ".join(f"({part}) c{i}" for i, part in enumerate(parts))


def scans(df: DataFrame) -> int:
    """How many scans of files run, those of subqueries once however often the result is used."""
    found, waiting = 0, [df._jdf.queryExecution().executedPlan()]
    while waiting:
        operator = waiting.pop()
        name = operator.getClass().getSimpleName()
        if name in ("ReusedSubqueryExec", "ReusedExchangeExec"):
            continue
        found += name == "FileSourceScanExec"
        for below in (operator.children(), operator.subqueries()):
            waiting += [below.apply(i) for i in range(below.size())]
    return found


def fused(df: DataFrame) -> int:
    """How many subqueries are computed together; the rows are compared, and there must be fewer scans."""
    subqueries, saved = compared(df)
    assert (saved > 0) is (subqueries > 0)
    return subqueries


def compared(df: DataFrame) -> tuple[int, int]:
    """How many subqueries are computed together, and how many scans that saves; the rows are compared."""
    fast, notes = checked(df)
    subqueries = [int(note.split()[0]) for note in notes if "scalar subqueries" in note]
    return sum(subqueries), scans(df) - scans(fast)


@pytest.fixture(params=["true", pytest.param("false", marks=pytest.mark.ci)], ids=["ansi", "not ansi"])
def ansi(request: pytest.FixtureRequest, tiny: SparkSession) -> Iterator[SparkSession]:
    with setting(tiny, "spark.sql.ansi.enabled", request.param):
        yield tiny


@pytest.fixture(scope="module")
def wide(tiny: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    """The session with tables of types that the small ones lack."""
    folder: Path = tmp_path_factory.mktemp("wide")
    columns = """id k, cast(id as decimal(38, 2)) d38, cast(if(id % 3 = 0, null, id / 7) as decimal(7, 2)) d7, id l,
        cast(null as int) nothing, date_add(date '2024-01-01', cast(id as int)) day, cast(id as timestamp) at,
        array(id) a, if(id % 4 = 0, double('NaN'), if(id % 4 = 1, -0.0D, 0.0D)) f, id % 3 p, id % 2 = 0 b"""
    frame = tiny.sql(f"select {columns} from range(40)")
    for name in ("parquet", "orc", "json"):
        frame.write.format(name).save(str(folder / name))
        tiny.read.format(name).load(str(folder / name)).createOrReplaceTempView(f"wide_{name}")
    frame.write.partitionBy("p").parquet(str(folder / "parts"))
    tiny.read.parquet(str(folder / "parts")).createOrReplaceTempView("parts")
    return tiny


@pytest.mark.parametrize(("first", "second"), FILTERS)
def test_filters(ansi: SparkSession, first: str, second: str) -> None:
    for source in ("t", "empty"):
        df = ansi.sql(
            scalars(
                f"select count(*) from {source} where {first}",
                f"select sum(y) from {source} where {second}",
                f"select max(f) from {source} where {second}",
            )
        )
        fast, notes = checked(df)
        same = {first, second} in ({"x = 1"}, {"x in (1, 2)", "x in (2, 1)"}, {"not (x > 1)", "x <= 1"})
        assert scans(fast) == 1
        assert notes == ([] if same else [f"3 scalar subqueries over {source}.parquet are computed in one pass"])


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("count(*)", "count(*)", 2),
        ("coalesce(sum(x), 0)", "count(*) > 2", 2),
        ("sum(x) + 1", "count(*)", 0),
        ("count(x)", "sum(x) filter (where y > 2)", 2),
        ("min(f)", "max(f)", 2),
        ("avg(f)", "sum(f)", 2),
        ("stddev(f)", "corr(f, x)", 2),
        ("bool_and(x > 1)", "bit_or(x)", 2),
        ("sum(case when x > 1 then y end)", "sum(if(x > 2, y, 0))", 2),
        ("max(s)", "min(s)", 2),
        ("max(s)", "max(x)", 0),
        ("count(distinct x)", "count(*)", 0),
        ("first(x)", "count(*)", 0),
        ("collect_list(x)[0]", "count(*)", 0),
        ("sum(10 / (x + 100))", "count(*)", 0),
        ("max(cast(s as int))", "count(*)", 0),
    ],
)
def test_functions_in_ansi_mode(tiny: SparkSession, first: str, second: str, expected: int) -> None:
    with setting(tiny, "spark.sql.ansi.enabled", "true"):
        for filters in (("s = '10' and x >= 1", "s = '10' and x < 3"), ("s = '10' and x = 99", "s = '10' and y < -1")):
            parts = [f"select {s} from t where {f}" for s, f in zip((first, second), filters)]
            assert fused(tiny.sql(scalars(*parts))) == expected


@pytest.mark.parametrize("table", ["wide_parquet", pytest.param("wide_orc", marks=pytest.mark.ci)])
@pytest.mark.parametrize(
    ("function", "in_ansi_mode"),
    [
        ("sum(d7)", True), ("avg(d7)", True), ("sum(nothing)", True), ("max(day)", True), ("min(at)", True),
        ("max(f)", True), ("min(f)", True), ("avg(l)", True), ("max(d38)", True), ("count(a)", True), ("max(b)", True),
        ("sum(l)", False), ("sum(d38)", False), ("avg(d38)", False),
    ],
)  # fmt: skip
def test_types(wide: SparkSession, table: str, function: str, in_ansi_mode: bool) -> None:
    for mode, expected in (("true", in_ansi_mode), ("false", True)):
        with setting(wide, "spark.sql.ansi.enabled", mode):
            parts = [f"select {function} from {table} where k < {n}" for n in (-1, 7, 30)]
            assert fused(wide.sql(scalars(*parts))) == (3 if expected else 0)


def test_wrong_schema_or_rows_of_other_sources(wide: SparkSession) -> None:
    assert fused(wide.sql(scalars(*(f"select count(*) from wide_json where k < {n}" for n in (3, 9))))) == 0


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("p = 1", "p = 2", 0),
        ("p = 1 and k > 5", "k > 30", 0),
        ("p = 1 and k > 5", "p = 1 and k > 30", 2),
        ("k > 5", "k > 30", 2),
    ],
)
def test_partitions(wide: SparkSession, first: str, second: str, expected: int) -> None:
    parts = [f"select count(*) from parts where {where}" for where in (first, second)]
    assert fused(wide.sql(scalars(*parts))) == expected


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("t where x = 1", "u where x = 2", 0),
        ("t where x = 1", "t q where q.x = 2", 2),
        ("t where x = 1", "(select y z, x from t) where x = 2", 0),
        ("t where x = 1", "(select y, x from t) where x = 2", 2),
        ("t where x = 1", "t join d on t.k = d.k where t.x = 2", 0),
        ("t where x = 1", "t where x = 2 and k in (select k from d)", 0),
        ("t where x = 1", "t where x = 2 and k > (select min(k) from d)", 0),
        ("t where x = 1", "t where x = 2 and rand() < 2", 0),
        ("t where x = 1 and length(s) > 1", "t where x = 2", 0),
        ("t where x = 1 and s = 'a'", "t where x = 2", 2),
        ("t where x = 1", "t where false", 0),
        ("t where x = 1", "t where x = 2 group by k having k = 1", 0),
        ("t where x = 1", "t where x = 2 having count(*) > 0", 0),
        ("t where x = 1", "t where x = 2 limit 1", 0),
        ("t where x = 1", "(select * from t limit 5) where x = 2", 0),
    ],
)
def test_what_is_read(tiny: SparkSession, first: str, second: str, expected: int) -> None:
    df = tiny.sql(scalars(f"select count(*) from {first}", f"select count(*) from {second}"))
    assert fused(df) == expected


A, B, C = (f"(select count(*) from t where x = {i})" for i in (1, 2, 3))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"select case when {A} > 3 then {B} else {C} end", 3),
        (f"select case when {A} > 3 then {B} else {A} end from d", 3),
        (f"select k from d where k < {A} and z < {B}", 2),
        (f"select k from d where k < {A} or {B} > {C}", 3),
        (f"select k, count(*) c from d group by k having count(*) < {A} or max(z) > {B}", 2),
        (f"select k, {A} + 1 q from d where z < {B} order by {C}, k", 3),
        (f"select d.k from d join u on d.k = u.k and u.y < {A} where u.x < {B}", 2),
        (f"select d.k from d join u on d.k = u.k join t on t.k = u.k where u.y < {A} and t.x < {B}", 2),
        (f"select k from d where k in (select k from u where y < {A} or x < {B})", 2),
        (f"select (select max(k) from d where k < {A} and z < {B})", 2),
        (f"select * from (select {A} a) union all select {B}", 2),
        (f"with w as (select {A} a, k from d) select * from w join w v on w.k = v.k where w.k < {B}", 2),
        (f"select a from (select {A} a, {B} b)", 0),
        (f"select {A}, (select count(*) from t where t.x = d.z) from d", 0),
        (f"select {A}, exists (select 1 from t where x = 2)", 0),
        (f"with w as (select k, rand() r from d) select {A}, {B}, count(*) from w join w v on w.k = v.k", 0),
        ("with w as (select * from t where y > 0) select (select count(*) from w where x = 1), "
         "(select max(y) from w where x = 2)", 0),
    ],
)  # fmt: skip
def test_where_they_stand(tiny: SparkSession, text: str, expected: int) -> None:
    assert fused(tiny.sql(text)) == expected


def test_not_if_what_is_left_needs_as_many_scans(tiny: SparkSession) -> None:
    """Spark merges a DISTINCT function with others that have the same filter."""
    left = [f"select count(distinct k) from t where x = {i}" for i in (1, 2)]
    for others, expected in (((), 2), (left[:1], 0), (left, 0)):
        assert fused(tiny.sql(scalars(A[1:-1], B[1:-1], *others))) == expected
    assert fused(tiny.sql(scalars(A[1:-1], B[1:-1], C[1:-1], *left[:1]))) == 3


def test_frames(tiny: SparkSession) -> None:
    if not hasattr(tiny.table("t"), "scalar"):
        pytest.skip("this Spark has no DataFrame.scalar")
    from pyspark.sql import functions as F

    counts = [tiny.table("t").where(f"x = {i}").agg(F.count("*")).scalar() for i in (1, 2)]
    assert fused(tiny.range(1).select(*(c.alias(f"c{i}") for i, c in enumerate(counts)))) == 2


def test_cached_tables(tiny: SparkSession) -> None:
    cached = tiny.table("t").cache()
    try:
        cached.createOrReplaceTempView("cached")
        assert fused(tiny.sql(f"select {A}, {B}".replace("from t", "from cached"))) == 0
    finally:
        cached.unpersist()


@pytest.mark.parametrize(
    "text",
    [
        # an argument and a filter that fail on rows of the other subquery
        scalars("select sum(10 / x) from t where x > 0", "select count(*) from t where x = 0"),
        scalars("select count(*) from t where x > 0 and 10 / x > 4", "select count(*) from t where x = 0"),
        scalars("select max(cast(s as int)) from t where s = '10'", "select count(*) from t where s = 'a'"),
        # a result that fails, and is in the result of no row
        "select (select 10 / count(*) from t where x = 99) from empty union all "
        "select (select count(*) from t where x = 1) from d",
        "select k from d where z = 99 and k < (select 10 / count(*) from t where x = 99) union all "
        "select (select count(*) from t where x = 1)",
    ],
)
def test_does_not_fail_where_spark_does_not(ansi: SparkSession, text: str) -> None:
    df = ansi.sql(text)
    fast, report = shop.optimised(df)
    assert outcome(fast) == outcome(df)
    assert not report.spared_joins or ansi.conf.get("spark.sql.ansi.enabled") == "false"


def test_with_adaptive_execution(tiny: SparkSession) -> None:
    with setting(tiny, "spark.sql.adaptive.enabled", "true"):
        df = tiny.sql(f"select k, {A} + 1 q, {B} from d where z < {C}")
        assert len(checked(df)[1]) == 1


@pytest.mark.parametrize(
    ("key", "value"), [(EXCLUDED, MERGING), ("spark.sql.execution.reuseSubquery", "false"), ("", "")]
)
def test_settings_without_which_spark_merges_nothing(tiny: SparkSession, key: str, value: str) -> None:
    df = tiny.sql(f"select {A}, {B}")
    if not key:
        assert fused(df) == 2
        return
    before = tiny.conf.get(key, None)
    tiny.conf.set(key, value)
    try:
        assert fused(df) == 0
    finally:
        tiny.conf.unset(key) if before is None else tiny.conf.set(key, before)


@pytest.mark.parametrize(
    "options", [{"rewrites_without": "fuse_scalar_subqueries"}, {"strategy": "spark"}, {"strategy": "heuristic"}]
)
def test_switched_off(tiny: SparkSession, options: dict[str, str]) -> None:
    df = tiny.sql(f"select {A}, {B}")
    fast, report = shop.optimised(df, **options)
    assert fast is df and not report.spared_joins and "no join" in report.refusals[0].reason


def test_only_reported(tiny: SparkSession) -> None:
    df = tiny.sql(f"select {A}, {B}")
    fast, report = shop.optimised(df, strategy="none")
    assert fast is df and len(report.spared_joins) == 1


@pytest.mark.ci
def test_at_random(tiny: SparkSession, pytestconfig: pytest.Config) -> None:
    """Two to six subqueries with random filters and functions, in random places.

    No scan may be saved: of contradictory filters Spark makes an empty relation, and Spark 4.3 merges a subquery that
    has filters with one that has none.
    """
    seed = pytestconfig.getoption("--fuzz-seed")
    saved, wrong = [], []
    for number in range(40):
        text = draws.scalar_subqueries(Random(f"{seed}/{number}"))
        try:
            with setting(tiny, "spark.sql.ansi.enabled", str(number % 2 == 0).lower()):
                subqueries, scans_less = compared(tiny.sql(text))
            assert scans_less >= 0, f"{-scans_less} scans more"
            saved += [scans_less] if subqueries else []
        except Exception as problem:
            wrong.append(f"{number}: {text}\n{str(problem)[:600]}")
    assert not wrong, f"{len(wrong)} of 40:\n" + "\n".join(wrong[:5])
    assert len(saved) > 15 and sum(map(bool, saved)) > 8, saved


def test_filters_of_floating_numbers(tiny: SparkSession, tmp_path: Path) -> None:
    """Spark's reader skips the rows of 0.0 for `x = -0.0` alone, and not for an OR."""
    tiny.sql("select 0D x, cast(id as int) k from range(9)").coalesce(1).write.parquet(str(tmp_path / "zeros"))
    tiny.read.parquet(str(tmp_path / "zeros")).createOrReplaceTempView("zeros")
    df = tiny.sql("select (select count(*) from zeros where x = -0D), (select count(*) from zeros where k > 2)")
    fast = df.optimize_joins(strict=True)
    assert fast.collect() == df.collect() and not fast.join_report().spared_joins
    df = tiny.sql(
        "select * from (select count(*) c from zeros where x = -0D), (select count(*) d from zeros where x > 2)"
    )
    fast = df.optimize_joins(strict=True)
    assert fast.collect() == df.collect() and not fast.join_report().spared_joins
