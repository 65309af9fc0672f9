"""Aggregates of which one joins a relation more are computed in one pass, and give the same row."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.guarantee.avoided_joins.tables import outcome
from tests.support.compare import assert_same_rows
from tests.support.eager import FREE, session_with
from tests.support.prefilters import checked, enabled

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Facts with keys that are NULL or have no partner; `p` has keys that are NULL or come several times; `g` has none.
TABLES = {
    "f": """SELECT if(id % 7 = 3, null, cast(id % 6 AS int)) k, cast(id % 4 AS int) d, if(id % 5 = 0, null,
        cast(id % 11 - 3 AS int)) x, cast(id % 50 - 20 AS decimal(7, 2)) / 10 m, concat('s', id % 5) s,
        cast(if(id % 6 = 0, null, id % 3 - 1) AS double) z, if(id % 9 = 1, null, cast(id % 5 AS int)) k2
        FROM range(70)""",
    "p": """SELECT if(id % 8 = 5, null, cast(id * 3 % 10 AS int)) k, concat('n', id % 3) n, cast(id % 4 AS int) c,
        if(id % 3 = 0, cast('-0.0' AS double), id % 3 - 1) z, cast(id % 5 AS int) k2 FROM range(40)""",
    "d": "SELECT cast(id AS int) d, cast(id % 2 AS int) w FROM range(4)",
    "e": "SELECT cast(id AS int) k, cast(id AS int) c FROM range(0)",
    "o": "SELECT cast(id % 3 AS int) k, cast(id AS int) x, cast(0 AS double) z FROM range(9)",
    "q": "SELECT cast(id % 3 AS int) c, concat('v', id % 2) v FROM range(5)",
}
NOTE = "are computed together: only the former are joined with"

#: It fails for facts with `d = 1`.
NUMBER = "cast(substr(f.s, if(f.d = 1, 1, 2)) AS int)"


def both(larger: str, smaller: str, one: str = "sum(x) a", other: str = "sum(x) b") -> str:
    """Two aggregates, cross joined."""
    return f"SELECT * FROM (SELECT {one} FROM {larger}) l, (SELECT {other} FROM {smaller}) r"


FUSED = {
    "a key that is no key": both("f JOIN p ON f.k = p.k", "f"),
    "a filter on the further relation": both("f JOIN p ON f.k = p.k WHERE n = 'n1' OR c = 2", "f"),
    "in the other order": "SELECT b, a FROM (SELECT sum(x) b FROM f) r, (SELECT sum(x) a FROM f JOIN p ON f.k = p.k) l",
    "no rows": both("f JOIN p ON f.k = p.k WHERE d > 9", "f WHERE d > 9"),
    "no partners": both("f JOIN e ON f.k = e.k", "f"),
    "no facts that have one": both("f JOIN p ON f.k = p.k WHERE p.k > 90", "f"),
    "below other joins": both(
        "f, p, d WHERE f.k = p.k AND f.d = d.d AND w = 1 AND p.c > 0", "f JOIN d ON d.d = f.d AND w = 1"
    ),
    "in another order": both("p JOIN (d JOIN f ON w = 0 AND f.d = d.d) ON f.k = p.k", "f JOIN d USING (d) WHERE w = 0"),
    "a filter of its own": both("f JOIN p ON f.k = p.k WHERE d = 1 AND s IS NOT NULL", "f WHERE s IS NOT NULL"),
    "several keys": both("f JOIN p ON f.k = p.k AND f.k2 = p.k2", "f"),
    "one key twice": both("f JOIN p ON f.k = p.k AND f.d = p.k", "f"),
    "more between keys": both("f JOIN p ON f.k = p.k AND f.x < p.k", "f"),
    "two further relations": both("f JOIN p ON f.k = p.k JOIN q ON q.c = p.c WHERE v = 'v1'", "f"),
    "a table with itself": both("f JOIN f g ON f.k = g.d", "f", "sum(f.x) a"),
    "a table twice in both": both("f JOIN d ON f.d = d.d JOIN d c ON f.k = c.d AND c.w = 1", "f JOIN d ON f.d = d.d"),
    "the other one of two": both(
        "d c JOIN f ON f.k = c.d AND c.w = 1 JOIN d ON f.d = d.d AND d.w = 0", "f JOIN d ON f.d = d.d WHERE d.w = 0"
    ),
    "groups": both("f JOIN (SELECT k, max(c) c FROM p GROUP BY k) g ON f.k = g.k", "f"),
    "columns of groups": both("f JOIN (SELECT k, max(c) c FROM p GROUP BY k) g USING (k)", "f", "max(least(x, c)) a"),
    "another type": both("f JOIN (SELECT cast(k AS bigint) k FROM p) g ON f.k = g.k", "f"),
    "distinct rows": both("f JOIN (SELECT DISTINCT k FROM p WHERE c > 1) g ON f.k = g.k", "f"),
    "another relation beside them": f"SELECT * FROM ({both('f JOIN p ON f.k = p.k', 'f')}), d",
    "a condition on the results": f"SELECT * FROM ({both('f JOIN p ON f.k = p.k', 'f')}) WHERE a > b",
    "a common table expression inside": f"""WITH j AS (SELECT f.k, x FROM f JOIN d ON f.d = d.d WHERE w = 1)
        {both("j JOIN p ON j.k = p.k", "j")}""",
    "as common table expressions": """WITH r AS (SELECT sum(x) b FROM f), l AS (SELECT sum(x) a FROM f
        JOIN p ON f.k = p.k WHERE c > 0) SELECT a / b FROM r, l""",
    "further columns": "SELECT a FROM (SELECT max(s) t, sum(x) a FROM p, f WHERE p.k = f.k), (SELECT sum(x) b FROM f)",
    "functions": both(
        "f JOIN p ON f.k = p.k",
        "f",
        """count(*) c1, count(x) c2, sum(m) + 1 s1, avg(m) a1, min(s) m1, max(x) m2, count(DISTINCT s) d1, stddev(x) v1,
        sum(x) FILTER (WHERE d > 1) f1, bool_or(x > 3) o1""",
        """count(*) c3, count(x) c4, sum(m) * 2 s2, avg(m) a2, min(s) m3, max(x) m4, sum(DISTINCT x) d2, corr(x, d) v2,
        sum(m) FILTER (WHERE x > 1) f2, bool_and(x > -9) o2""",
    ),
    "text": both("f JOIN q ON f.s = concat('s', q.c) JOIN p ON f.s = p.n", "f JOIN q ON f.s = concat('s', q.c)"),
}
KEPT = {
    "no equality": both("f JOIN p ON f.k < p.k", "f"),
    "NULLs are partners": both("f JOIN p ON f.k <=> p.k", "f"),
    "a comparison beside the key": both("f JOIN p ON f.k = p.k AND f.x < p.c", "f"),
    "NULLs are partners of groups": both("f JOIN (SELECT k, max(c) c FROM p GROUP BY k) g ON f.k <=> g.k", "f"),
    "a product": both("f CROSS JOIN p", "f"),
    "a computed key": both("f JOIN p ON f.k = p.k % 3", "f"),
    "floating-point keys": both("o JOIN p ON o.z = p.z WHERE p.z = cast('-0.0' AS double)", "o"),
    "a floating-point filter": both("o JOIN p ON o.k = p.k WHERE o.z = cast('-0.0' AS double)", "o"),
    "its columns are read": both("f JOIN p ON f.k = p.k", "f", "sum(x + c) a"),
    "its columns are counted": both("f JOIN p ON f.k = p.k", "f", "count(p.k) a"),
    "its columns are filtered with others": both("f JOIN p ON f.k = p.k AND f.d + p.c > 1", "f"),
    "a relation less": both("f, d, p, q WHERE f.d = d.d AND f.k = p.k AND q.c = p.c", "f, d, d e WHERE f.d = e.d"),
    "a relation less in another place": both(
        "f, d, p, q WHERE f.d = d.d AND f.k = p.k AND q.c = p.c", "f, d, d e WHERE f.d = d.d"
    ),
    "other rows": both("f JOIN p ON f.k = p.k", "f WHERE d = 1"),
    "both have a filter": both("f JOIN p ON f.k = p.k WHERE d = 0", "f WHERE d = 1"),
    "a left join": both("f LEFT JOIN p ON f.k = p.k", "f"),
    "groups of the result": """SELECT * FROM (SELECT d, sum(x) a FROM f JOIN p ON f.k = p.k GROUP BY d) l,
        (SELECT sum(x) b FROM f) r""",
    "some of its rows": both("f JOIN (SELECT k FROM p ORDER BY k, n, c LIMIT 9) g ON f.k = g.k", "f"),
    "a sample": both("f JOIN (SELECT * FROM p TABLESAMPLE (50 ROWS)) g ON f.k = g.k", "f"),
    "by chance": both("f JOIN (SELECT * FROM p WHERE rand(1) < 2) g ON f.k = g.k", "f"),
    "order of rows": both("f JOIN p ON f.k = p.k", "f", "max_by(x, s) a"),
    "a subquery": both("f JOIN p ON f.k = p.k WHERE f.d IN (SELECT c FROM q)", "f"),
    "a subquery beside the key": both("f JOIN p ON f.k = p.k WHERE p.c IN (SELECT c FROM q)", "f"),
    "a hint": both("f JOIN p ON f.k = p.k", "f", "/*+ MERGE(p) */ sum(x) a"),
    "a hint for the facts": both("f JOIN p ON f.k = p.k", "f", "/*+ SHUFFLE_HASH(f) */ sum(x) a"),
    "an argument that may fail": both("f JOIN p ON f.k = p.k WHERE f.x <> 0", "f", "sum(10 % x) a, max(10 % x) m"),
    "a filter that may fail": both(f"f JOIN p ON f.k = p.k WHERE f.d <> 1 AND {NUMBER} = 1", "f"),
    "a key that may fail": both(f"f JOIN p ON {NUMBER} = p.k WHERE f.d <> 1", "f"),
    "a condition that may fail": f"SELECT * FROM ({both('f JOIN p ON f.k = p.k', 'f')}) WHERE 10 / (a - a) > 0",
    "a further filter that may fail": both("f JOIN p ON f.k = p.k AND 10 / p.c > 1 WHERE p.c <> 0", "f"),
}


@pytest.fixture(scope="module")
def facts(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    return session_with(spark, tmp_path_factory.mktemp("facts"), TABLES)


@pytest.fixture(params=["true", "false"])
def ansi(request: pytest.FixtureRequest, facts: SparkSession) -> Iterator[None]:
    facts.conf.set("spark.sql.ansi.enabled", request.param)
    yield
    facts.conf.unset("spark.sql.ansi.enabled")


def fusions(session: SparkSession, text: str, **options: object) -> int:
    """How many aggregates became part of another one, after rows and schema were compared with plain Spark's."""
    return sum(NOTE in note for note in checked(session.sql(text), store="off", **options).spared_joins)


