"""An aggregate gets only the rows of groups that the joins above it can use."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.prefilters import checked, enabled, session_with

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Facts have NULLs, keys without a partner, and repetitions; `d.id` is a key, `e.k` is none.
TABLES = {
    "f": """select if(id % 11 = 0, null, cast(id % 40 as int)) as k, cast(id % 7 as int) as g,
        cast(id % 13 - 3 as int) as v, concat('t', id % 9) as s, cast(id % 5 as double) as x from range(400)""",
    "d": """select if(id % 17 = 5, null, cast(id as int)) as id, concat('n', id % 8) as n, cast(id % 6 as int) as w,
        concat('t', id % 12) as t, cast(id % 6 as double) as x from range(50)""",
    "e": "select if(id % 5 = 0, null, cast(id % 12 as int)) as k, cast(id % 4 as int) as z from range(60)",
    "nothing": "select cast(id as int) as id, 'n1' as n from range(0)",
}
SUM = "(SELECT k, sum(v) AS a, count(*) AS c FROM f GROUP BY k)"
#: A join with that aggregate, which is itself an input: by the column of `e`, which the join equates with that of `y`.
JOINED = f"(SELECT e.k, e.z, y.a FROM e JOIN {SUM} y ON y.k = e.k AND y.a > e.z)"
#: The semi join leaves no place for a further filter of `e`, so only `y` can be filtered.
TESTED = f"FROM e LEFT SEMI JOIN d u ON e.k = u.id LEFT JOIN {SUM} y ON y.k = e.k"

#: FROM and WHERE -> the aggregates that get fewer rows.
FILTERED = {
    "joined with a filtered key": (f"{SUM} y JOIN d ON y.k = d.id WHERE d.n = 'n1'", 1),
    "the aggregate on the right": (f"d JOIN {SUM} y ON y.k = d.id WHERE d.n = 'n1'", 1),
    "optional": (f"d LEFT JOIN {SUM} y ON y.k = d.id WHERE d.n = 'n1'", 1),
    "optional, on the left": (f"{SUM} y RIGHT JOIN d ON y.k = d.id WHERE d.n = 'n1'", 1),
    "with a test of its own": (f"d LEFT JOIN {SUM} y ON y.k = d.id AND y.a > d.w WHERE d.n = 'n1'", 1),
    "none is there": (f"d LEFT JOIN {SUM} y ON y.k = d.id WHERE d.n = 'n1' AND y.k IS NULL", 1),
    "only tested": (f"d LEFT SEMI JOIN {SUM} y ON y.k = d.id AND y.a > 3 WHERE d.n = 'n1'", 1),
    "excluded": (f"d LEFT ANTI JOIN {SUM} y ON y.k = d.id AND y.a > 3 WHERE d.n = 'n1'", 1),
    "through another relation": (f"{SUM} y JOIN e ON y.k = e.k JOIN d ON e.k = d.id WHERE d.n = 'n1'", 1),
    "through a semi join": (f"{SUM} y JOIN e ON y.k = e.k LEFT SEMI JOIN d ON e.k = d.id AND d.n = 'n1'", 1),
    "optional below a join": (f"e LEFT JOIN {SUM} y ON y.k = e.k JOIN d ON e.k = d.id WHERE d.n = 'n1'", 1),
    "having": ("(SELECT k, sum(v) a FROM f GROUP BY k HAVING count(*) > 8) y JOIN d ON y.k = d.id WHERE n = 'n1'", 1),
    "over joins": (
        "(SELECT f.k, count(*) a FROM f JOIN e ON f.g = e.z GROUP BY f.k) y JOIN d ON y.k = d.id WHERE d.n = 'n1'", 1,
    ),
    "over an outer join": (
        "(SELECT f.k, count(e.z) a FROM f LEFT JOIN e ON f.g = e.k GROUP BY f.k) y JOIN d ON y.k = d.id"
        " WHERE d.n = 'n1'", 1,
    ),
    "over an aggregate": (
        "(SELECT k, max(c) a FROM (SELECT k, g, count(*) c FROM f GROUP BY k, g) GROUP BY k) y"
        " JOIN d ON y.k = d.id WHERE d.n = 'n1'", 1,
    ),
    "over a union": (
        "(SELECT k, sum(v) a FROM (SELECT k, v FROM f UNION ALL SELECT k, z FROM e) GROUP BY k) y"
        " JOIN d ON y.k = d.id WHERE d.n = 'n1'", 1,
    ),
    "grouping sets": (
        "(SELECT k, g, sum(v) a FROM f GROUP BY ROLLUP (k, g)) y JOIN d ON y.k = d.id WHERE d.n = 'n1'", 1,
    ),
    "distinct": ("(SELECT DISTINCT k, g FROM f) y JOIN d ON y.k = d.id WHERE d.n = 'n1'", 1),
    "renamed": ("(SELECT k AS q, min(s) AS a FROM f GROUP BY k) y JOIN d ON y.q = d.id WHERE d.n = 'n1'", 1),
    "texts": ("(SELECT s, sum(v) a FROM f GROUP BY s) y JOIN d ON y.s = d.t WHERE d.id < 4", 1),
    "a subquery": ("d JOIN f ON f.k = d.id WHERE n = 'n1' AND v > (SELECT avg(v) FROM f i WHERE i.k = d.id)", 1),
    "a count of nothing": ("d WHERE n = 'n1' AND 5 > (SELECT count(*) FROM f i WHERE i.k = d.id)", 1),
    "two aggregates": (
        f"d JOIN {SUM} y ON y.k = d.id JOIN (SELECT k, max(g) m FROM f GROUP BY k) u ON u.k = d.id WHERE d.n = 'n1'", 2,
    ),
    "in a tested join": (f"d LEFT SEMI JOIN {JOINED} q ON q.k = d.id AND q.a > d.w WHERE d.n = 'n1'", 1),
    "in a subquery": (f"d WHERE d.n = 'n1' AND d.id IN (SELECT k FROM {JOINED})", 1),
    "in EXISTS": (f"d WHERE d.n = 'n1' AND EXISTS (SELECT * FROM {JOINED} q WHERE q.k = d.id AND q.z < d.w)", 1),
    "in an optional join": (f"d LEFT JOIN {JOINED} q ON q.k = d.id WHERE d.n = 'n1'", 1),
    "in an optional join on the left": (f"{JOINED} q RIGHT JOIN d ON q.k = d.id AND q.a > d.w WHERE d.n = 'n1'", 1),
    "in an excluded join": (f"d LEFT ANTI JOIN {JOINED} q ON q.k = d.id AND q.a > 3 WHERE d.n = 'n1'", 1),
    "in a join with a mark": (
        f"d WHERE d.n = 'n1' AND (d.w = 1 OR EXISTS (SELECT * FROM {JOINED} q WHERE q.k = d.id))", 1,
    ),
    "optional in an optional join": (
        f"d LEFT JOIN (SELECT e.k, y.a FROM e LEFT JOIN {SUM} y ON y.k = e.k) q ON q.k = d.id WHERE d.n = 'n1'", 1,
    ),
    "two levels down": (
        f"d LEFT JOIN (SELECT e.k, q.a FROM e LEFT JOIN {JOINED} q ON q.k = e.k) r ON r.k = d.id WHERE d.n = 'n1'", 1,
    ),
    "below a further aggregate": (
        f"d JOIN (SELECT k, max(a) AS m FROM {JOINED} GROUP BY k) q ON q.k = d.id WHERE d.n = 'n1'", 1
    ),
    "below DISTINCT": (f"d LEFT JOIN (SELECT DISTINCT k, z FROM {JOINED}) q ON q.k = d.id WHERE d.n = 'n1'", 1),
    "optional below an aggregate": (
        f"d JOIN (SELECT e.k, max(y.c) AS m {TESTED} GROUP BY e.k) q ON q.k = d.id WHERE d.n = 'n1'", 1,
    ),
    "keys of DISTINCT": (f"{SUM} y JOIN (SELECT DISTINCT id FROM d WHERE n = 'n1') q ON y.k = q.id", 1),
    "keys of groups": (
        f"{SUM} y JOIN (SELECT id AS i, count(*) AS m FROM d WHERE n = 'n1' GROUP BY id HAVING max(w) > 2) q"
        " ON y.k = q.i", 1,
    ),
    "keys of groups of a join": (
        f"{SUM} y LEFT SEMI JOIN (SELECT id FROM d JOIN e ON k = w WHERE n = 'n1' GROUP BY id) q ON y.k = q.id", 1,
    ),
    "renamed keys of a semi join": (f"{SUM} y LEFT SEMI JOIN (SELECT id AS i FROM d WHERE n = 'n1') q ON y.k = q.i", 1),
    "equal in the tested plan": (
        f"{SUM} y LEFT SEMI JOIN (SELECT e.k FROM e JOIN d ON e.k = d.id WHERE d.n = 'n1') q ON y.k = q.k", 1,
    ),
    "nothing is found": (f"{SUM} y JOIN d ON y.k = d.id WHERE d.n = 'n1' AND d.w = 77", 1),
}  # fmt: skip
KEPT = {
    "no filter": f"{SUM} y JOIN d ON y.k = d.id",
    "preserved": f"{SUM} y LEFT JOIN d ON y.k = d.id AND d.n = 'n1'",
    "both preserved": f"{SUM} y FULL JOIN (SELECT * FROM d WHERE n = 'n1') d ON y.k = d.id",
    "the other is preserved": f"(SELECT * FROM d WHERE n = 'n1') d RIGHT JOIN {SUM} y ON y.k = d.id",
    "not of a group": f"{SUM} y JOIN d ON y.a = d.id WHERE d.n = 'n1'",
    "no equality": f"{SUM} y JOIN d ON y.k < d.id WHERE d.n = 'n1'",
    "NULL equals NULL": f"{SUM} y JOIN d ON y.k <=> d.id WHERE d.n = 'n1'",
    "computed": f"{SUM} y JOIN d ON y.k + 1 = d.id WHERE d.n = 'n1'",
    "a computed group": "(SELECT k % 9 AS k, sum(v) a FROM f GROUP BY k % 9) y JOIN d ON y.k = d.id WHERE n = 'n1'",
    "no groups": "(SELECT max(k) AS k FROM f) y JOIN d ON y.k = d.id WHERE d.n = 'n1'",
    "floating point": "(SELECT x, sum(v) a FROM f GROUP BY x) y JOIN d ON y.x = d.x WHERE d.n = 'n1'",
    "another type": "(SELECT CAST(k AS BIGINT) k, sum(v) a FROM f GROUP BY 1) y JOIN d ON y.k = d.id WHERE d.n = 'n1'",
    "by chance": f"{SUM} y JOIN d ON y.k = d.id WHERE rand(3) < 2 AND d.w + rand(4) < 1",
    "a window between": (
        "(SELECT k, a, rank() OVER (ORDER BY a, k) r FROM (SELECT k, sum(v) a FROM f GROUP BY k)) y"
        " JOIN d ON y.k = d.id WHERE d.n = 'n1'"
    ),
    "a limit between": (
        "(SELECT k, sum(v) a FROM f GROUP BY k ORDER BY k LIMIT 9) y JOIN d ON y.k = d.id WHERE d.n = 'n1'"
    ),
    "the source may be missing": f"d LEFT JOIN d q ON q.id = d.id AND q.n = 'n1' JOIN {SUM} y ON y.k = d.id",
    "DISTINCT keys, or none": f"{SUM} y LEFT JOIN (SELECT DISTINCT id FROM d WHERE n = 'n1') q ON y.k = q.id",
    "DISTINCT keys that exclude": f"{SUM} y LEFT ANTI JOIN (SELECT DISTINCT id FROM d WHERE n = 'n1') q ON y.k = q.id",
    "groups that exclude": f"{JOINED} y LEFT ANTI JOIN (SELECT id FROM d WHERE n = 'n1' GROUP BY id) q ON y.k = q.id",
    "a function of groups": (
        f"{SUM} y JOIN (SELECT w, count(id) AS m FROM d WHERE n = 'n1' GROUP BY w) q ON y.k = q.m"
    ),
    "both preserved, with a join": f"(SELECT * FROM d WHERE n = 'n1') d FULL JOIN {JOINED} q ON q.k = d.id",
    "a preserved join": f"{JOINED} q LEFT JOIN (SELECT * FROM d WHERE n = 'n1') d ON q.k = d.id",
    "another column of the join": f"d LEFT JOIN {JOINED} q ON q.a = d.id WHERE d.n = 'n1'",
    "a limit in the optional side": (
        f"d LEFT JOIN (SELECT * FROM {JOINED} ORDER BY k, z, a LIMIT 9) q ON q.k = d.id WHERE d.n = 'n1'"
    ),
    "what is grouped may fail": (
        f"d JOIN (SELECT e.k, sum(10 div coalesce(y.c, 0)) AS m {TESTED} WHERE e.k IS NOT NULL GROUP BY e.k) q"
        " ON q.k = d.id WHERE d.n = 'n1'"
    ),
    "by chance in the groups": (
        f"d JOIN (SELECT e.k, max(y.a) + if(rand(3) < 2, 0, 1) AS m FROM e JOIN {SUM} y ON y.k = e.k GROUP BY e.k) q"
        " ON q.k = d.id WHERE d.n = 'n1'"
    ),
    "the filter may fail": f"{SUM} y JOIN d ON y.k = d.id WHERE 12 div w > 3",
    "the filter reads more": f"{SUM} y JOIN d ON y.k = d.id WHERE d.w = (SELECT max(z) FROM e)",
}


@pytest.fixture(scope="module")
def facts(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    session = session_with(spark, TABLES, tmp_path_factory.mktemp("prefilter"))
    yield session
    session.catalog.clearCache()


@pytest.mark.parametrize("name", FILTERED)
def test_groups_without_a_partner_are_not_computed(facts: SparkSession, name: str) -> None:
    text, filtered = FILTERED[name]
    report = checked(facts.sql(f"SELECT * FROM {text}"))
    assert len(report.prefilters) == filtered and report.changed


@pytest.mark.parametrize("name", KEPT)
def test_others_are_left_alone(facts: SparkSession, name: str) -> None:
    assert checked(facts.sql(f"SELECT * FROM {KEPT[name]}")).prefilters == []


#: A session does not plan one inner join of small files, which has one order and the sizes that Spark takes it for.
IN_SESSIONS = (
    "optional", "optional, on the left", "with a test of its own", "none is there", "through another relation",
    "through a semi join", "optional below a join", "over joins", "over an outer join", "a subquery",
    "a count of nothing", "two aggregates", "in a tested join", "in an optional join", "two levels down",
)  # fmt: skip


@pytest.mark.parametrize("name", IN_SESSIONS)
def test_in_an_enabled_session(facts: SparkSession, name: str) -> None:
    text, filtered = FILTERED[name]
    plain = facts.sql(f"SELECT * FROM {text}").collect()
    with enabled(facts) as report_of:
        fast = facts.sql(f"SELECT * FROM {text}").collect()
        report = report_of()
    assert sorted(map(repr, fast)) == sorted(map(repr, plain)) and report.error is None
    assert len(report.prefilters) == filtered


def test_the_semi_join_is_below_the_aggregate(facts: SparkSession) -> None:
    df = facts.sql(f"SELECT * FROM {FILTERED['over joins'][0]}").optimize_joins(strict=True)
    lines = df._jdf.queryExecution().optimizedPlan().toString().splitlines()
    aggregate = next(i for i, line in enumerate(lines) if "Aggregate" in line)
    semi = next(i for i, line in enumerate(lines) if "LeftSemi" in line)
    assert semi > aggregate and "BroadcastHashJoin" in df._jdf.queryExecution().executedPlan().toString()


def test_what_spark_computes_once_is_left_whole(facts: SparkSession) -> None:
    """Both references share one shuffle; a semi join below one of them would have the aggregate computed twice."""
    text = """WITH y AS (SELECT k, g, sum(v) AS a FROM f GROUP BY k, g) SELECT * FROM y y1
        JOIN y y2 ON y1.k = y2.k AND y1.a > y2.a JOIN d ON y1.k = d.id WHERE d.n = 'n1'"""
    with enabled(facts) as report_of:
        facts.sql(text).collect()
        report = report_of()
    assert report.prefilters == []
    checked(facts.sql(text))


def test_switched_off_and_too_dear(facts: SparkSession) -> None:
    df = facts.sql(f"SELECT * FROM {FILTERED['optional'][0]}")
    assert checked(df, rewrites_without="prefilter_aggregates").prefilters == []
    assert checked(df, hints=False).prefilters == []
    assert checked(df, cost_constants="").prefilters == []
    assert "Rows filtered before" in str(checked(df))


def test_once_is_enough(facts: SparkSession) -> None:
    df = facts.sql(f"SELECT * FROM {FILTERED['optional'][0]}").optimize_joins(strict=True)
    assert checked(df).prefilters == []
    plain = facts.sql(f"SELECT * FROM {FILTERED['optional'][0]}")
    with enabled(facts):
        fast = plain.optimize_joins(strict=True)
        assert fast._jdf.queryExecution().optimizedPlan().toString().count("LeftSemi") == 1


def test_a_cached_aggregate_is_left_whole(facts: SparkSession) -> None:
    facts.sql("SELECT k, sum(v) AS a FROM f GROUP BY k").createOrReplaceTempView("sums")
    facts.table("sums").cache()
    try:
        assert checked(facts.sql("SELECT * FROM sums JOIN d ON k = id WHERE n = 'n1'")).prefilters == []
    finally:
        facts.catalog.uncacheTable("sums")


def _filtered(facts: SparkSession, draw: random.Random, ansi: str, drawn: Callable[[random.Random], str]) -> int:
    """The filters of twelve queries, whose rows are those of plain Spark."""
    facts.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        return sum(len(checked(facts.sql(drawn(draw))).prefilters) for _ in range(12))
    finally:
        facts.conf.unset("spark.sql.ansi.enabled")


@pytest.mark.ci
@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("seed", range(3))
def test_drawn_queries(facts: SparkSession, seed: int, ansi: str) -> None:
    assert _filtered(facts, random.Random(f"{seed} {ansi}"), ansi, _drawn) >= 4


@pytest.mark.ci
@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("seed", range(3))
def test_drawn_queries_of_several_levels(facts: SparkSession, seed: int, ansi: str) -> None:
    assert _filtered(facts, random.Random(f"levels {seed} {ansi}"), ansi, _nested) >= 2


def _nested(draw: random.Random) -> str:
    """A query with an aggregate that is some joins and aggregates below what it is joined with."""
    kinds = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"]
    plan = f"(SELECT k, {draw.choice(['sum(v)', 'count(*)', 'max(g)', 'min(k)'])} AS a FROM f GROUP BY k)"
    for _ in range(draw.choice([1, 1, 2])):
        kind, extra = draw.choice(kinds), draw.choice(["", "", " AND y.a > e.z", " AND y.a <> 3"])
        mine, own = draw.choice([("e.k", "k"), ("e.z", "z")])
        if kind.startswith("LEFT ") and draw.random() < 0.5:
            plan = f"(SELECT y.k, y.a FROM {plan} y {kind} e ON y.k = {mine}{extra})"
        else:
            value = "y.a" if kind[5:] not in ("SEMI JOIN", "ANTI JOIN") else "e.z AS a"
            plan = f"(SELECT {mine} AS k, {value} FROM e {kind} {plan} y ON y.k = {mine}{extra})"
        if draw.random() < 0.5:
            function = draw.choice(["max(a)", "count(a)", "sum(a)", "sum(60 div coalesce(a, 7))", "min(k)"])
            group = draw.choice(["k", "k", "k", "a"])
            plan = f"(SELECT {group} AS k, {function} AS a FROM {plan} GROUP BY {group})"
        elif draw.random() < 0.2:
            plan = f"(SELECT DISTINCT k, a FROM {plan})"
    of_d = draw.choice(["d", "(SELECT id, max(w) AS w, min(n) AS n FROM d WHERE w > 1 GROUP BY id)"])
    tests = f"(SELECT * FROM {of_d} WHERE {draw.choice(['n = ' + repr('n1'), 'id IN (3, 9, 7, 31)', 'w > 3'])}) d"
    return f"SELECT * FROM {tests} {draw.choice(kinds)} {plan} q ON q.k = d.id{draw.choice(['', ' AND q.a > d.w'])}"


def _drawn(draw: random.Random) -> str:
    """A query with an aggregate that is joined in some way with a filtered relation."""
    key, other = draw.choice([("k", "id"), ("s", "t"), ("g", "w"), ("k", "w"), ("x", "x")])
    function = draw.choice(["sum(v)", "count(*)", "min(s)", "avg(v)", "count(DISTINCT g)", "max(x)", "first(k)"])
    if function == "first(k)" and key != "k":
        function = "max(k)"
    source = draw.choice(["f", "f", "(SELECT * FROM f WHERE v > 0)", "(SELECT f.* FROM f LEFT JOIN e ON f.g = e.k)"])
    further = draw.choice(["", "", ", g", ", x"])
    having = draw.choice(["", "", " HAVING count(*) > 5"])
    columns = further.replace("g", "g AS g2").replace("x", "x AS x2")
    inner = f"(SELECT {key} AS p{columns}, {function} AS a FROM {source} GROUP BY {key}{further}{having}) y"
    test = draw.choice(["n = 'n1'", "n < 'n3' AND w > 1", "id IN (3, 9, 27, 31)", "t LIKE 't1%'", "w = 77"])
    kind = draw.choice(["JOIN", "JOIN", "LEFT JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"])
    extra = draw.choice(["", "", " AND length(cast(a AS string)) < d.w"])
    of_d = draw.choice([f"(SELECT * FROM d WHERE {test}) d", "d"])
    where = f" WHERE {test}" if of_d == "d" else ""
    tables = f"{of_d} {kind} {inner} ON y.p = d.{other}{extra}"
    if draw.random() < 0.3:
        tables = f"{of_d} JOIN e ON e.z = d.w {kind} {inner} ON y.p = d.{other}{extra}"
    if draw.random() < 0.15:
        tables = f"{inner} {draw.choice(['LEFT', 'FULL', 'RIGHT'])} JOIN {of_d} ON y.p = d.{other}"
    return f"SELECT * FROM {tables}{where}"
