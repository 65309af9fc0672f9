"""Readers of a common table expression that differ by constants make one exchange of its groups, with the same rows."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.eager import session_with
from tests.support.prefilters import checked

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Not unique: a pivot cannot take the place of the join.
GROUPS = "SELECT k, s, g AS y, sum(v) AS a, count(*) AS c FROM f GROUP BY k, s, g"
BRANCHES = (
    "SELECT 'f' AS b, k, s, g AS y, sum(v) AS a FROM f GROUP BY k, s, g UNION ALL "
    "SELECT 'd', id, ds, w AS y2, sum(id) FROM d GROUP BY id, ds, w"
)
SHARED = {
    "two readers": f"""WITH t AS ({GROUPS}) SELECT p.k, p.a, q.a FROM t p JOIN t q ON p.k = q.k
        WHERE p.y = 1 AND q.y = 2""",
    "more of one of them": f"""WITH t AS ({GROUPS}) SELECT p.k, p.s, p.a, q.a, q.y FROM t p JOIN t q ON p.k = q.k
        WHERE p.y = 1 AND q.y = 2 AND p.a > 0 AND q.a IS NOT NULL""",
    "three readers": f"""WITH t AS ({GROUPS}) SELECT p.k, p.a - q.a, r.a FROM t p, t q, t r
        WHERE p.k = q.k AND q.k = r.k AND p.y = 1 AND q.y = 2 AND r.y = 3""",
    "ranges": f"WITH t AS ({GROUPS}) SELECT * FROM t p JOIN t q ON p.k = q.k WHERE p.y < 2 AND q.y BETWEEN 3 AND 4",
    "branches": f"""WITH t AS ({BRANCHES}) SELECT p.k, p.a, q.a, r.a, u.a FROM t p, t q, t r, t u
        WHERE p.k = q.k AND p.k = r.k AND u.k = p.k AND p.b = 'f' AND q.b = 'f' AND r.b = 'd' AND u.b = 'd'
        AND p.y = 1 AND q.y = 2 AND r.y = 3 AND u.y = 4""",
    "over a join": """WITH t AS (SELECT f.k, s, w AS y, sum(v) a FROM f JOIN d ON f.g = d.id GROUP BY f.k, s, w)
        SELECT p.k, p.a, q.a FROM t p JOIN t q ON p.k = q.k WHERE p.y = 1 AND q.y = 2""",
    "NULL is a year": f"""WITH t AS ({GROUPS}) SELECT p.k, p.a, q.a FROM t p JOIN t q ON p.k = q.k
        WHERE p.y = 1 AND q.y IS NULL""",
}
KEPT = {
    "the same filter": f"WITH t AS ({GROUPS}) SELECT p.k, q.a FROM t p JOIN t q ON p.k = q.k WHERE p.y = 1 AND q.y = 1",
    "no filter": f"WITH t AS ({GROUPS}) SELECT p.k, q.a FROM t p JOIN t q ON p.k = q.k WHERE p.y = 1",
    "other filters": f"""WITH t AS ({GROUPS}) SELECT p.k, q.a FROM t p JOIN t q ON p.k = q.k
        WHERE p.y = 1 AND q.s = 't1'""",
    "other results": f"""WITH t AS ({GROUPS}) SELECT p.k, p.a, q.c FROM t p JOIN t q ON p.k = q.k
        WHERE p.y = 1 AND q.y = 2""",
    "other keys": f"WITH t AS ({GROUPS}) SELECT p.a, q.a FROM t p JOIN t q ON p.k = q.a WHERE p.y = 1 AND q.y = 2",
    "optional": f"""WITH t AS ({GROUPS}) SELECT p.a, q.a FROM (SELECT * FROM t WHERE y = 1) p LEFT JOIN
        (SELECT * FROM t WHERE y = 2) q ON p.k = q.k""",
    "of different branches": f"""WITH t AS ({BRANCHES}) SELECT p.k, p.a, r.a FROM t p, t r WHERE p.k = r.k
        AND p.b = 'f' AND r.b = 'd' AND p.y = 1 AND r.y = 3""",
    "floating-point numbers": """WITH t AS (SELECT k, s, x AS y, sum(v) a FROM f GROUP BY k, s, x) SELECT p.a, q.a
        FROM t p JOIN t q ON p.k = q.k WHERE p.y = 1 AND q.y = 2""",
    "no groups": """WITH t AS (SELECT k, s, g AS y, v a FROM f) SELECT p.a, q.a FROM t p JOIN t q ON p.k = q.k
        WHERE p.y = 1 AND q.y = 2""",
    "computed": """WITH t AS (SELECT k, s, g + 1 AS y, sum(v) a FROM f GROUP BY k, s, g + 1) SELECT p.a, q.a
        FROM t p JOIN t q ON p.k = q.k WHERE p.y = 1 AND q.y = 2""",
    "by chance": """WITH t AS (SELECT k, s, g AS y, sum(v) + rand() * 0 a FROM f GROUP BY k, s, g) SELECT p.k, q.k
        FROM t p JOIN t q ON p.k = q.k WHERE p.y = 1 AND q.y = 2""",
}


@pytest.fixture(scope="module")
def facts(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    session = session_with(spark, tmp_path_factory.mktemp("shared"))
    yield session
    session.catalog.clearCache()


def shared(session: SparkSession, text: str, **options: object) -> bool:
    """Whether readers share groups, after rows and schema were compared with plain Spark's."""
    return any("share its groups" in note for note in checked(session.sql(text), **options).spared_joins)


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("name", SHARED)
def test_groups_are_shuffled_once(facts: SparkSession, name: str, ansi: str) -> None:
    facts.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        assert shared(facts, SHARED[name])
        df = facts.sql(SHARED[name])
        fast = df.optimize_joins(strict=True)
        without = df.optimize_joins(strict=True, rewrites_without="share_common_tables")
        assert _scans(fast) < _scans(without)
    finally:
        facts.conf.unset("spark.sql.ansi.enabled")