@pytest.mark.usefixtures("free", "ansi")
@pytest.mark.parametrize("name", FUSED)
def test_one_pass(facts: SparkSession, name: str) -> None:
    assert fusions(facts, FUSED[name]) == 1


@pytest.mark.usefixtures("free")
@pytest.mark.parametrize("name", KEPT)
def test_others_are_left_alone(facts: SparkSession, name: str) -> None:
    ansi = "true" if "may fail" in name else "false"
    facts.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        df = facts.sql(KEPT[name])
        fast = df.optimize_joins(strict=True, store="off")
        assert not any(NOTE in note for note in fast.join_report().spared_joins)
        assert outcome(fast) == outcome(df)
    finally:
        facts.conf.unset("spark.sql.ansi.enabled")


@pytest.mark.usefixtures("free")
def test_three_aggregates(facts: SparkSession) -> None:
    """Two are fused; what comes of that is no source that the third one has."""
    text = f"SELECT * FROM ({both('f JOIN p ON f.k = p.k', 'f')}), (SELECT sum(x) e FROM f JOIN d ON f.d = d.d)"
    assert fusions(facts, text) == 1


@pytest.mark.usefixtures("free")
def test_twice_in_one_query(facts: SparkSession) -> None:
    one, other = both("f JOIN p ON f.k = p.k", "f"), both("d JOIN q ON d.w = q.c", "d", "count(*) a", "count(*) b")
    assert fusions(facts, f"SELECT * FROM ({one}) UNION ALL SELECT * FROM ({other})") == 2


