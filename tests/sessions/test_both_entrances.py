"""The same query gets the same join order from `optimize_joins()` and from the session extension.

The extension gets a plan after most of Spark's optimizer rules, the call gets the analysed plan. `DIFFERENT` lists the
TPC queries that get another order for this reason, with the cause; `docs/sessions.md` has the same list for users.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest

import pyjoinopt
from tests.support import tpc
from tests.support.join_order import orders_of_both

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Why -> the queries, on Spark 4.3.
DIFFERENT: dict[str, dict[str, frozenset[int]]] = {
    "A common table expression with several readers": {
        "tpcds": frozenset({1, 4, 11, 14, 24, 27, 30, 31, 39, 74, 75, 81}),
    },
    "The same aggregate twice": {"tpcds": frozenset({65})},
    "An IN over one side of an equality": {"tpch": frozenset({18})},
    "A filter that compares with a scalar subquery": {"tpcds": frozenset({54})},
    "A semi or anti join": {"tpcds": frozenset({16, 35, 38, 70, 78, 95})},
}
PAGE = Path(pyjoinopt.__file__).parent.parent / "docs" / "sessions.md"
SETTINGS = {
    "spark.pyjoinopt.statistics": "full",  # samples are waited for
    "spark.pyjoinopt.store": "off",
    "spark.pyjoinopt.timeout": "60s",
    "spark.sql.codegen.wholeStage": "false",
}
SIZES = {"t0": 40_000, "t1": 6_000, "t2": 900, "t3": 130, "t4": 17}


def enabled(spark: SparkSession) -> SparkSession:
    session = spark.newSession()
    pyjoinopt.enable(session)
    for key, value in SETTINGS.items():
        session.conf.set(key, value)
    return session


def known(benchmark: str) -> frozenset[int]:
    found: frozenset[int] = frozenset()
    return found.union(*(queries.get(benchmark, frozenset()) for queries in DIFFERENT.values()))


def _tpc() -> list[object]:
    cases: list[object] = []
    for benchmark in ("tpch", "tpcds"):
        for number in sorted(tpc.spark_queries(benchmark)):
            if benchmark == "tpch":
                marks = () if number % 2 == 0 else (pytest.mark.ci,)
            else:
                marks = () if number % 8 == 0 else (pytest.mark.ci,) if number % 4 == 0 else (pytest.mark.slow,)
            cases.append(pytest.param(benchmark, number, marks=marks, id=f"{benchmark}-{number}"))
    return cases


@pytest.fixture(scope="module")
def benchmarks(spark: SparkSession) -> dict[str, SparkSession]:
    sessions = {}
    for benchmark in ("tpch", "tpcds"):
        sessions[benchmark] = enabled(spark)
        tpc.register(sessions[benchmark], benchmark)
    return sessions


@pytest.mark.parametrize(("benchmark", "number"), _tpc())
def test_tpc(benchmarks: dict[str, SparkSession], benchmark: str, number: int) -> None:
    _, by_call, by_extension = orders_of_both(benchmarks[benchmark], tpc.spark_queries(benchmark)[number])
    if number not in known(benchmark):
        assert by_call == by_extension
    elif pyspark.__version__.startswith("4.3"):
        assert by_call != by_extension, "it may be taken off the list"


def test_the_page_lists_the_differences() -> None:
    rows = [line.split("|") for line in PAGE.read_text().splitlines() if "| TPC-" in line]
    reported = {row[1].strip(): row[2].strip() for row in rows}
    names = {"tpch": "TPC-H", "tpcds": "TPC-DS"}
    expected = {
        why: "; ".join(f"{names[b]} {', '.join(map(str, sorted(n)))}" for b, n in queries.items())
        for why, queries in DIFFERENT.items()
    }
    assert reported == expected


@pytest.fixture(scope="module")
def files(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    """Five tables of very different sizes, some keys of which are NULL, and rows in memory."""
    folder = tmp_path_factory.mktemp("entrances")
    session = enabled(spark)
    session.conf.set("spark.pyjoinopt.statistics", "footers")  # random samples would decide between similar orders
    for name, rows in SIZES.items():
        spark.range(rows).selectExpr(
            f"CASE WHEN id % 11 = 3 THEN NULL ELSE id % {max(5, rows // 3)} END k", f"id % 10 {name}v"
        ).coalesce(1).write.parquet(str(folder / name))
        session.read.parquet(str(folder / name)).createOrReplaceTempView(name)
    for name in "abc":
        rows = f"VALUES (1, 2), (1, 3), (2, 4), (3, 5) t(k, {name}v)"
        session.sql(f"CREATE TEMP VIEW {name} AS SELECT * FROM {rows}")
        session.sql(f"CREATE TEMP VIEW {name}_sum AS SELECT k, sum({name}v) s{name} FROM {rows} GROUP BY k")
        ranked = f"row_number() OVER (PARTITION BY k ORDER BY {name}v) r{name}"
        session.sql(f"CREATE TEMP VIEW {name}_rank AS SELECT k, {ranked} FROM {rows}")
        session.sql(f"CREATE TEMP VIEW {name}_top AS SELECT k, {name}v FROM {rows} LIMIT 3")
    return session


FORMS = ("{} JOIN {} USING (k) JOIN {} USING (k)", "{} NATURAL JOIN {} NATURAL JOIN {}")
OUTER = ("{} NATURAL LEFT JOIN {} NATURAL LEFT JOIN {}", "{} LEFT JOIN {} USING (k) LEFT JOIN {} USING (k)")


@pytest.mark.parametrize("kind", ["", "_rank", *(pytest.param(k, marks=pytest.mark.ci) for k in ("_sum", "_top"))])
@pytest.mark.parametrize("form", [*FORMS, *OUTER])
def test_using_and_natural_joins(files: SparkSession, form: str, kind: str) -> None:
    query = "SELECT * FROM " + form.format(f"a{kind}", f"b{kind}", f"c{kind}")
    written, by_call, by_extension = orders_of_both(files, query)
    assert by_call == by_extension
    files.conf.set("spark.pyjoinopt.enabled", "false")
    expected = sorted(map(str, files.sql(query).collect()))
    called = files.sql(query).optimize_joins(strict=True)
    assert sorted(map(str, called.collect())) == expected
    files.conf.set("spark.pyjoinopt.enabled", "true")
    assert sorted(map(str, files.sql(query).collect())) == expected


@pytest.mark.parametrize("kind", ["_sum", "_rank"])
def test_the_extension_rebuilds_what_a_using_join_hid(files: SparkSession, kind: str) -> None:
    """Spark copies the mark of the hidden columns to projections over other columns."""
    files.conf.set("spark.pyjoinopt.enabled", "true")
    files.sql(f"SELECT * FROM a{kind} NATURAL LEFT JOIN b{kind} NATURAL LEFT JOIN c{kind}").collect()
    files.sql(f"SELECT * FROM a{kind} JOIN b{kind} USING (k) JOIN c{kind} USING (k)").collect()
    last = pyjoinopt.last_reports(files)[-2:]
    assert last and all(report.error is None for report in last), [report.error for report in last]


ASKS = (
    "t1.k IN (SELECT k FROM t4 WHERE t4v > 2 AND t4.t4v <> t1.t1v)",
    "EXISTS (SELECT 1 FROM t4 WHERE t4.t4v = t1.t1v)",
    "t2.t2v IN (SELECT t4v FROM t4)",
)


@pytest.mark.parametrize("asks", ASKS)
def test_a_subquery_in_a_join_condition_becomes_a_join(files: SparkSession, asks: str) -> None:
    query = f"SELECT count(*) n FROM t0 JOIN t1 ON t0.k = t1.k JOIN t2 ON t2.k = t1.k AND {asks}"
    _, by_call, by_extension = orders_of_both(files, query)
    assert by_call == by_extension and "LeftSemi" in by_call
    report = pyjoinopt.join_report(files.sql(query))
    assert "⋉" in report.groups[0].order_after and len(report.groups[0].relations) == 4
    assert files.sql(query).collect() == files.sql(query).optimize_joins(strict=True).collect()


def drawn(rng: random.Random) -> str:
    """A query over some of the files, joined on k by USING, NATURAL or ON."""
    names = rng.sample(sorted(SIZES), rng.randrange(3, 6))
    wraps = ("{n}", "{n}", "(SELECT k, sum({n}v) {n}v FROM {n} GROUP BY k) {n}",
             "(SELECT k, {n}v FROM {n} WHERE {n}v < 3) {n}",
             "(SELECT k, row_number() OVER (PARTITION BY k ORDER BY {n}v) {n}v FROM {n}) {n}",
             "(SELECT DISTINCT k, {n}v FROM {n} ORDER BY k, {n}v LIMIT 12) {n}")  # fmt: skip
    parts = [rng.choice(wraps).format(n=name) for name in names]
    text = parts[0]
    for part in parts[1:]:
        text += rng.choice((f" JOIN {part} USING (k)", f" NATURAL JOIN {part}"))
    where = f" WHERE {names[0]}v > 1" if rng.random() < 0.4 else ""
    return f"SELECT * FROM {text}{where}"


@pytest.mark.parametrize("seed", [*range(12), *(pytest.param(n, marks=pytest.mark.slow) for n in range(12, 100))])
def test_drawn_queries(files: SparkSession, seed: int) -> None:
    query = drawn(random.Random(f"entrances {seed}"))
    _, by_call, by_extension = orders_of_both(files, query)
    assert by_call == by_extension, query


def test_drawn_queries_get_another_order(files: SparkSession) -> None:
    """Guards against a vacuous test: two entrances that change nothing would agree, too."""
    changed = 0
    for seed in range(6):
        written, by_call, _ = orders_of_both(files, drawn(random.Random(f"entrances {seed}")))
        changed += written != by_call
    assert changed >= 3