def _scans(df: object) -> int:
    """The scans that run, without those below a reused exchange."""
    df.collect()  # type: ignore[attr-defined]
    plan = df._jdf.queryExecution().executedPlan().toString()  # type: ignore[attr-defined]
    return str(plan.split("== Initial Plan ==")[0]).count("FileScan")


@pytest.mark.parametrize("name", KEPT)
def test_others_are_left_alone(facts: SparkSession, name: str) -> None:
    assert not shared(facts, KEPT[name])


def test_switched_off(facts: SparkSession) -> None:
    assert not shared(facts, SHARED["two readers"], rewrites_without="share_common_tables")
    assert not shared(facts, SHARED["two readers"], strategy="heuristic")


def test_without_reuse_nothing_is_shared(facts: SparkSession) -> None:
    facts.conf.set("spark.sql.exchange.reuse", "false")
    try:
        assert not shared(facts, SHARED["two readers"])
    finally:
        facts.conf.unset("spark.sql.exchange.reuse")


def test_many_groups_are_not_shared(facts: SparkSession) -> None:
    text = """WITH t AS (SELECT id AS k, id % 3 AS s, id % 2 AS y, sum(id) AS a FROM range(9000000) GROUP BY 1, 2, 3)
        SELECT p.k FROM (SELECT k, s, y AS z, a FROM t) p JOIN (SELECT k, s, y AS z, a FROM t) q ON p.k = q.k
        WHERE p.z = 0 AND q.z = 1"""
    report = facts.sql(text).optimize_joins(strict=True).join_report()
    assert not any("share its groups" in note for note in report.spared_joins)


@pytest.mark.ci
@pytest.mark.parametrize("seed", range(3))
def test_drawn_queries(facts: SparkSession, seed: int) -> None:
    draw = random.Random(seed)
    assert sum(shared(facts, _drawn(draw)) for _ in range(14)) >= 4


def _drawn(draw: random.Random) -> str:
    """Readers of one definition with drawn filters, joins and columns."""
    y = draw.choice(["g", "g", "i8", "q", "t", "m"])
    values = {
        "g": ["0", "1", "2", "3"], "i8": ["1", "2", "7"], "q": ["true", "false"], "m": ["0.1", "-1.2"],
        "t": ["DATE '2020-01-02'", "DATE '2020-01-05'"],
    }  # fmt: skip
    groups = draw.choice(["k, s", "s, k", "k", "s"])
    function = draw.choice(["sum(v)", "count(*)", "min(b)", "avg(m)", "max(x)", "count(DISTINCT v)", "first(k)"])
    function = "max(k)" if function == "first(k)" and groups == "s" else function
    source = draw.choice(["f", "f", "f JOIN d ON f.g = d.id", "f LEFT JOIN (SELECT z FROM e) e ON f.g = e.z"])
    listed = groups.replace("k", "f.k").replace("s", "f.s")
    table = f"SELECT {listed}, {y} AS y, {function} AS a FROM {source} GROUP BY {listed}, {y}"
    if draw.random() < 0.4:
        table = f"SELECT 'f' AS b, * FROM ({table})"
    readers = "pqr"[: draw.choice([2, 2, 3])]
    key = groups[0]
    tests = [f"{r}.y {draw.choice(['=', '=', '=', '>=', '<=>'])} {draw.choice(values[y])}" for r in readers]
    tests += [f"{readers[0]}.{key} = {r}.{key}" for r in readers[1:]]
    if draw.random() < 0.5:
        tests.append(draw.choice(["p.a IS NOT NULL", "p.a <> q.a", f"q.{key} IS NOT NULL", "p.y <= q.y"]))
    columns = draw.choice(["*", "p.a, q.a", f"p.{key}, p.a, q.y, q.a", "count(*), count(p.a), count(q.a)"])
    draw.shuffle(tests)
    tables = ", ".join(f"t {r}" for r in readers)
    return f"WITH t AS ({table}) SELECT {columns} FROM {tables} WHERE {' AND '.join(tests)}"