@pytest.mark.usefixtures("free")
def test_correlated_subqueries_are_left_alone(facts: SparkSession) -> None:
    inner = both("f JOIN p ON f.k = p.k AND f.d = o.d", "f WHERE f.d = o.d")
    df = facts.sql(f"SELECT o.d, (SELECT a + b FROM ({inner})) FROM d o")
    assert sorted(df.optimize_joins(strict=True, store="off").collect()) == sorted(df.collect())


def test_switched_off(facts: SparkSession, free: None) -> None:
    text = FUSED["a filter on the further relation"]
    assert fusions(facts, text, rewrites_without="fuse_joined_aggregates") == 0
    assert fusions(facts, text, strategy="heuristic") == 0


def test_small_tables_are_not_worth_it(facts: SparkSession) -> None:
    assert fusions(facts, FUSED["a filter on the further relation"]) == 0


def test_in_a_session(facts: SparkSession) -> None:
    """Spark has inferred filters and pruned columns there."""
    text = FUSED["below other joins"]
    expected = facts.sql(text).collect()
    with enabled(facts, FREE) as report:
        rows = facts.sql(text).collect()
        found = report()
    assert rows == expected and not found.error
    assert sum(NOTE in note for note in found.spared_joins) == 1


@pytest.mark.usefixtures("free")
def test_rows_that_are_not_read_twice(facts: SparkSession) -> None:
    """What a user's program gives may differ from one reading to the next; groups of it are read once."""
    drawn = facts.sparkContext.parallelize(range(40), 1).map(lambda i: (random.choice((i % 3, 7)),))
    facts.createDataFrame(drawn, "k int").createOrReplaceTempView("r")
    all_rows = facts.table("f").count()
    facts.conf.set("spark.sql.exchange.reuse", "false")
    try:
        for further, found in (("r", 0), ("(SELECT k FROM r GROUP BY k) r", 1)):
            df = facts.sql(both(f"f JOIN {further} ON f.k = r.k", "f", "count(*) a", "count(*) b"))
            fast = df.optimize_joins(strict=True, store="off")
            assert sum(NOTE in note for note in fast.join_report().spared_joins) == found
            assert fast.first().b == all_rows
    finally:
        facts.conf.unset("spark.sql.exchange.reuse")


_KEYS = st.one_of(st.none(), st.integers(0, 2))
_FACTS = st.lists(st.tuples(_KEYS, st.one_of(st.none(), st.integers(-2, 2))), max_size=6)
_FURTHER = st.lists(st.tuples(_KEYS, st.integers(0, 1)), max_size=6)
_FUNCTIONS = "count(*), count(x), sum(x), sum(x) FILTER (WHERE x > 0), min(x), count(DISTINCT x), avg(x)".split(", ")


@pytest.mark.ci
@pytest.mark.usefixtures("free")
@settings(max_examples=12, deadline=None)
@given(_FACTS, _FURTHER, st.permutations(_FUNCTIONS), st.sampled_from(["", " WHERE c = 1", " WHERE x > 0"]))
def test_any_rows(
    facts: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple],
    further: list[tuple],
    functions: list[str],
    where: str,
) -> None:
    """Compared with a loop over all pairs."""
    folder = tmp_path_factory.mktemp("drawn")
    for view, columns, pairs in (("h", "k, x", rows), ("v", "k, c", further)):
        values = [f"({', '.join('CAST(NULL AS INT)' if v is None else str(v) for v in pair)})" for pair in pairs]
        empty = "" if values else " WHERE false"
        text = f"SELECT * FROM VALUES {', '.join(values) or '(0, 0)'} {view}({columns}){empty}"
        facts.sql(text).write.parquet(str(folder / view))
        facts.read.parquet(str(folder / view)).createOrReplaceTempView(view)
    listed = ", ".join(f"{f} c{i}" for i, f in enumerate(functions))
    others = ", ".join(f"{f} e{i}" for i, f in enumerate(functions))
    df = facts.sql(both(f"h JOIN v ON h.k = v.k{where}", "h", listed, others))
    fast = df.optimize_joins(strict=True, store="off")
    assert any(NOTE in note for note in fast.join_report().spared_joins)
    assert_same_rows(df, fast)
    wanted = {"": lambda x, c: True, " WHERE c = 1": lambda x, c: c == 1, " WHERE x > 0": lambda x, c: (x or 0) > 0}
    joined = [x for k, x in rows for q, c in further if k is not None and k == q and wanted[where](x, c)]
    assert list(fast.first()) == [_value(f, xs) for xs in (joined, [x for _, x in rows]) for f in functions]


def _value(function: str, values: list[int | None]) -> float | None:
    present = [x for x in values if x is not None]
    match function:
        case "count(*)":
            return len(values)
        case "count(x)":
            return len(present)
        case "count(DISTINCT x)":
            return len(set(present))
        case "sum(x)":
            return sum(present) if present else None
        case "min(x)":
            return min(present, default=None)
        case "avg(x)":
            return sum(present) / len(present) if present else None
    positive = [x for x in present if x > 0]
    return sum(positive) if positive else None
